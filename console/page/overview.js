// The stacks of the project: how many are in which state, which need somebody, and all of them to search.

import { stackPath } from "./api.js";
import { Bulk } from "./bulk.js";
import { DataView } from "./data_view.js";
import { ago, button, h, named, prose, put, putFocused, spelled } from "./dom.js";
import { driftWords } from "./drift.js";
import { Fleet } from "./fleet.js";
import { Live, Source } from "./live.js";
import { hashOf } from "./route.js";
import { STATES, STATE_KEYS, badge, glyph, isPaused, keyOfStack, noneWords } from "./states.js";
import { Table } from "./table.js";

const PAGE = 1000;
const EVERY = 3;
/** @type {StateKey[]} */
const ORDER = ["bad", "held", "run", "ok", "off"];

/**
 * Show the overview; return a function that ends it.
 *
 * @param {PageContext} context
 * @returns {Leave}
 */
export function showOverview(context) {
  const view = new Overview(context);
  return Object.assign(() => view.end(), { now: () => view.now() });
}

/**
 * Return the address of a stack's page.
 *
 * @param {StackAnswer} stack
 */
function stackHash(stack, tab = "") {
  return hashOf(["stack", stack.stack_name, stack.id, tab]);
}

class Overview {
  /** @param {PageContext} context */
  constructor({ api, main, say, isAdmin, query, remember }) {
    this._api = api;
    this._say = say;
    this._isAdmin = isAdmin;
    this._remember = remember;
    this._state = STATE_KEYS.find((key) => key === query.get("state")) ?? null;
    /** @type {Source<StackList>} */
    this._stacks = new Source((fresh) => api.get(`stacks?limit=${PAGE}`, { fresh }));
    /** @type {Source<StackCounts | null>} */
    this._counts = new Source(async (fresh) => (this._stacks.value?.links ? (await api.get("stack_counts", { fresh })).stack_counts : null));
    /** @type {Fleet | null} */
    this._fleet = null;
    this._tiles = h("div", { class: "tiles", role: "group", "aria-label": "Stacks by state" });
    this._stuck = h("section", { class: "stuck", hidden: true, "aria-labelledby": "stuck", "data-acts": true });
    this._search = h("input", { type: "search", placeholder: "Search by name, tag or owner", "aria-label": "Search stacks", value: query.get("q") ?? "", on: { input: () => this._filter() } });
    this._number = h("span", { class: "faint", role: "status" });
    this._rest = h("p", { class: "faint", hidden: true });
    this._fleetPlace = h("div", {});
    this._bulk = new Bulk({ api, say, refresh: () => this.now(), redraw: () => this._table.redraw() });
    this._table = this._makeTable();
    this._view = this._makeView();
    put(main, h("div", { class: "title" }, h("h1", { tabindex: "-1" }, "Stacks"), h("span", { class: "grow" }), h("a", { class: "button main", href: "#/launch" }, "Launch a stack")),
      this._view.element, this._fleetPlace);
    this._live = new Live(EVERY, () => this._update());
    this.now();
  }

  _makeView() {
    return new DataView({
      subject: "the stacks", sources: [this._stacks], retry: () => this.now(), draw: ({ stacks }) => this._draw(stacks),
      body: h("div", {}, this._tiles, this._rest, this._stuck, h("div", { class: "bar-row" }, this._search, this._number), this._bulk.element, this._table.element),
      isEmpty: ({ stacks }) => stacks.length === 0,
      empty: () => h("p", {}, "This project has no stacks yet. ", h("a", { href: "#/launch" }, "Launch one from a template"), "."),
    });
  }

  /** @returns {Table<StackAnswer>} */
  _makeTable() {
    return new Table([
      { title: this._bulk.all, cell: (stack) => this._bulk.cell(stack), kind: "select" },
      { title: "Name", cell: (stack) => h("a", { href: stackHash(stack) }, named(stack.stack_name)), kind: "grow", order: (stack) => stack.stack_name },
      { title: "State", cell: (stack) => badge(stack.stack_status, isPaused(stack)), order: (stack) => ORDER.indexOf(keyOfStack(stack)) },
      { title: "Drift", cell: (stack) => driftWords(stack), kind: "nowrap wide-only", order: (stack) => stack.drift_status ?? null },
      { title: "Changed", cell: (stack) => ago(changedAt(stack)), kind: "nowrap", order: (stack) => Date.parse(changedAt(stack)) },
      { title: "Created", cell: (stack) => ago(stack.creation_time), kind: "nowrap wide-only", order: (stack) => Date.parse(stack.creation_time) },
      { title: "Owner", cell: (stack) => named(stack.stack_owner ?? "–"), kind: "wide-only", order: (stack) => stack.stack_owner ?? null },
      { title: "Tags", cell: (stack) => (stack.tags ?? []).map((tag) => h("span", { class: "tag" }, named(tag))), kind: "wide-only" },
    ], { caption: "Stacks", key: (stack) => stack.id });
  }

