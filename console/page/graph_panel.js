// The graph of a stack, with filters above it and what is known of the chosen resource beside it.

import { DataView } from "./data_view.js";
import { ago, button, h, named, prose, put, putFocused, spelled, spelledJson } from "./dom.js";
import { countsOf, matching, withHolders } from "./filters.js";
import { GraphView } from "./graph.js";
import { grouped, salientOf } from "./groups.js";
import { resourcePage } from "./horizon.js";
import { Source } from "./live.js";
import { STATES, STATE_KEYS, badge, glyph, taskWords } from "./states.js";

const LINKS = 12;
/** @type {Record<StateKey, string>} */
const SAMPLES = { ok: "_COMPLETE", run: "_IN_PROGRESS", bad: "_FAILED", held: "", wait: "INIT_COMPLETE", gone: "DELETE_COMPLETE", off: "SUSPEND_COMPLETE" };

/** Buttons that choose states, and a search: which resources the graph and the list show. */
export class ResourceFilter {
  /**
   * @param {object} parts
   * @param {URLSearchParams} parts.query holds what is chosen at first.
   * @param {(choices: Choices) => void} parts.remember keeps what is chosen.
   * @param {string} parts.label names the search.
   * @param {() => void} changed is called when something else is chosen.
   */
  constructor({ query, remember, label }, changed) {
    const keys = (query.get("state") ?? "").split(",");
    this._states = new Set(STATE_KEYS.filter((key) => keys.includes(key)));
    this._changed = () => {
      remember({ q: this._search.value, state: [...this._states].join(",") });
      changed();
    };
    this._search = h("input", { type: "search", placeholder: "Filter by name or type", "aria-label": label, value: query.get("q") ?? "", on: { input: this._changed } });
    this._keys = h("span", { class: "keys", role: "group", "aria-label": "Filter by state" });
    this._count = h("span", { class: "faint", role: "status" });
    this.element = h("div", { class: "bar-row filter" }, this._search, this._keys, this._count);
    this._drawn = "";
  }

  get isActive() {
    return this._states.size > 0 || this._search.value.trim() !== "";
  }

  /**
   * Return the resources that are to be shown, and say how many they are.
   *
   * @param {Resource[]} resources
   */
  of(resources) {
    const matches = matching(resources, { text: this._search.value, states: this._states });
    this._count.textContent = this.isActive ? `${matches.length.toLocaleString("en")} of ${resources.length.toLocaleString("en")}` : "";
    this._draw(countsOf(resources));
    return matches;
  }

  /** @param {Map<StateKey, number>} counts */
  _draw(counts) {
    const keys = STATE_KEYS.filter((key) => counts.has(key) || this._states.has(key));
    const text = JSON.stringify([keys.map((key) => [key, counts.get(key)]), [...this._states]]);
    if (text === this._drawn) return;
    this._drawn = text;
    putFocused(this._keys, keys.map((key) => h("button", { type: "button", class: `key-button ${key}`, "data-key": key, "aria-pressed": String(this._states.has(key)),
      on: { click: () => this._toggle(key) } }, glyph(key), STATES[key].word, h("b", {}, (counts.get(key) ?? 0).toLocaleString("en")))));
  }

  /** @param {StateKey} key */
  _toggle(key) {
    if (!this._states.delete(key)) this._states.add(key);
    this._changed();
  }
}

/** The tab "Graph". */
export class GraphPanel {
  /**
   * @param {PanelContext} context
   * @param {URLSearchParams} query
   */
  constructor(context, query) {
    this._context = context;
    this._graph = new GraphView((id, isEntered) => this._pick(id, isEntered));
    this._side = h("aside", { class: "side", "aria-label": "The chosen resource" });
    this._filter = new ResourceFilter({ query, remember: context.remember, label: "Filter the graph" }, () => {
      this.view.update({ isForced: true });
      this._graph.fit();
    });
    this._nobody = h("p", { class: "empty", hidden: true }, "No resource matches.");
    /** @type {DataView | null} the attributes of the chosen resource, once they are asked for */
    this._details = null;
    this._drawn = "";
    /** @type {Map<string, Resource>} the groups that are shown, by their ids */
    this._groups = new Map();
    this._goal = query.get("resource");
    const body = h("div", {}, this._filter.element, h("div", { class: "split" }, h("div", {}, this._nobody, this._graph.element), this._side));
    this.view = new DataView({
      subject: "the graph", sources: [context.data.graphSource], body, retry: context.refresh,
      draw: ({ resources }) => this._draw(resources), isEmpty: ({ resources }) => resources.length === 0, empty: () => "This stack has no resources.",
    });
  }

  /**
   * Choose the resource that the address names.
   *
   * @param {URLSearchParams} query
   */
  choose(query) {
    this._goal = query.get("resource");
    this._chooseGoal(this._context.data.resources ?? []);
  }

  end() {
    this._graph.end();
  }

  /** @param {Resource[]} resources */
  _draw(resources) {
    const matches = this._filter.of(resources);
    const { isActive } = this._filter;
    const shown = grouped(isActive ? withHolders(matches, resources) : resources);
    this._groups = new Map(shown.filter((item) => item.members).map((item) => [item.id, item]));
    this._graph.show(shown, { isUnfolded: isActive });
    this._nobody.hidden = matches.length > 0;
    this._graph.element.hidden = matches.length === 0;
    this._chooseGoal(resources);
    this._drawSide();
  }

  /** @param {Resource[]} resources */
  _chooseGoal(resources) {
    const item = this._goal && resources.find((one) => one.path === this._goal);
    if (!item) return;
    this._goal = null;
    this._graph.reveal(item.id);
    this._pick(item.id);
  }

