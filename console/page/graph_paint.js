// Paints the resources and the edges of a graph that are in view.

import { put, s, spelled } from "./dom.js";
import { countsOf } from "./filters.js";
import { NODE_H } from "./scene.js";
import { STATES, STATE_KEYS, keyOf, shape, words } from "./states.js";
import { boxOfItem, doMeet } from "./viewport.js";

/** The scale below which resources are plain boxes. */
export const FAR = 0.65;
const FONT = '12.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", "DejaVu Sans", sans-serif';
/** @type {StateKey[]} */
const SALIENT = ["run", "held", "bad"];
const ICON = 28;
const FOLD = 22;
const NARROW = 74;
const WIDE = 220;

const pen = document.createElement("canvas").getContext("2d");
if (pen) pen.font = FONT;

/**
 * Return the width of a text in a box.
 *
 * @param {string} text
 */
function measure(text) {
  return pen ? pen.measureText(text).width : 7 * text.length;
}

/**
 * Return the width of a resource's box: its name, as far as it is shown.
 *
 * @param {Resource} item
 */
export function widthOf(item) {
  return Math.round(Math.min(WIDE, Math.max(NARROW, measure(spelled(item.name)) + ICON + 12 + (item.hasChild ? FOLD : 0))));
}

/**
 * Return a text, cut where it is wider than the room for it.
 *
 * @param {string} text
 * @param {number} room
 */
function cut(text, room) {
  if (measure(text) <= room) return text;
  const letters = [...text];
  let [least, most] = [0, letters.length];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (measure(`${letters.slice(0, middle).join("")}…`) <= room) least = middle;
    else most = middle - 1;
  }
  return `${letters.slice(0, least).join("")}…`;
}

/**
 * The elements of a resource.
 *
 * @typedef {{group: SVGGElement, icon: SVGGElement, title: SVGTitleElement, mix: SVGGElement, width: number, key: StateKey | null}} Node
 */

/** The elements of the resources and edges; those out of view are not in the page. */
export class Painter {
  constructor() {
    this._edges = s("path", { class: "edges" });
    this._lit = s("path", { class: "edges lit" });
    this._far = s("g", { class: "far" });
    this._nodes = s("g", {});
    this.element = s("g", {}, this._edges, this._lit, this._far, this._nodes);
    /** @type {Map<string, Node>} */
    this._drawn = new Map();
  }

  /** Forget what is painted: its places have changed. */
  clear() {
    this._drawn.clear();
    this._nodes.replaceChildren();
  }

  /**
   * Paint the states anew.
   *
   * @param {Map<string, Resource>} resources
   */
  repaint(resources) {
    for (const [id, node] of this._drawn) {
      const resource = resources.get(id);
      if (resource) paint(node, resource);
    }
  }

  /**
   * Mark the chosen resource.
   *
   * @param {string | null} id
   */
  mark(id) {
    for (const [other, node] of this._drawn) node.group.classList.toggle("chosen", other === id);
  }

  /**
   * Paint the resources of a part of the scene.
   *
   * @param {SceneItem[]} items that are in view.
   * @param {Map<string, Resource>} resources
   * @param {{isFar: boolean, chosen: SceneItem | undefined}} options
   */
  paintItems(items, resources, { isFar, chosen }) {
    if (isFar) {
      this.clear();
      this._paintFar(items, resources, chosen);
      return;
    }
    this._far.replaceChildren();
    const ids = new Set(items.map((item) => item.id));
    for (const [id, node] of this._drawn) {
      if (ids.has(id)) continue;
      node.group.remove();
      this._drawn.delete(id);
    }
    for (const item of items) {
      const resource = resources.get(item.id);
      if (this._drawn.has(item.id) || !resource) continue;
      const node = nodeOf(item, resource);
      node.group.classList.toggle("chosen", item.id === chosen?.id);
      this._drawn.set(item.id, node);
      this._nodes.append(node.group);
    }
  }

  /**
   * Paint the resources as plain boxes, those of one state as one path.
   *
   * @param {SceneItem[]} items
   * @param {Map<string, Resource>} resources
   * @param {SceneItem | undefined} chosen
   */
  _paintFar(items, resources, chosen) {
    const ring = chosen && s("rect", { class: "ring", x: chosen.x - 8, y: chosen.y - 8, width: chosen.w + 16, height: chosen.h + 16 });
    put(this._far, [...statePaths(items, resources)].map(([key, d]) => s("path", { class: `far-${key}`, d })), ring);
  }

