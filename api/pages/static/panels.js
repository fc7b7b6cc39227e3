// The tabs of a stack that show what is stored of it.

import { ago, button, h, named, prose, put, spelled } from "./dom.js";
import { GraphView } from "./graph.js";
import { eventsOfBars, latestAction } from "./attempts.js";
import { badge, keyOf, taskWords } from "./states.js";
import { table } from "./table.js";
import { TimelineView } from "./timeline.js";

/** The graph, with what is known of the chosen resource beside it. */
export class GraphPanel {
  constructor(context, place) {
    this._context = context;
    this._view = new GraphView((id, isEntered) => this._pick(id, isEntered));
    this._side = h("aside", { class: "side", "aria-label": "The chosen resource" });
    this._empty = h("p", { class: "empty", hidden: true }, "This stack has no resources.");
    put(place, h("div", { class: "split" }, this._view.element, this._side), this._empty);
    this._place = place;
    this._attributes = null;
    this._shown = "";
  }

  show(data) {
    if (!data.resources) return;
    this._view.show(data.resources);
    this._empty.hidden = data.resources.length > 0;
    this._draw();
  }

  _pick(id, isEntered) {
    this._attributes = null;
    this._shown = "";
    this._draw();
    if (isEntered) this._side.querySelector("button,a")?.focus();
  }

  _draw() {
    const { data } = this._context;
    const id = this._view.chosen;
    const item = data.resources?.find((one) => one.id === id);
    const text = JSON.stringify([item, this._attributes, data.resources?.length]);
    if (text === this._shown) return;
    this._shown = text;
    this._side.classList.toggle("open", Boolean(item));
    put(this._side, item ? this._details(item) : this._sums(data.resources ?? []));
  }

  _sums(resources) {
    const counts = new Map();
    for (const item of resources) {
      const key = keyOf(item.status, item.held);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const sample = { ok: "_COMPLETE", run: "_IN_PROGRESS", bad: "_FAILED", held: "", wait: "INIT_COMPLETE", gone: "DELETE_COMPLETE", off: "SUSPEND_COMPLETE" };
    return [h("h2", {}, "Resources"), h("ul", { class: "sums" }, [...counts].map(([key, count]) => h("li", {}, badge(sample[key], key === "held"), h("b", {}, String(count))))),
      h("p", { class: "faint" }, "Choose a resource to see more. Drag to move, use the wheel or + and − to zoom.")];
  }

  _details(item) {
    const row = (label, value) => (value ? [h("dt", {}, label), h("dd", {}, value)] : null);
    return [
      h("div", { class: "title" }, h("h2", {}, named(item.name)), h("span", { class: "grow" }), button("×", () => this._close(), { "aria-label": "Close", class: "quiet" })),
      badge(item.status, item.held),
      item.held ? h("p", { class: "heldline" }, `Held at ${item.held}. `, button("Continue", () => this._continue(item))) : null,
      h("dl", {},
        row("Type", named(item.type)), row("Task", taskWords(item.task)), row("Reason", item.reason ? prose(item.reason) : null),
        row("Changed", ago(item.updated)),
        row("In", item.parent ? named(item.path) : null),
        row("Needs", this._links(item.requires)), row("Needed by", this._links(item.requiredBy.map((name) => `${item.stack}/${name}`)))),
      item.hasChild ? button("Unfold or fold its nested stack", () => this._view.toggle(item.id)) : null,
      this._attributes ? h("div", {}, h("h3", {}, "Attributes"), h("pre", {}, spelledJson(this._attributes))) : button("Show attributes", () => this._load(item)),
    ];
  }

  _close() {
    this._view.choose(null);
    this._pick(null);
    this._view.svg.focus();
  }

  _links(ids) {
    if (!ids.length) return null;
    const known = ids.slice(0, 12).map((id) => button(named(id.slice(id.indexOf("/") + 1)), () => {
      this._view.choose(id, { center: true });
      this._pick(id);
    }, { class: "link" }));
    return [known.flatMap((one, index) => (index ? [", ", one] : [one])), ids.length > 12 ? ` and ${ids.length - 12} more` : null];
  }

  async _continue(item) {
    const { api, data, say, refresh } = this._context;
    try {
      await api.send("POST", data.path("actions"), { continue: { resources: [item.path], hook: item.held } });
      say(`${spelled(item.name)} continues.`);
    } catch (error) {
      say(error.message, "error");
    }
    refresh();
  }

  async _load(item) {
    const { api, say } = this._context;
    try {
      const body = await api.get(["stacks", item.stackName, item.stack, "resources", item.name].map(encodeURIComponent).join("/"));
      const { attributes, physical_resource_id: physical } = body.resource;
      this._attributes = { physical_resource_id: physical, ...attributes };
      this._shown = "";
      this._draw();
    } catch (error) {
      say(error.message, "error");
    }
  }

  end() {
    this._view.end();
  }
}

/** Return JSON as a text to read. */
export function spelledJson(value) {
  return JSON.stringify(value, null, 2).split("\n").map(spelled).join("\n");
}

/** The timeline, of the latest action or of all. */
export class TimelinePanel {
  needsEvents = true;