  /**
   * @param {string | null} id
   * @param {boolean} [isEntered] the user wants to go on there.
   */
  _pick(id, isEntered) {
    this._details = null;
    this._drawn = "";
    const item = this._itemOf(id);
    this._context.remember({ resource: item && !item.members ? item.path : null });
    this._drawSide();
    /** @type {HTMLElement | null} */
    const control = this._side.querySelector("button,a");
    if (isEntered) control?.focus();
  }

  /** @param {string | null} id */
  _itemOf(id) {
    return this._groups.get(id ?? "") ?? this._context.data.resources?.find((one) => one.id === id);
  }

  _drawSide() {
    const resources = this._context.data.resources ?? [];
    const item = this._itemOf(this._graph.chosen);
    const text = JSON.stringify(item ?? [...countsOf(resources)]);
    this._details?.update();
    if (text === this._drawn) return;
    this._drawn = text;
    this._side.classList.toggle("open", Boolean(item));
    put(this._side, item?.members ? this._aboutGroup(item) : item ? this._about(item) : sums(resources));
  }

  /**
   * @param {Resource} item
   * @returns {Child[]}
   */
  _about(item) {
    const row = (/** @type {string} */ label, /** @type {Child} */ value) => (value ? [h("dt", {}, label), h("dd", {}, value)] : null);
    const page = resourcePage(this._context.settings.horizon, item);
    return [
      this._title(item),
      badge(item.status, item.held),
      item.held ? h("p", { class: "heldline" }, `Held at ${item.held}. `, button("Continue", () => this._continue(item))) : null,
      h("dl", {},
        row("Type", named(item.type)), row("Task", taskWords(item.task)), row("Reason", item.reason ? prose(item.reason) : null),
        row("Changed", ago(item.updated)), row("Id", item.physical ? h("code", {}, spelled(item.physical)) : null),
        row("In", item.parent ? named(item.path) : null),
        row("Needs", this._links(item.requires)), row("Needed by", this._links(item.requiredBy.map((name) => `${item.stack}/${name}`)))),
      page ? h("p", {}, h("a", { href: page, target: "_blank", rel: "noopener noreferrer" }, "Show in Horizon")) : null,
      item.hasChild ? button("Unfold or fold its nested stack", () => this._graph.toggle(item.id)) : null,
      this._details?.element ?? button("Show attributes", (event) => this._showAttributes(item, event.target)),
    ];
  }

  /** @param {Resource} item */
  _title(item) {
    return h("div", { class: "title" }, h("h2", {}, named(item.name)), h("span", { class: "grow" }), button("×", () => this._close(), { "aria-label": "Close", class: "quiet" }));
  }

  /**
   * @param {Resource} group
   * @returns {Child[]}
   */
  _aboutGroup(group) {
    const salient = salientOf(group);
    return [
      this._title(group), h("p", { class: "faint" }, named(group.type)), stateSums(group.members ?? []),
      salient.length ? h("p", {}, "Failed or held: ", this._links(salient.map((item) => item.id))) : null,
      button("Unfold or fold the group", () => this._graph.toggle(group.id)),
    ];
  }

  _close() {
    this._graph.choose(null);
    this._pick(null);
    this._graph.svg.focus();
  }

  /** @param {string[]} ids */
  _links(ids) {
    if (!ids.length) return null;
    const links = ids.slice(0, LINKS).map((id) => button(named(id.slice(id.indexOf("/") + 1)), () => {
      this._graph.reveal(id);
      this._pick(id);
    }, { class: "link" }));
    return [links.flatMap((one, index) => (index ? [", ", one] : [one])), ids.length > LINKS ? ` and ${ids.length - LINKS} more` : null];
  }

  /** @param {Resource} item */
  async _continue(item) {
    const { api, data, say, refresh } = this._context;
    try {
      await api.send("POST", data.path("actions"), { continue: { resources: [item.path], hook: item.held } });
      say(`${spelled(item.name)} continues.`);
    } catch (error) {
      say(/** @type {Error} */ (error).message, "error");
    }
    await refresh();
  }

  /**
   * Read the attributes in place of the button.
   *
   * @param {Resource} item
   * @param {Element} place
   */
  async _showAttributes(item, place) {
    const { api } = this._context;
    const path = ["stacks", item.stackName, item.stack, "resources", item.name].map((part) => encodeURIComponent(part ?? "")).join("/");
    const source = new Source(async (fresh) => (await api.get(path, { fresh })).resource);
    const body = h("div", {});
    const read = async () => {
      const reading = source.refresh(true);
      details.update();
      await reading;
      details.update();
    };
    const details = new DataView({
      subject: "the attributes", sources: [source], body, retry: read,
      draw: ({ attributes, physical_resource_id: physical }) => put(body, h("h3", {}, "Attributes"), h("pre", {}, spelledJson({ physical_resource_id: physical, ...attributes }))),
    });
    this._details = details;
    place.replaceWith(details.element);
    await read();
  }
}

/** @param {Resource[]} resources */
function sums(resources) {
  return [h("h2", {}, "Resources"), stateSums(resources),
    h("p", { class: "faint" }, "Choose a resource to see more. Drag to move, use the wheel or + and − to zoom.")];
}

/** @param {Resource[]} resources */
function stateSums(resources) {
  return h("ul", { class: "sums" }, [...countsOf(resources)].map(([key, count]) => h("li", {}, badge(SAMPLES[key], key === "held"), h("b", {}, count.toLocaleString("en")))));
}
