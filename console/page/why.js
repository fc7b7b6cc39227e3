// Why a stack does not continue or has failed: a card for each task that is unfinished, and for each failure.

import { DataView } from "./data_view.js";
import { ago, button, h, named, prose, put, spelled } from "./dom.js";
import { Source } from "./live.js";
import { glyph, words } from "./states.js";

/** @type {Record<string, StateKey>} */
const KEYS = { held: "held", running: "run" };
const PLAIN = { mark: "", resource: null, state: null, label: null, type: null, next: null, since: null, facts: [] };

/**
 * Return the cards of a report on a stack, in their order.  Pure.
 *
 * @param {Diagnosis} report
 * @returns {Card[]}
 */
export function cardsOf(report) {
  return [
    ...(report.general ?? []).filter((reason) => reason.cause !== "complete").map(generalCard),
    ...(report.failed ?? []).map(failureCard),
    ...(report.tasks ?? []).map(taskCard),
  ];
}

/** @param {Reason} reason */
function generalCard(reason) {
  return { ...PLAIN, why: reason.why, next: reason.next, commands: reason.commands ?? [] };
}

/**
 * @param {NonNullable<Diagnosis["failed"]>[0]} failure
 * @returns {Card}
 */
function failureCard(failure) {
  const label = words(`${failure.action ?? ""}_FAILED`, "bad");
  return { ...PLAIN, mark: "bad", resource: failure.resource, state: "bad", label, why: failure.reason, commands: failure.commands ?? [] };
}

/**
 * @param {NonNullable<Diagnosis["tasks"]>[0]} task
 * @returns {Card}
 */
function taskCard(task) {
  const state = KEYS[task.state] ?? "wait";
  const conductor = task.held_by?.replace(/\/[^/]*$/, "");
  return {
    mark: state === "held" ? "held" : "", resource: task.resource, state, label: `${task.action} ${task.state}`, type: task.type,
    why: task.why, next: task.next, since: task.since ?? null,
    facts: [...(task.attempt ? [`attempt ${task.attempt}`] : []), ...(conductor ? [conductor] : [])], commands: task.commands ?? [],
  };
}

/** The tab "Why". */
export class WhyPanel {
  /** @param {PanelContext} context */
  constructor(context) {
    this._context = context;
    const { api, data, refresh } = context;
    const body = h("div", { "data-acts": true });
    this.view = new DataView({
      subject: "the diagnosis", sources: [new Source((fresh) => api.get(data.path("inspect"), { fresh }))], body, retry: refresh,
      draw: (/** @type {Diagnosis} */ report) => put(body, this._draw(report)),
    });
  }

  /**
   * @param {Diagnosis} report
   * @returns {Child[]}
   */
  _draw(report) {
    const counts = Object.entries(report.counts ?? {}).filter(([, count]) => count);
    const cards = cardsOf(report).map((card) => this._card(card));
    return [
      counts.length ? h("p", { class: "counts" }, counts.map(([state, count]) => h("span", {}, h("b", {}, String(count)), ` ${state}`))) : null,
      cards.length ? h("div", { class: "cards" }, cards) : h("p", { class: "empty" }, glyph("ok"), " Nothing is stuck: nothing has failed, and no task is unfinished."),
      report.more ? h("p", { class: "faint" }, `and ${report.more} more tasks`) : null,
    ];
  }

  /** @param {Card} card */
  _card(card) {
    const facts = card.facts.map((fact) => ` · ${fact}`);
    return h("section", { class: `card why ${card.mark}` },
      card.resource === null ? null : h("div", { class: "title" }, h("h3", {}, named(card.resource)), h("span", { class: `badge ${card.state}` }, card.state && glyph(card.state), card.label)),
      card.type === null ? null : named(card.type, { class: "name faint" }),
      h("p", {}, prose(card.why)),
      card.next === null ? null : h("p", {}, h("span", { class: "k" }, "By itself: "), prose(card.next)),
      card.since || facts.length ? h("p", { class: "faint" }, card.since ? ["since ", ago(card.since)] : null, facts) : null,
      card.state === "held" ? h("div", { class: "actions" }, button("Continue", () => this._act("continue", card)), button("Step", () => this._act("step", card))) : null,
      card.commands.length ? h("pre", { class: "commands", tabindex: "0" }, card.commands.map((line) => spelled(line)).join("\n")) : null);
  }

  /**
   * @param {string} name
   * @param {Card} card
   */
  async _act(name, card) {
    const { api, say, refresh, data } = this._context;
    try {
      await api.send("POST", data.path("actions"), { [name]: { resources: [card.resource] } });
      say(`${spelled(card.resource)} continues.`);
    } catch (error) {
      say(/** @type {Error} */ (error).message, "error");
    }
    await refresh();
  }
}