  /** Read everything now; what admins see, once it is known that the user is one. */
  now() {
    if (this._isAdmin() && !this._fleet) {
      this._fleet = new Fleet(this._api, () => this.now());
      put(this._fleetPlace, this._fleet.view.element);
    }
    this._live.follow([this._stacks, this._counts, ...(this._fleet?.sources ?? [])]);
    return this._live.now();
  }

  end() {
    this._live.stop();
  }

  _update() {
    this._view.update();
    this._fleet?.view.update();
    // One sentence says that the API does not answer.
    const isSilent = ["stale", "failed"].includes(this._view.phase) && this._fleet?.view.phase !== "ready";
    // It stands below the stacks: it is read later, and must not push aside what is about to be clicked.
    this._fleetPlace.hidden = this._view.phase === "loading" || isSilent;
    this._drawRest();
  }

  _filter() {
    this._remember({ q: this._search.value, state: this._state });
    this._view.update({ isForced: true });
  }

  /** @param {StackAnswer[]} stacks */
  _draw(stacks) {
    const counts = new Map(ORDER.map((key) => [key, 0]));
    for (const stack of stacks) counts.set(keyOfStack(stack), (counts.get(keyOfStack(stack)) ?? 0) + 1);
    const [some, none] = [[...counts].filter(([key, count]) => count || key === this._state), ORDER.filter((key) => !counts.get(key) && key !== this._state)];
    putFocused(this._tiles, some.map(([key, count]) => this._tile(key, count)));
    if (none.length) this._tiles.append(h("p", { class: "faint" }, noneWords(none.map((key) => STATES[key].word))));
    const matches = stacks.filter((stack) => (this._state === null || keyOfStack(stack) === this._state) && this._matches(stack));
    this._number.textContent = matches.length === stacks.length ? "" : `${matches.length} of ${stacks.length}`;
    this._bulk.show(matches);
    this._table.show(matches, "No stack matches. Clear the search, or choose another state.");
    this._drawStuck(stacks);
  }

  /**
   * @param {StateKey} key
   * @param {number} count
   */
  _tile(key, count) {
    return h("button", { type: "button", class: `tile ${key}`, "data-key": key, "aria-pressed": String(this._state === key), on: { click: () => {
      this._state = this._state === key ? null : key;
      this._filter();
    } } }, glyph(key), h("b", {}, String(count)), h("span", {}, STATES[key].word));
  }

  /** @param {StackAnswer} stack */
  _matches(stack) {
    const text = this._search.value.toLowerCase();
    return !text || [stack.stack_name, stack.stack_owner, stack.id, ...(stack.tags ?? [])].some((part) => String(part ?? "").toLowerCase().includes(text));
  }

  /** @param {StackAnswer[]} stacks */
  _drawStuck(stacks) {
    const stuck = stacks.filter((stack) => ["bad", "held"].includes(keyOfStack(stack))).slice(0, 6);
    this._stuck.hidden = stuck.length === 0;
    put(this._stuck, h("h2", { id: "stuck" }, "Needs attention"), h("ul", {}, stuck.map((stack) => h("li", { class: keyOfStack(stack) },
      h("a", { href: stackHash(stack, isPaused(stack) ? "" : "why") }, named(stack.stack_name)), badge(stack.stack_status, isPaused(stack)),
      h("span", { class: "reason", title: spelled(stack.stack_status_reason) }, prose(stack.stack_status_reason)),
      isPaused(stack) ? button("Continue", () => this._resume(stack)) : null))));
  }

  /** Say how many stacks there are besides the latest ones, which are all that is shown. */
  _drawRest() {
    const { stacks, links } = this._stacks.value ?? { stacks: [] };
    this._rest.hidden = !links;
    const counts = this._counts.value;
    const latest = `The latest ${stacks.length}${counts ? ` of ${counts.total}` : ""} stacks are shown and counted here`;
    this._rest.textContent = counts ? `${latest}; ${counts.by_status.FAILED ?? 0} of all have failed, ${counts.by_status.IN_PROGRESS ?? 0} are in progress.` : `${latest}; there are more.`;
  }

  /** @param {StackAnswer} stack */
  async _resume(stack) {
    try {
      await this._api.send("POST", stackPath(stack.stack_name, stack.id, "actions"), { continue: null });
      this._say(`${spelled(stack.stack_name)} continues.`);
      await this.now();
    } catch (error) {
      this._say(/** @type {Error} */ (error).message, "error");
    }
  }
}

/** @param {StackAnswer} stack */
function changedAt(stack) {
  return stack.updated_time ?? stack.creation_time;
}
