// One stack: what it is, what can be done with it, and a tab for each way to see it.

import { actionsOf } from "./actions.js";
import { ComparePanel } from "./compare.js";
import { DataView } from "./data_view.js";
import { ago, h, named, prose, put, span, until } from "./dom.js";
import { DriftPanel } from "./drift.js";
import { GraphPanel } from "./graph_panel.js";
import { stackPage } from "./horizon.js";
import { Live } from "./live.js";
import { EventsPanel, OutputsPanel, ResourcesPanel, TemplatePanel, TimelinePanel } from "./panels.js";
import { hashOf } from "./route.js";
import { StackData } from "./stack_data.js";
import { badge } from "./states.js";
import { WhyPanel } from "./why.js";

const BUSY = 1.5;
const IDLE = 5;

/** @type {[string, string, new (context: PanelContext, query: URLSearchParams) => Panel][]} */
const TABS = [
  ["graph", "Graph", GraphPanel], ["timeline", "Timeline", TimelinePanel], ["resources", "Resources", ResourcesPanel],
  ["events", "Events", EventsPanel], ["outputs", "Outputs", OutputsPanel], ["why", "Why", WhyPanel],
  ["drift", "Drift", DriftPanel], ["template", "Template", TemplatePanel], ["update", "Update", ComparePanel],
];

/**
 * Show a stack; return a function that ends it, whose `tab` shows another tab.
 *
 * @param {PageContext} context
 * @returns {Leave}
 */
export function showStack(context) {
  const view = new StackView(context);
  view.tab(context.parts[2], context.query);
  return Object.assign(() => view.end(), { tab: (/** @type {string | undefined} */ key, /** @type {URLSearchParams} */ query) => view.tab(key, query) });
}

/** The page of a stack: its header, and the panel of one tab. */
class StackView {
  /** @param {PageContext} page */
  constructor({ api, main, say, go, remember, settings, parts: [name, id] }) {
    this._data = new StackData(api, name, id);
    /** @type {Panel | null} */
    this._panel = null;
    /** @type {string | null} the key of the tab that is shown */
    this._current = null;
    /** @type {StackGraph | undefined} the graph that the header shows */
    this._graph = undefined;
    const refresh = () => this._live.now();
    /** @type {PanelContext} */
    this._context = { data: this._data, api, say, go, remember, settings, refresh, open: (tab, choices) => go(this._hash(tab, choices)), hash: (tab, choices) => this._hash(tab, choices) };
    this._actions = actionsOf(this._context);
    this._badge = h("span", {});
    this._reason = h("p", { class: "reason" });
    this._facts = h("p", { class: "facts faint" });
    this._acts = h("div", { class: "acts", "data-acts": true });
    this._held = h("section", { class: "heldbox", hidden: true, "aria-label": "Breakpoints", "data-acts": true });
    this._place = h("div", { class: "panel", role: "tabpanel", tabindex: "-1", id: "panel" });
    this._tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views of the stack" });
    this._head = new DataView({ subject: "the stack", sources: [this._data.stackSource], body: h("div", {}, this._reason, this._facts, this._held), draw: (stack) => this._draw(stack), retry: refresh });
    this._head.element.classList.add("head");
    this._live = new Live(BUSY, () => this._update());
    this._build(main);
  }

