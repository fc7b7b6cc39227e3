// Turns resources into places: nested stacks that are unfolded are boxes around their resources.  Pure.

import { layout } from "./layout.js";

export const NODE_H = 28;
const HEAD = 30;
const PAD = 12;

/**
 * The members of one stack at their places, with those of the nested stacks in them.
 *
 * @typedef {ReturnType<typeof layout> & {nodes: Size[], lines: [string, string][], inner: Map<string, Arrangement>}} Arrangement
 */

/**
 * Return the scene of a tree of resources.
 *
 * @template {Placed} T
 * @param {T[]} resources
 * @param {Set<string>} open the ids of the resources whose nested stacks are unfolded.
 * @param {(item: T) => number} widthOf returns the width of a resource's box.
 * @returns {Scene}
 */
export function sceneOf(resources, open, widthOf) {
  /** @type {Map<string | null, T[]>} */
  const children = new Map();
  for (const item of resources) {
    const siblings = children.get(item.parent) ?? [];
    siblings.push(item);
    children.set(item.parent, siblings);
  }
  /** @type {SceneItem[]} */
  const items = [];
  /** @type {Scene["edges"]} */
  const edges = [];

  /**
   * @param {string | null} key
   * @returns {Arrangement}
   */
  function arranged(key) {
    const members = children.get(key) ?? [];
    /** @type {Map<string, Arrangement>} */
    const inner = new Map();
    const nodes = members.map((item) => {
      if (open.has(item.id) && children.has(item.id)) {
        const below = arranged(item.id);
        inner.set(item.id, below);
        return { id: item.id, w: Math.max(below.width + 2 * PAD, widthOf(item)), h: below.height + HEAD + PAD };
      }
      return { id: item.id, w: widthOf(item), h: NODE_H };
    });
    const here = new Set(members.map((item) => item.id));
    const lines = members.flatMap((item) => item.requires.filter((id) => here.has(id)).map((id) => /** @type {[string, string]} */ ([id, item.id])));
    return { ...layout(nodes, lines), nodes, lines, inner };
  }

  /**
   * @param {Arrangement} arrangement
   * @param {number} x
   * @param {number} y
   * @param {number} depth
   */
  function flatten(arrangement, x, y, depth) {
    for (const node of arrangement.nodes) {
      const place = /** @type {Point} */ (arrangement.places.get(node.id));
      const below = arrangement.inner.get(node.id);
      items.push({ id: node.id, x: x + place.x, y: y + place.y, w: node.w, h: node.h, box: below !== undefined, depth });
      if (below) flatten(below, x + place.x + PAD, y + place.y + HEAD, depth + 1);
    }
    for (const [from, to] of arrangement.lines) edges.push({ from, to });
  }

  const whole = arranged(null);
  flatten(whole, 0, 0, 0);
  return { items, edges, width: whole.width, height: whole.height };
}

/**
 * Return the innermost item at a point; null: the point is in none.
 *
 * @param {SceneItem[]} items
 * @param {number} x
 * @param {number} y
 */
export function itemAt(items, x, y) {
  const around = items.filter((item) => x >= item.x && x <= item.x + item.w && y >= item.y && y <= item.y + item.h);
  return around.sort((a, b) => b.depth - a.depth)[0] ?? null;
}

/**
 * Return the item that an arrow key leads to, (dx, dy) being its direction: near, and rather straight on; null: none lies there.
 *
 * @param {SceneItem[]} items
 * @param {SceneItem} from
 * @param {number} dx
 * @param {number} dy
 */
export function itemTowards(items, from, dx, dy) {
  const middle = (/** @type {SceneItem} */ item) => ({ x: item.x + (item.box ? 20 : item.w / 2), y: item.y + (item.box ? 14 : item.h / 2) });
  const a = middle(from);
  /** @type {{item: SceneItem, cost: number} | null} */
  let best = null;
  for (const item of items) {
    if (item.id === from.id) continue;
    const b = middle(item);
    const along = (b.x - a.x) * dx + (b.y - a.y) * dy;
    const aside = Math.abs((b.x - a.x) * dy) + Math.abs((b.y - a.y) * dx);
    if (along > 2 && (best === null || along + 3 * aside < best.cost)) best = { item, cost: along + 3 * aside };
  }
  return /** @type {{item: SceneItem} | null} */ (best)?.item ?? null;
}

/**
 * Return what a scene depends on besides the states: where it is equal, nothing moves.
 *
 * @param {Placed[]} resources
 * @param {Set<string>} open
 */
export function shapeOf(resources, open) {
  return resources.map((item) => `${item.id}\u0001${item.name}\u0001${item.parent}\u0001${item.requires}\u0001${open.has(item.id)}`).join("\u0002");
}