  /**
   * Paint the edges that are in view; those of the chosen resource stand out.
   *
   * @param {Scene["edges"]} edges
   * @param {Map<string, SceneItem>} places
   * @param {import("./viewport.js").Box} box
   * @param {string | null} chosen
   */
  paintEdges(edges, places, box, chosen) {
    const paths = { all: "", lit: "" };
    for (const { from, to } of edges) {
      const start = places.get(from);
      const end = places.get(to);
      if (start && end) paths[from === chosen || to === chosen ? "lit" : "all"] += curve(start, end, box);
    }
    this._edges.setAttribute("d", paths.all);
    this._lit.setAttribute("d", paths.lit);
  }
}

/**
 * Return the boxes of items as one path for each state; what matters most comes last, over the others.
 *
 * @param {SceneItem[]} items
 * @param {Map<string, Resource>} resources
 */
export function statePaths(items, resources) {
  const keys = ["box", ...[...STATE_KEYS].sort((one, other) => SALIENT.indexOf(one) - SALIENT.indexOf(other))];
  /** @type {Map<string, string>} */
  const paths = new Map(keys.map((key) => [key, ""]));
  for (const item of items) {
    const resource = resources.get(item.id);
    const key = item.box ? "box" : keyOf(resource?.status, resource?.held);
    paths.set(key, `${paths.get(key)}M${item.x} ${item.y}h${item.w}v${item.h}h${-item.w}z`);
  }
  return new Map([...paths].filter(([, path]) => path));
}

/**
 * Return the path of an edge; "": it is out of view.
 *
 * @param {SceneItem} from
 * @param {SceneItem} to
 * @param {import("./viewport.js").Box} box
 */
function curve(from, to, box) {
  const [x0, y0] = [from.x + from.w, from.y + Math.min(from.h / 2, 14)];
  const [x1, y1] = [to.x, to.y + Math.min(to.h / 2, 14)];
  const bounds = { x0: Math.min(x0, x1), x1: Math.max(x0, x1), y0: Math.min(y0, y1), y1: Math.max(y0, y1) };
  if (!doMeet(bounds, box)) return "";
  const bend = Math.max(16, Math.min(60, Math.abs(x1 - x0) / 2));
  return `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`;
}

/**
 * Return those of the items that are in a part of the scene.
 *
 * @param {SceneItem[]} items
 * @param {import("./viewport.js").Box} box
 */
export function itemsIn(items, box) {
  return items.filter((item) => doMeet(boxOfItem(item), box));
}

/**
 * @param {SceneItem} item
 * @param {Resource} resource
 * @returns {Node}
 */
function nodeOf(item, resource) {
  const label = s("text", { x: 28, y: 18 }, cut(spelled(resource.name), item.w - ICON - 8 - (resource.hasChild ? FOLD : 0)));
  const icon = s("g", { class: "glyph", transform: "translate(8 7) scale(.875)" });
  const title = s("title", {});
  const mix = s("g", { class: "mix", transform: `translate(1 ${NODE_H - 5})` });
  const group = s("g", { class: "node", transform: `translate(${item.x} ${item.y})` }, title, s("rect", { width: item.w, height: item.h, rx: 5 }), icon, label, mix);
  if (resource.hasChild) {
    group.append(s("g", { class: "fold", transform: `translate(${item.w - 22} 6)` },
      s("path", { class: "reach", d: "M-6 -6h28v28h-28z" }), s("rect", { width: 16, height: 16, rx: 3 }), s("path", { d: item.box ? "M4 8h8" : "M4 8h8M8 4v8" })));
  }
  group.classList.toggle("box", item.box);
  /** @type {Node} */
  const node = { group, icon, title, mix, width: item.w - 2, key: null };
  paint(node, resource);
  return node;
}

/**
 * Make the line that shows how many members of a group are in which state.
 *
 * @param {Map<StateKey, number>} counts
 * @param {number} width
 */
function shares(counts, width) {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let x = 0;
  return STATE_KEYS.filter((key) => counts.has(key)).map((key) => {
    const w = (width * (counts.get(key) ?? 0)) / total;
    x += w;
    return s("rect", { class: `far-${key}`, x: (x - w).toFixed(1), width: w.toFixed(1), height: 4 });
  });
}

/**
 * @param {Node} node
 * @param {Resource} resource
 */
function paint(node, resource) {
  const key = keyOf(resource.status, resource.held);
  const counts = resource.members ? countsOf(resource.members) : null;
  const state = counts ? [...counts].map(([one, count]) => `${count} ${STATES[one].word}`).join(", ") : words(resource.status, key);
  node.title.textContent = `${spelled(resource.name)}\n${spelled(resource.type)}\n${state}`;
  if (counts) put(node.mix, shares(counts, node.width));
  if (node.key === key) return;
  node.group.classList.remove(...STATE_KEYS);
  node.group.classList.add(key);
  put(node.icon, shape(key));
  Object.assign(node, { key });
}