  /** @param {Element} main */
  _build(main) {
    const { name } = this._data;
    put(main, h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Stacks"), " /"),
      h("div", { class: "title" }, h("h1", { tabindex: "-1" }, named(name)), this._badge, h("span", { class: "grow" }), this._acts),
      this._head.element, this._tabs, this._place);
    document.title = `${name} – Stoker`;
    put(this._tabs, TABS.map(([key, label]) => h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": "panel",
      on: { click: () => this._context.open(key), keydown: (event) => this._walk(event) } }, label)));
  }

  /**
   * @param {string | undefined} tab
   * @param {Choices} [choices]
   */
  _hash(tab, choices) {
    return hashOf(["stack", this._data.name, this._data.id, tab], choices);
  }

  /** @param {KeyboardEvent} event */
  _walk(event) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const place = TABS.findIndex(([key]) => key === this._current);
    const [next] = TABS[(place + step + TABS.length) % TABS.length];
    this._context.open(next);
    document.getElementById(`tab-${next}`)?.focus();
    event.preventDefault();
  }

  /**
   * Show a tab with what the address has chosen on it.
   *
   * @param {string | undefined} key
   * @param {URLSearchParams} query
   */
  tab(key, query) {
    const [name, , Panel] = TABS.find(([other]) => other === key) ?? TABS[0];
    if (name === this._current) {
      this._panel?.choose?.(query);
      return;
    }
    this._current = name;
    this._panel?.end?.();
    for (const element of this._tabs.querySelectorAll("button")) {
      const isIt = element.id === `tab-${name}`;
      element.setAttribute("aria-selected", String(isIt));
      element.tabIndex = isIt ? 0 : -1;
      if (isIt) this._tabs.scrollLeft = element.offsetLeft - this._tabs.offsetLeft - 60;
    }
    this._place.setAttribute("aria-labelledby", `tab-${name}`);
    this._panel = new Panel(this._context, query);
    put(this._place, this._panel.view.element);
    const { stackSource, graphSource } = this._data;
    this._live.follow([...new Set([stackSource, graphSource, ...this._panel.view.sources])]);
    this._update();
  }

  _update() {
    const { state } = this._data.stackSource;
    if (state.error?.status === 404) {
      state.error.message = "This stack does not exist any more, or it is not one of this project.";
      this._live.stop();
    }
    this._head.update({ isForced: this._data.graphSource.value !== this._graph });
    this._graph = this._data.graphSource.value;
    // A stack at rest is read less often.
    this._live.pace(this._data.isBusy ? BUSY : IDLE);
    // One sentence says that the API does not answer.
    this._place.hidden = this._head.phase === "failed";
    // What is above it comes first, or it would be pushed down under the reader's eyes.
    this._place.classList.toggle("waits", this._head.phase === "loading");
    this._panel?.view.update({ isSilent: this._head.phase === "stale" });
  }

  /** @param {StackAnswer} stack */
  _draw(stack) {
    const isHeld = (stack.breakpoints ?? []).length > 0 && /IN_PROGRESS$/.test(stack.stack_status);
    put(this._badge, badge(stack.stack_status, isHeld));
    put(this._reason, /COMPLETE$/.test(stack.stack_status) ? null : prose(stack.stack_status_reason));
    put(this._facts, factsOf(stack, this._data, stackPage(this._context.settings.horizon, stack.id)));
    this._actions.draw(this._acts, stack);
    this._actions.drawHeld(this._held, stack);
  }

  end() {
    this._live.stop();
    this._panel?.end?.();
  }
}

/**
 * @param {StackAnswer} stack
 * @param {StackData} data
 * @param {string | null} page address of Horizon's page of the stack.
 */
function factsOf(stack, data, page) {
  const fact = (/** @type {string} */ label, /** @type {Child} */ value) => h("span", {}, h("span", { class: "k" }, `${label} `), value);
  return [
    stack.description && stack.description !== "No description" ? fact("", prose(stack.description)) : null,
    fact("created", ago(stack.creation_time)),
    stack.updated_time ? fact("updated", ago(stack.updated_time)) : null,
    ...graphFacts(data, fact),
    stack.stack_owner ? fact("owner", named(stack.stack_owner)) : null,
    fact("id", h("code", {}, stack.id)),
    page ? h("a", { href: page, target: "_blank", rel: "noopener noreferrer" }, "Show in Horizon") : null,
  ];
}

/**
 * @param {StackData} data
 * @param {(label: string, value: Child) => Child} fact
 */
function graphFacts(data, fact) {
  const graph = data.graphSource.value;
  if (!graph) return [];
  const count = graph.resources.length;
  const { deadline, seconds_left: paused } = graph.stack;
  const number = fact("resources", graph.more_resources ? `more than ${count.toLocaleString("en")}` : String(count));
  if (data.isBusy && deadline) return [number, fact("times out in", until(deadline))];
  return data.isBusy && paused ? [number, fact("timeout paused with", `${span(paused)} left`)] : [number];
}
