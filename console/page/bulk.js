// Does the same with several stacks: those that the user has selected in the list.

import { stackPath } from "./api.js";
import { ask } from "./dialog.js";
import { button, h, put, spelled } from "./dom.js";

const AT_ONCE = 4;
const NAMED = 3;
const LISTED = 10;

/**
 * An action on several stacks: `fits` says with which status of a stack.
 *
 * @typedef {{key: string, label: string, done: string, fits: (status: string) => boolean}} BulkAction
 */

/**
 * How an action on a stack has ended.
 *
 * @template T
 * @typedef {{item: T, error: Error | null}} Outcome
 */

/**
 * What can be done with several stacks.
 *
 * @type {BulkAction[]}
 */
export const BULK_ACTIONS = [
  { key: "check", label: "Check", done: "being checked", fits: (status) => !isBusy(status) },
  { key: "suspend", label: "Suspend", done: "being suspended", fits: (status) => !isBusy(status) && status !== "SUSPEND_COMPLETE" },
  { key: "resume", label: "Resume", done: "being resumed", fits: (status) => status === "SUSPEND_COMPLETE" },
  { key: "delete", label: "Delete …", done: "being deleted", fits: (status) => !status.startsWith("DELETE_IN") && status !== "DELETE_COMPLETE" },
];

/** @param {string} status */
function isBusy(status) {
  return status.endsWith("IN_PROGRESS") || status.startsWith("DELETE");
}

/**
 * Call `act` with each item, a few at once; return the outcome of each.
 *
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Promise<unknown>} act
 */
export async function each(items, act, atOnce = AT_ONCE) {
  /** @type {Outcome<T>[]} */
  const outcomes = new Array(items.length);
  const rest = items.entries();
  const next = async () => {
    for (const [index, item] of rest) {
      try {
        await act(item);
        outcomes[index] = { item, error: null };
      } catch (error) {
        outcomes[index] = { item, error: /** @type {Error} */ (error) };
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  return outcomes;
}

/**
 * Return the sentence about an action on several stacks.
 *
 * @param {Outcome<{stack_name: string}>[]} outcomes
 * @param {string} done says what is being done with them.
 */
export function outcomeWords(outcomes, done) {
  const refused = outcomes.filter(({ error }) => error);
  const count = outcomes.length - refused.length;
  const went = `${count} ${count === 1 ? "stack is" : "stacks are"} ${done}.`;
  const reasons = refused.slice(0, NAMED).map(({ item, error }) => `${spelled(item.stack_name)}: ${error?.message}`);
  const more = refused.length > NAMED ? ` And ${refused.length - NAMED} more.` : "";
  return refused.length ? `${went} ${refused.length} refused. ${reasons.join(" ")}${more}` : went;
}

/** The selected stacks of a list, and a bar with what can be done with them. */
export class Bulk {
  /**
   * @param {object} parts
   * @param {import("./api.js").Api} parts.api
   * @param {Say} parts.say
   * @param {() => void} parts.refresh reads the list anew.
   * @param {() => void} parts.redraw draws the cells anew.
   */
  constructor({ api, say, refresh, redraw }) {
    this._api = api;
    this._say = say;
    this._refresh = refresh;
    this._redraw = redraw;
    /** @type {Set<string>} */
    this._ids = new Set();
    /** @type {StackAnswer[]} */
    this._shown = [];
    this._isAtWork = false;
    this._progress = h("span", { class: "faint", role: "status" });
    this.element = h("div", { class: "bulk", role: "toolbar", "aria-label": "Selected stacks", hidden: true });
    this._all = h("input", { type: "checkbox", "aria-label": "Select all that are shown", on: { change: () => this._selectAll() } });
    this.all = h("label", { class: "pick" }, this._all);
  }

  /**
   * Make the cell that selects a stack.
   *
   * @param {StackAnswer} stack
   */
  cell(stack) {
    const box = h("input", { type: "checkbox", checked: this._ids.has(stack.id), "aria-label": `Select ${spelled(stack.stack_name)}`, on: { change: () => {
      if (box.checked) this._ids.add(stack.id);
      else this._ids.delete(stack.id);
      this._draw();
    } } });
    return h("label", { class: "pick" }, box);
  }

  /**
   * Take the stacks that the list shows now; no others are selected any more.
   *
   * @param {StackAnswer[]} stacks
   */
  show(stacks) {
    this._shown = stacks;
    const ids = new Set(stacks.map((stack) => stack.id));
    for (const id of this._ids) if (!ids.has(id)) this._ids.delete(id);
    this._draw();
  }

  get selected() {
    return this._shown.filter((stack) => this._ids.has(stack.id));
  }

  _selectAll() {
    this._ids = new Set(this._all.checked ? this._shown.map((stack) => stack.id) : []);
    this._redraw();
    this._draw();
  }

  _draw() {
    const { selected } = this;
    this._all.checked = selected.length > 0 && selected.length === this._shown.length;
    this._all.indeterminate = selected.length > 0 && selected.length < this._shown.length;
    this.element.hidden = selected.length === 0;
    put(this.element, h("b", {}, `${selected.length} selected`), this._progress, BULK_ACTIONS.map((action) => {
      const fitting = selected.filter((stack) => action.fits(stack.stack_status));
      const label = fitting.length && fitting.length < selected.length ? `${action.label} (${fitting.length})` : action.label;
      return button(label, () => this._act(action, fitting), { disabled: this._isAtWork || fitting.length === 0, class: action.key === "delete" ? "danger" : null });
    }));
  }

  /**
   * @param {BulkAction} action
   * @param {StackAnswer[]} stacks
   */
  async _act(action, stacks) {
    if (action.key === "delete" && !(await askToDelete(stacks))) return;
    this._isAtWork = true;
    let count = 0;
    const tell = () => put(this._progress, `${count} of ${stacks.length} sent`);
    tell();
    this._draw();
    const outcomes = await each(stacks, async (stack) => {
      try {
        await this._send(action, stack);
      } finally {
        count += 1;
        tell();
      }
    });
    this._isAtWork = false;
    put(this._progress);
    for (const { item, error } of outcomes) if (!error) this._ids.delete(item.id);
    this._say(outcomeWords(outcomes, action.done), outcomes.some(({ error }) => error) ? "error" : "done");
    this._redraw();
    this._draw();
    this._refresh();
  }

  /**
   * @param {BulkAction} action
   * @param {StackAnswer} stack
   */
  _send(action, stack) {
    if (action.key === "delete") return this._api.send("DELETE", stackPath(stack.stack_name, stack.id));
    return this._api.send("POST", stackPath(stack.stack_name, stack.id, "actions"), { [action.key]: null });
  }
}

/** @param {StackAnswer[]} stacks */
function askToDelete(stacks) {
  const names = stacks.slice(0, LISTED).map((stack) => spelled(stack.stack_name)).join(", ");
  const more = stacks.length > LISTED ? ` and ${stacks.length - LISTED} more` : "";
  const label = stacks.length === 1 ? "Delete the stack" : `Delete ${stacks.length} stacks`;
  return ask(`${label}?`, `${names}${more}: all of their resources are deleted, unless their deletion policy keeps them. This cannot be undone.`, [["yes", label, "danger"]]);
}
