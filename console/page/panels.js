// The tabs of a stack that list what is stored of it.

import { eventsOfBars, isHold, latestAction } from "./attempts.js";
import { DataView } from "./data_view.js";
import { ago, h, named, prose, put, spelled, spelledJson } from "./dom.js";
import { missingWords } from "./event_log.js";
import { ResourceFilter } from "./graph_panel.js";
import { Source } from "./live.js";
import { badge, keyOf, taskWords } from "./states.js";
import { Table } from "./table.js";
import { TimelineView } from "./timeline.js";
import { yamlOf } from "./yaml.js";

/** The timeline, of the latest action or of all. */
export class TimelinePanel {
  /**
   * @param {PanelContext} context
   * @param {URLSearchParams} query
   */
  constructor(context, query) {
    const { data, remember, say, refresh } = context;
    this._data = data;
    this._timeline = new TimelineView((row) => say(`${spelled(row.name)}: ${row.bars.length} ${row.bars.length === 1 ? "bar" : "bars"}.`));
    this._all = h("input", { type: "checkbox", checked: query.has("all"), on: { change: () => {
      remember({ all: this._all.checked ? "1" : null });
      this.view.update({ isForced: true });
    } } });
    this._missing = h("span", { class: "missing", role: "status" });
    const body = h("div", {}, h("div", { class: "bar-row" }, h("label", { class: "check" }, this._all, " All actions, not only the latest"), this._missing), this._timeline.element);
    this.view = new DataView({
      isMoving: () => data.isBusy, subject: "the timeline", sources: [data.stackSource, data.graphSource, data.eventsSource], body, retry: refresh,
      draw: (_stack, { resources }, events) => this._draw(resources, events), isEmpty: (_stack, _graph, events) => events.length === 0,
      empty: () => (data.isBusy ? "Nothing has been tried yet. Bars appear here as soon as a conductor starts a resource." : "No event of this stack is kept any more."),
    });
  }

  /**
   * @param {Resource[]} resources
   * @param {StackEvent[]} events
   */
  _draw(resources, events) {
    const requires = new Map(resources.map((item) => [item.id, item.requires]));
    const since = this._all.checked ? null : latestAction(events);
    this._missing.textContent = missingWords(events, since) ?? "";
    this._timeline.show(eventsOfBars(events, resources), { resources, since, requires, isLive: this._data.isBusy });
  }

  end() {
    this._timeline.end();
  }
}

/** A table of the resources. */
export class ResourcesPanel {
  /**
   * @param {PanelContext} context
   * @param {URLSearchParams} query
   */
  constructor({ data, remember, hash, refresh }, query) {
    this._filter = new ResourceFilter({ query, remember, label: "Search resources" }, () => this.view.update({ isForced: true }));
    /** @type {Table<Resource>} */
    this._table = new Table([
      { title: "Name", cell: (item) => h("a", { href: hash("graph", { resource: item.path }) }, named(item.path)), kind: "grow", order: (item) => item.path },
      { title: "State", cell: (item) => badge(item.status, item.held), order: (item) => keyOf(item.status, item.held) },
      { title: "Type", cell: (item) => named(item.type), order: (item) => item.type },
      { title: "Now", cell: (item) => taskWords(item.task) ?? "", order: (item) => taskWords(item.task) },
      { title: "Changed", cell: (item) => ago(item.updated), kind: "nowrap", order: (item) => Date.parse(item.updated ?? "") || null },
      { title: "Reason", cell: (item) => clip(item.reason), kind: "wide wide-only" },
    ], { caption: "Resources", key: (item) => item.id });
    this.view = new DataView({
      subject: "the resources", sources: [data.graphSource], body: h("div", {}, this._filter.element, this._table.element), retry: refresh,
      draw: ({ resources }) => this._table.show(this._filter.of(resources), "No resource matches."),
      isEmpty: ({ resources }) => resources.length === 0, empty: () => "This stack has no resources.",
    });
  }
}