  constructor(context, place) {
    this._context = context;
    this._view = new TimelineView((row) => context.say(`${spelled(row.name)}: ${row.bars.length} ${row.bars.length === 1 ? "bar" : "bars"}.`));
    this._all = h("input", { type: "checkbox", on: { change: () => this.show(context.data) } });
    this._cut = h("span", { class: "faint", hidden: true }, "Earlier events are not kept any more.");
    put(place, h("div", { class: "bar-row" }, h("label", { class: "check" }, this._all, " All actions, not only the latest"), this._cut), this._view.element);
  }

  show(data) {
    const resources = data.resources ?? [];
    const requires = new Map(resources.map((item) => [item.id, item.requires]));
    const since = this._all.checked ? null : latestAction(data.events);
    this._cut.hidden = !data.events.length || (since === null ? isWhole(data.events) : true);
    this._view.show(eventsOfBars(data.events, resources), { since, requires, isLive: data.isBusy });
  }

  end() {
    this._view.end();
  }
}

function isWhole(events) {
  return events[0].isStack && events[0].isRoot && events[0].status === "CREATE_IN_PROGRESS";
}

/** A table of the resources. */
export class ResourcesPanel {
  constructor(context, place) {
    this._text = "";
    this._search = h("input", { type: "search", placeholder: "Search by name or type", "aria-label": "Search resources", on: { input: () => this.show(context.data) } });
    this._table = table([
      ["Name", (item) => named(item.path), "grow"], ["State", (item) => badge(item.status, item.held), ""],
      ["Type", (item) => named(item.type), ""], ["Now", (item) => taskWords(item.task) ?? "", ""],
      ["Changed", (item) => ago(item.updated), "nowrap"], ["Reason", (item) => h("span", { class: "clip", title: spelled(item.reason) }, spelled(item.reason)), "wide-only"],
    ], { caption: "Resources" });
    put(place, h("div", { class: "bar-row" }, this._search), this._table.element);
  }

  show(data) {
    const text = this._search.value.toLowerCase();
    const all = data.resources ?? [];
    const found = all.filter((item) => !text || item.path.toLowerCase().includes(text) || item.type.toLowerCase().includes(text));
    this._table.show(found, all.length ? "No resource matches." : "This stack has no resources.");
  }
}

/** A table of the events, the latest first. */
export class EventsPanel {
  needsEvents = true;

  constructor(context, place) {
    this._search = h("input", { type: "search", placeholder: "Search by resource, state or reason", "aria-label": "Search events", on: { input: () => this.show(context.data) } });
    this._table = table([
      ["Time", (item) => h("time", { datetime: item.at, title: item.at }, clock(item.at)), "nowrap mono"],
      ["Resource", (item) => named(item.path && !item.isStack ? `${item.path}/${item.name}` : item.name), "grow"],
      ["State", (item) => badge(item.status, /paused until Hook/i.test(item.reason)), ""],
      ["Attempt", (item) => (item.attempt ? String(item.attempt) : ""), "num wide-only"],
      ["Conductor", (item) => (item.conductor ? named(item.conductor) : ""), "wide-only"],
      ["Reason", (item) => h("span", { class: "clip", title: spelled(item.reason) }, spelled(item.reason)), "wide"],
    ], { caption: "Events, the latest first" });
    put(place, h("div", { class: "bar-row" }, this._search), this._table.element);
  }

  show(data) {
    const text = this._search.value.toLowerCase();
    const found = data.events.filter((item) => !text || `${item.name} ${item.status} ${item.reason}`.toLowerCase().includes(text)).reverse();
    this._table.show(found, data.events.length ? "No event matches." : "Nothing has happened yet, or the events were purged.");
  }
}

function clock(text) {
  const at = new Date(text);
  return `${at.toLocaleDateString()} ${at.toLocaleTimeString([], { hour12: false })}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** The outputs with their values. */
export class OutputsPanel {
  constructor(context, place) {
    this._context = context;
    this._outputs = null;
    this._place = place;
  }

  async load(fresh) {
    const { api, data } = this._context;
    this._outputs = (await api.get(data.path(), { fresh })).stack.outputs ?? [];
  }

  show() {
    if (!this._outputs) return;
    const text = JSON.stringify(this._outputs);
    if (text === this._shown) return;
    this._shown = text;
    put(this._place, this._outputs.length ? h("div", { class: "cards" }, this._outputs.map((item) => h("section", { class: "card" },
      h("h3", {}, named(item.output_key)), item.description && item.description !== "No description given" ? h("p", { class: "faint" }, prose(item.description)) : null,
      item.output_error ? h("p", { class: "problem" }, prose(item.output_error)) : h("pre", { tabindex: "0" }, typeof item.output_value === "string" ? prose(item.output_value) : spelledJson(item.output_value)))))
      : h("p", { class: "empty" }, "The template has no outputs. Add a section outputs to show addresses, ids and the like here."));
  }
}

/** The template, and the parameters. */
export class TemplatePanel {
  constructor(context, place) {
    put(place, h("p", { class: "faint" }, "Loading …"));
    const { api, data, say } = context;
    Promise.all([api.get(data.path("template")), api.get(data.path())]).then(([template, body]) => {
      const parameters = Object.entries(body.stack.parameters ?? {});
      put(place, h("h2", {}, "Parameters"), h("dl", { class: "wide-dl" }, parameters.map(([name, value]) => [h("dt", {}, named(name)), h("dd", {}, prose(typeof value === "string" ? value : JSON.stringify(value)))])),
        h("h2", {}, "Template"), h("pre", { tabindex: "0", class: "source" }, spelledJson(template)));
    }, (error) => say(error.message, "error"));
  }
}

