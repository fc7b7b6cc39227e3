// One stack: what it is, what can be done with it, and a tab for each way to see it.

import { stackPath } from "./api.js";
import { actionsOf } from "./actions.js";
import { showCompare } from "./compare.js";
import { ago, h, named, prose, put, span } from "./dom.js";
import { repeat } from "./live.js";
import { EventsPanel, GraphPanel, OutputsPanel, ResourcesPanel, TemplatePanel, TimelinePanel } from "./panels.js";
import { eventsOf, resourcesOf } from "./shapes.js";
import { badge } from "./states.js";
import { WhyPanel } from "./why.js";

const BUSY = 1.5;
const IDLE = 5;
const DEEP = 8;
const PAGE = 1000;
const MOST_EVENTS = 20000;

const TABS = [
  ["graph", "Graph", GraphPanel], ["timeline", "Timeline", TimelinePanel], ["resources", "Resources", ResourcesPanel],
  ["events", "Events", EventsPanel], ["outputs", "Outputs", OutputsPanel], ["why", "Why", WhyPanel],
  ["template", "Template", TemplatePanel], ["update", "Update", null],
];

/** The data of a stack that the tabs share, read again and again. */
class StackData {
  constructor(api, name, id) {
    this.api = api;
    this.name = name;
    this.id = id;
    this.stack = null;
    this.resources = null;
    this.events = [];
    this.graph = null;
    this._body = null;
  }

  /** Return the path of the stack, or of something below it. */
  path(...more) {
    return stackPath(this.name, this.id, ...more);
  }

  get isBusy() {
    return this.stack === null || /IN_PROGRESS$/.test(this.stack.stack_status);
  }

  /** Read what has changed. */
  async load(fresh, { events }) {
    const body = await this.api.get(`${this.path()}?resolve_outputs=false`, { fresh });
    this.stack = body.stack;
    const drawn = await this.api.get(`${this.path("graph")}?nested_depth=${DEEP}`, { fresh });
    if (drawn !== this._body) {
      this._body = drawn;
      this.graph = drawn.graph;
      this.resources = resourcesOf(drawn.graph);
    }
    if (events) await this._loadEvents(fresh);
  }

  async _loadEvents(fresh) {
    for (let isMore = true; isMore && this.events.length < MOST_EVENTS;) {
      const after = this.events.length ? `&marker=${encodeURIComponent(this.events.at(-1).id)}` : "";
      const body = await this.api.get(`${this.path("events")}?nested_depth=${DEEP}&sort_dir=asc&limit=${PAGE}${after}`, { fresh });
      this.events = this.events.concat(eventsOf(body, this.id));
      isMore = body.events.length === PAGE;
    }
  }
}

/** Show a stack; return a function that ends it, whose `tab` shows another tab. */
export function showStack({ api, main, parts, say, go }) {
  const [name, id] = parts;
  const data = new StackData(api, name, id);
  const badgePlace = h("span", {});
  const reason = h("p", { class: "reason" });
  const facts = h("p", { class: "facts faint" });
  const acts = h("div", { class: "acts" });
  const held = h("section", { class: "heldbox", hidden: true, "aria-label": "Breakpoints" });
  const problem = h("p", { class: "problem", role: "alert" });
  const panelPlace = h("div", { class: "panel", role: "tabpanel", tabindex: "-1", id: "panel" });
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views of the stack" });
  put(main, h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Stacks"), " /"),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, named(name)), badgePlace, h("span", { class: "grow" }), acts),
    reason, facts, problem, held, tabs, panelPlace);
  document.title = `${name} – Stoker`;

  let current = null;
  let panel = null;
  const context = { data, api, say, go, refresh: () => live?.now(), open: (tab) => go(`#/${["stack", name, id, tab].map(encodeURIComponent).join("/")}`) };
  const actions = actionsOf(context);

  put(tabs, TABS.map(([key, label]) => h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": "panel",
    on: { click: () => context.open(key), keydown: walk } }, label)));

  function walk(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const place = TABS.findIndex(([key]) => key === current);
    const [next] = TABS[(place + step + TABS.length) % TABS.length];
    context.open(next);
    document.getElementById(`tab-${next}`).focus();
    event.preventDefault();
  }

  function tab(key) {
    const found = TABS.find(([other]) => other === key) ?? TABS[0];
    if (found[0] === current) return;
    [current] = found;
    panel?.end?.();
    for (const element of tabs.children) {
      const isIt = element.id === `tab-${current}`;
      element.setAttribute("aria-selected", String(isIt));
      element.tabIndex = isIt ? 0 : -1;
      if (isIt) tabs.scrollLeft = element.offsetLeft - tabs.offsetLeft - 60;
    }
    panelPlace.setAttribute("aria-labelledby", `tab-${current}`);
    panel = current === "update" ? showCompare(context, panelPlace) : new found[2](context, panelPlace);
    if (data.stack) panel.show?.(data);
    live?.now();
  }

  function draw() {
    const { stack } = data;
    const isHeld = (stack.breakpoints ?? []).length > 0 && /IN_PROGRESS$/.test(stack.stack_status);
    put(badgePlace, badge(stack.stack_status, isHeld));
    put(reason, /COMPLETE$/.test(stack.stack_status) ? null : prose(stack.stack_status_reason));
    put(facts, factsOf(stack, data));
    actions.draw(acts, stack);
    actions.drawHeld(held, stack);
    panel?.show?.(data);
  }

  async function load(fresh) {
    await data.load(fresh, { events: panel?.needsEvents ?? false });
    await panel?.load?.(fresh);
    draw();
    // A stack at rest is read less often.
    live?.pace(data.isBusy ? BUSY : IDLE);
  }

  let live = null;
  tab(parts[2]);
  live = repeat(load, BUSY, (error) => {
    problem.textContent = error ? error.message : "";
    if (error?.status === 404) {
      problem.textContent = "This stack does not exist any more, or it is not one of this project.";
      live?.stop();
    }
  });
  const end = () => {
    live.stop();
    panel?.end?.();
  };
  end.tab = tab;
  return end;
}

function factsOf(stack, data) {
  const found = [];
  const add = (label, value) => found.push(h("span", {}, h("span", { class: "k" }, `${label} `), value));
  if (stack.description && stack.description !== "No description") add("", prose(stack.description));
  add("created", ago(stack.creation_time));
  if (stack.updated_time) add("updated", ago(stack.updated_time));
  if (data.resources) add("resources", String(data.resources.length));
  const { deadline, seconds_left: paused } = data.graph?.stack ?? {};
  if (data.isBusy && deadline) add("times out in", span((Date.parse(deadline) - Date.now()) / 1000));
  else if (data.isBusy && paused) add("timeout paused with", `${span(paused)} left`);
  if (stack.stack_owner) add("owner", named(stack.stack_owner));
  add("id", h("code", {}, stack.id));
  return found;
}
