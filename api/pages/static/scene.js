// Turns resources into places: nested stacks that are unfolded are boxes around their resources.  Pure.

import { layout } from "./layout.js";

export const NODE_H = 28;
const HEAD = 30;
const PAD = 12;

/**
 * Return the scene of a tree of resources.
 *
 * @param resources of {id, name, parent, requires}: parent is the id of the resource whose nested stack holds it, or null.
 * @param open the ids of the resources whose nested stacks are unfolded.
 * @param widthOf returns the width of a resource's box.
 * @returns {items, edges, width, height}: items of {id, x, y, w, h, box, depth}; edges of {from, to}.
 */
export function sceneOf(resources, open, widthOf) {
  const children = new Map();
  for (const item of resources) {
    const key = item.parent ?? null;
    if (!children.has(key)) children.set(key, []);
    children.get(key).push(item);
  }
  const items = [];
  const edges = [];

  function arranged(key) {
    const members = children.get(key) ?? [];
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
    const lines = members.flatMap((item) => item.requires.filter((id) => here.has(id)).map((id) => [id, item.id]));
    return { ...layout(nodes, lines), nodes, lines, inner };
  }

  function flatten(found, x, y, depth) {
    for (const node of found.nodes) {
      const place = found.places.get(node.id);
      const below = found.inner.get(node.id);
      items.push({ id: node.id, x: x + place.x, y: y + place.y, w: node.w, h: node.h, box: below !== undefined, depth });
      if (below) flatten(below, x + place.x + PAD, y + place.y + HEAD, depth + 1);
    }
    for (const [from, to] of found.lines) edges.push({ from, to });
  }

  const whole = arranged(null);
  flatten(whole, 0, 0, 0);
  return { items, edges, width: whole.width, height: whole.height };
}

/** Return what a scene depends on beside the states: where it is equal, nothing moves. */
export function shapeOf(resources, open) {
  return resources.map((item) => `${item.id}\u0001${item.name}\u0001${item.parent}\u0001${item.requires}\u0001${open.has(item.id)}`).join("\u0002");
}