/** A table of the events, the latest first. */
export class EventsPanel {
  /**
   * @param {PanelContext} context
   * @param {URLSearchParams} query
   */
  constructor({ data, remember, refresh }, query) {
    this._search = h("input", { type: "search", placeholder: "Search by resource, state or reason", "aria-label": "Search events", value: query.get("q") ?? "", on: { input: () => {
      remember({ q: this._search.value });
      this.view.update({ isForced: true });
    } } });
    this._missing = h("span", { class: "missing", role: "status" });
    /** @type {Table<StackEvent>} */
    this._table = new Table([
      { title: "Time", cell: (item) => h("time", { datetime: item.at, title: item.at }, clock(item.at)), kind: "nowrap mono", order: (item) => Date.parse(item.at) },
      { title: "Resource", cell: (item) => named(pathOf(item)), kind: "grow", order: pathOf },
      { title: "State", cell: (item) => badge(item.status, isHold(item)), order: (item) => item.status },
      { title: "Attempt", cell: (item) => (item.attempt ? String(item.attempt) : ""), kind: "num wide-only", order: (item) => item.attempt },
      { title: "Conductor", cell: (item) => (item.conductor ? named(item.conductor) : ""), kind: "wide-only", order: (item) => item.conductor },
      { title: "Reason", cell: (item) => clip(item.reason), kind: "wide" },
    ], { caption: "Events, the latest first", key: (item) => item.id });
    this.view = new DataView({
      subject: "the events", sources: [data.eventsSource], body: h("div", {}, h("div", { class: "bar-row" }, this._search, this._missing), this._table.element), retry: refresh,
      draw: (events) => this._draw(events), isEmpty: (events) => events.length === 0, empty: () => "Nothing has happened yet, or the events were purged.",
    });
  }

  /** @param {StackEvent[]} events */
  _draw(events) {
    const text = this._search.value.toLowerCase();
    this._missing.textContent = missingWords(events, null) ?? "";
    this._table.show(events.filter((item) => !text || `${item.name} ${item.status} ${item.reason}`.toLowerCase().includes(text)).reverse(), "No event matches.");
  }
}

/** @param {StackEvent} event */
function pathOf(event) {
  return event.path && !event.isStack ? `${event.path}/${event.name}` : event.name;
}

/** @param {string} reason */
function clip(reason) {
  return h("span", { class: "clip", title: spelled(reason) }, spelled(reason));
}

/** @param {string} text */
function clock(text) {
  const at = new Date(text);
  return `${at.toLocaleDateString()} ${at.toLocaleTimeString([], { hour12: false })}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** The outputs with their values. */
export class OutputsPanel {
  /** @param {PanelContext} context */
  constructor({ api, data, refresh }) {
    /** @type {Source<StackAnswer>} */
    const source = new Source(async (fresh) => (await api.get(data.path(), { fresh })).stack);
    const body = h("div", { class: "cards" });
    this.view = new DataView({
      subject: "the outputs", sources: [source], body, retry: refresh,
      draw: ({ outputs }) => put(body, outputs.map(outputCard)), isEmpty: ({ outputs }) => !outputs?.length,
      empty: () => "The template has no outputs. Add a section outputs to show addresses, ids and the like here.",
    });
  }
}

/** @param {Output} item */
function outputCard(item) {
  const value = typeof item.output_value === "string" ? prose(item.output_value) : spelledJson(item.output_value);
  return h("section", { class: "card" }, h("h3", {}, named(item.output_key)),
    item.description && item.description !== "No description given" ? h("p", { class: "faint" }, prose(item.description)) : null,
    item.output_error ? h("p", { class: "problem" }, prose(item.output_error)) : h("pre", { tabindex: "0" }, value));
}

/** The template, and the parameters. */
export class TemplatePanel {
  /** @param {PanelContext} context */
  constructor({ api, data, refresh }) {
    const template = new Source((fresh) => api.get(data.path("template"), { fresh }), { isOnce: true });
    const stack = new Source(async (fresh) => (await api.get(data.path(), { fresh })).stack, { isOnce: true });
    const body = h("div", {});
    this.view = new DataView({
      subject: "the template", sources: [template, stack], body, retry: refresh,
      draw: (text, { parameters }) => put(body, h("h2", {}, "Parameters"),
        h("dl", { class: "wide-dl" }, Object.entries(parameters ?? {}).map(([name, value]) => [h("dt", {}, named(name)), h("dd", {}, prose(typeof value === "string" ? value : JSON.stringify(value)))])),
        h("h2", {}, "Template"), h("pre", { tabindex: "0", class: "source" }, yamlOf(text).split("\n").map((line) => `${spelled(line)}\n`))),
    });
  }
}
