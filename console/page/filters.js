// Chooses resources by their state and by words of their name or type, and sorts.  Pure.

import { keyOf } from "./states.js";

/**
 * Return how many resources are in each state.
 *
 * @param {Resource[]} resources
 */
export function countsOf(resources) {
  /** @type {Map<StateKey, number>} */
  const counts = new Map();
  for (const item of resources) {
    const key = keyOf(item.status, item.held);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/**
 * Return the resources whose path or type has the text, in one of the states; no states: in any.
 *
 * @param {Resource[]} resources
 * @param {{text?: string, states?: Set<string>}} choice
 */
export function matching(resources, { text = "", states = new Set() } = {}) {
  const part = text.trim().toLowerCase();
  return resources.filter((item) => (states.size === 0 || states.has(keyOf(item.status, item.held)))
    && (part === "" || item.path.toLowerCase().includes(part) || item.type.toLowerCase().includes(part)));
}

/**
 * Return resources together with those whose nested stacks they are in, in the order of all.
 *
 * @param {Resource[]} resources
 * @param {Resource[]} all
 */
export function withHolders(resources, all) {
  const byId = new Map(all.map((item) => [item.id, item]));
  const ids = new Set();
  for (const item of resources) {
    for (let at = /** @type {Resource | undefined} */ (item); at && !ids.has(at.id); at = byId.get(at.parent ?? "")) ids.add(at.id);
  }
  return all.filter((item) => ids.has(item.id));
}

/**
 * Return items in the order of a key, which is null where an item has none: those come last; equal ones keep their order.
 *
 * @template T
 * @param {T[]} items
 * @param {(item: T) => string | number | null} key
 */
export function sorted(items, key, isDescending = false) {
  const sign = isDescending ? -1 : 1;
  const keyed = items.map((item) => /** @type {const} */ ([key(item), item]));
  keyed.sort(([one], [other]) => {
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    if (typeof one === "number" && typeof other === "number") return sign * (one - other);
    return sign * String(one).localeCompare(String(other), undefined, { numeric: true });
  });
  return keyed.map(([, item]) => item);
}
