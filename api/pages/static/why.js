// Why a stack does not continue or has failed: a card for each task that is unfinished, and for each failure.

import { ago, button, h, named, prose, put, spelled } from "./dom.js";
import { badge, glyph } from "./states.js";

/** The tab "Why". */
export class WhyPanel {
  constructor(context, place) {
    this._context = context;
    this._place = place;
    this._found = null;
    this._shown = "";
  }

  async load(fresh) {
    const { api, data } = this._context;
    try {
      this._found = await api.get(data.path("inspect"), { fresh });
    } catch (error) {
      if (error.status !== 403) throw error;
      this._found = null;
      this._refused = error.message;
    }
  }

  show() {
    const text = JSON.stringify([this._found, this._refused]);
    if (text === this._shown || text === "[null,null]" || (this._found === null && !this._refused)) return;
    this._shown = text;
    put(this._place, this._found ? this._cards(this._found) : h("p", { class: "problem" }, this._refused));
  }

  _cards(found) {
    const counts = Object.entries(found.counts ?? {}).filter(([, count]) => count);
    const cards = [
      ...(found.general ?? []).filter((item) => item.cause !== "complete").map((item) => this._general(item)),
      ...(found.failed ?? []).map((item) => this._failed(item)),
      ...(found.tasks ?? []).map((item) => this._task(item)),
    ];
    return [
      counts.length ? h("p", { class: "counts" }, counts.map(([state, count]) => h("span", {}, h("b", {}, String(count)), ` ${state}`))) : null,
      cards.length ? h("div", { class: "cards" }, cards) : h("p", { class: "empty" }, glyph("ok"), " Nothing is stuck: nothing has failed, and no task is unfinished."),
      found.more ? h("p", { class: "faint" }, `and ${found.more} more tasks`) : null,
    ];
  }

  _general(item) {
    return h("section", { class: "card why" }, h("p", {}, prose(item.why)), h("p", {}, h("span", { class: "k" }, "By itself: "), prose(item.next)), commands(item.commands));
  }

  _failed(item) {
    return h("section", { class: "card why bad" }, h("div", { class: "title" }, h("h3", {}, named(item.resource)), badge(`${String(item.action ?? "").toUpperCase()}_FAILED`)),
      h("p", {}, prose(item.reason)), commands(item.commands));
  }

  _task(item) {
    const isHeld = item.state === "held";
    return h("section", { class: `card why ${isHeld ? "held" : ""}` },
      h("div", { class: "title" }, h("h3", {}, named(item.resource)), h("span", { class: `badge ${isHeld ? "held" : item.state === "running" ? "run" : "wait"}` }, glyph(isHeld ? "held" : item.state === "running" ? "run" : "wait"), `${item.action} ${item.state}`)),
      named(item.type, { class: "name faint" }),
      h("p", {}, prose(item.why)), h("p", {}, h("span", { class: "k" }, "By itself: "), prose(item.next)),
      h("p", { class: "faint" }, item.since ? ["since ", ago(item.since)] : null, item.attempt ? ` · attempt ${item.attempt}` : null, item.held_by ? ` · ${item.held_by.replace(/\/[^/]*$/, "")}` : null),
      isHeld ? h("div", { class: "actions" }, button("Continue", () => this._act("continue", item)), button("Step", () => this._act("step", item))) : null,
      commands(item.commands));
  }

  async _act(name, item) {
    const { api, say, refresh, data } = this._context;
    try {
      await api.send("POST", data.path("actions"), { [name]: { resources: [item.resource] } });
      say(`${spelled(item.resource)} continues.`);
    } catch (error) {
      say(error.message, "error");
    }
    refresh();
  }
}

function commands(found) {
  return found?.length ? h("pre", { class: "commands", tabindex: "0" }, found.map((line) => spelled(line)).join("\n")) : null;
}

