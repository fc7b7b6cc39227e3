// Groups the resources of a stack that has more than can be seen: those of one type in one layer.  Pure.

import { countsOf } from "./filters.js";
import { layers } from "./layout.js";
import { keyOf } from "./states.js";

/** The number of resources of one stack above which they are grouped. */
export const MANY = 300;
/** @type {StateKey[]} the states from the one that matters most */
const MATTER = ["bad", "held", "run", "wait", "ok", "off", "gone"];

/**
 * Return resources with groups among them, whose members are in them as in a nested stack.
 *
 * A layer has no edges within it, so groups that need each other have no circle.
 *
 * @param {Resource[]} resources
 * @returns {Resource[]} the same ones where no stack has more than `many` resources.
 */
export function grouped(resources, many = MANY) {
  const groups = [...sets(resources, (item) => item.parent).values()].filter((siblings) => siblings.length > many).flatMap(groupsOf);
  if (!groups.length) return resources;
  const holders = new Map(groups.flatMap((group) => (group.members ?? []).map((item) => /** @type {[string, string]} */ ([item.id, group.id]))));
  const holderOf = (/** @type {string} */ id) => holders.get(id) ?? id;
  const outer = (/** @type {Resource} */ item) => ({ ...item, requires: [...new Set(item.requires.map(holderOf))] });
  const rest = resources.map((item) => (holders.has(item.id) ? { ...item, parent: holderOf(item.id) } : outer(item)));
  return [...groups.map(outer), ...rest];
}

/**
 * Return resources by a key.
 *
 * @template K
 * @param {Resource[]} resources
 * @param {(item: Resource) => K} keyBy
 */
function sets(resources, keyBy) {
  /** @type {Map<K, Resource[]>} */
  const byKey = new Map();
  for (const item of resources) {
    const key = keyBy(item);
    const members = byKey.get(key);
    if (members) members.push(item);
    else byKey.set(key, [item]);
  }
  return byKey;
}

/**
 * @param {Resource[]} siblings
 * @returns {Resource[]}
 */
function groupsOf(siblings) {
  const edges = siblings.flatMap((item) => item.requires.map((id) => /** @type {[string, string]} */ ([id, item.id])));
  const ids = siblings.map((item) => item.id);
  const here = new Set(ids);
  const layer = layers(ids, edges.filter(([from]) => here.has(from)));
  const byKind = sets(siblings, (item) => `${item.parent ?? ""}\u0001${layer.get(item.id)}\u0001${item.type}`);
  return [...byKind].filter(([, members]) => members.length > 1).map(([id, members]) => groupOf(id, members));
}

/**
 * @param {string} id
 * @param {Resource[]} members
 * @returns {Resource}
 */
function groupOf(id, members) {
  const counts = countsOf(members);
  const worst = MATTER.find((key) => counts.has(key));
  const first = members.find((item) => keyOf(item.status, item.held) === worst) ?? members[0];
  const { type, stack, stackName, parent, status, held } = first;
  const name = `${members.length.toLocaleString("en")} × ${type.split("::").at(-1)}`;
  return {
    id, name, path: name, type, status, held, reason: "", task: null, stack, stackName, child: null, physical: null, updated: null,
    requiredBy: [], requires: [...new Set(members.flatMap((item) => item.requires))], parent, hasChild: true, members,
  };
}

/**
 * Return the members of a group that a reader should see first: those that failed or are held.
 *
 * @param {Resource} group
 */
export function salientOf(group) {
  const rank = (/** @type {Resource} */ item) => MATTER.indexOf(keyOf(item.status, item.held));
  return (group.members ?? []).filter((item) => rank(item) < 2).sort((one, other) => rank(one) - rank(other));
}
