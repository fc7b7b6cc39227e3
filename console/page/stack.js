// One stack: what it is, what can be done with it, and a tab for each way to see it.

import { actionsOf } from "./actions.js";
import { ComparePanel } from "./compare.js";
import { DataView } from "./data_view.js";
import { ago, h, named, prose, put, span, until } from "./dom.js";
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

const TABS = [
  ["graph", "Graph", GraphPanel], ["timeline", "Timeline", TimelinePanel], ["resources", "Resources", ResourcesPanel],
  ["events", "Events", EventsPanel], ["outputs", "Outputs", OutputsPanel], ["why", "Why", WhyPanel],
  ["template", "Template", TemplatePanel], ["update", "Update", ComparePanel],
];

/** Show a stack; return a function that ends it, whose `tab` shows another tab. */
export function showStack({ api, main, parts, query, remember, say, go, settings }) {
  const view = new StackView({ api, main, say, go, remember, settings, name: parts[0], id: parts[1] });
  view.tab(parts[2], query);
  const end = () => view.end();
  end.tab = (key, choices) => view.tab(key, choices);
  return end;
}

/** The page of a stack: its header, and the panel of one tab. */
class StackView {
  constructor({ api, main, say, go, remember, settings, name, id }) {
    this._data = new StackData(api, name, id);
    this._settings = settings;
    this._panel = null;
    this._current = null;
    const refresh = () => this._live.now();
    this._context = { data: this._data, api, say, go, remember, settings, refresh, open: (tab, choices) => go(this._hash(tab, choices)), hash: (tab, choices) => this._hash(tab, choices) };
    this._actions = actionsOf(this._context);
    this._build(main, refresh);
    this._live = new Live(BUSY, () => this._update());
  }

  _build(main, retry) {
    const { name, stackSource, graphSource } = this._data;
    this._badge = h("span", {});
    this._reason = h("p", { class: "reason" });
    this._facts = h("p", { class: "facts faint" });
    this._acts = h("div", { class: "acts" });
    this._held = h("section", { class: "heldbox", hidden: true, "aria-label": "Breakpoints" });
    this._place = h("div", { class: "panel", role: "tabpanel", tabindex: "-1", id: "panel" });
    this._tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views of the stack" });
    this._head = new DataView({ subject: "the stack", sources: [stackSource], body: h("div", {}, this._reason, this._facts, this._held), draw: (stack) => this._draw(stack), retry });
    put(main, h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Stacks"), " /"),
      h("div", { class: "title" }, h("h1", { tabindex: "-1" }, named(name)), this._badge, h("span", { class: "grow" }), this._acts),
      this._head.element, this._tabs, this._place);
    document.title = `${name} – Stoker`;
    put(this._tabs, TABS.map(([key, label]) => h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": "panel",
      on: { click: () => this._context.open(key), keydown: (event) => this._walk(event) } }, label)));
    this._graphSource = graphSource;
  }

  _hash(tab, choices) {
    return hashOf(["stack", this._data.name, this._data.id, tab], choices);
  }

  _walk(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const place = TABS.findIndex(([key]) => key === this._current);
    const [next] = TABS[(place + step + TABS.length) % TABS.length];
    this._context.open(next);
    document.getElementById(`tab-${next}`).focus();
    event.preventDefault();
  }

  /** Show a tab with what the address has chosen on it. */
  tab(key, query) {
    const [name, , Panel] = TABS.find(([other]) => other === key) ?? TABS[0];
    if (name === this._current) {
      this._panel.choose?.(query);
      return;
    }
    this._current = name;
    this._panel?.end?.();
    for (const element of this._tabs.children) {
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
    this._panel?.view.update({ isSilent: this._head.phase === "stale" });
  }

  _draw(stack) {
    const isHeld = (stack.breakpoints ?? []).length > 0 && /IN_PROGRESS$/.test(stack.stack_status);
    put(this._badge, badge(stack.stack_status, isHeld));
    put(this._reason, /COMPLETE$/.test(stack.stack_status) ? null : prose(stack.stack_status_reason));
    put(this._facts, factsOf(stack, this._data, stackPage(this._settings.horizon, stack.id)));
    this._actions.draw(this._acts, stack);
    this._actions.drawHeld(this._held, stack);
  }

  end() {
    this._live.stop();
    this._panel?.end?.();
  }
}

function factsOf(stack, data, page) {
  const found = [];
  const add = (label, value) => found.push(h("span", {}, h("span", { class: "k" }, `${label} `), value));
  if (stack.description && stack.description !== "No description") add("", prose(stack.description));
  add("created", ago(stack.creation_time));
  if (stack.updated_time) add("updated", ago(stack.updated_time));
  const graph = data.graphSource.value;
  if (graph) add("resources", graph.more_resources ? `the first ${graph.resources.length.toLocaleString("en")}, there are more` : String(graph.resources.length));
  const { deadline, seconds_left: paused } = graph?.stack ?? {};
  if (data.isBusy && deadline) add("times out in", until(deadline));
  else if (data.isBusy && paused) add("timeout paused with", `${span(paused)} left`);
  if (stack.stack_owner) add("owner", named(stack.stack_owner));
  add("id", h("code", {}, stack.id));
  if (page) add("", h("a", { href: page, target: "_blank", rel: "noopener noreferrer" }, "Show in Horizon"));
  return found;
}
