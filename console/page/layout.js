// Places the vertices of a graph in layers, from what is needed to what needs it.  Pure.

const SWEEPS = 4;

/** @typedef {[string, string]} Edge from what is needed to what needs it */

/**
 * The neighbours of each vertex.
 *
 * @typedef {{before: Map<string, string[]>, after: Map<string, string[]>}} Neighbours
 */

/**
 * Return what a map has for an id, which it has.
 *
 * @template T
 * @param {Map<string, T>} map
 * @param {string} id
 * @returns {T}
 */
function of(map, id) {
  return /** @type {T} */ (map.get(id));
}

/**
 * Return the layer of each vertex: one behind the last of those that it needs.
 *
 * @param {string[]} ids
 * @param {Edge[]} edges
 */
export function layers(ids, edges) {
  const { after } = neighbours(ids, edges);
  const open = new Map(ids.map((id) => [id, 0]));
  for (const [, to] of edges) open.set(to, of(open, to) + 1);
  /** @type {Map<string, number>} */
  const layer = new Map();
  let ready = ids.filter((id) => open.get(id) === 0);
  for (let depth = 0; ready.length; depth += 1) {
    const next = [];
    for (const id of ready) layer.set(id, depth);
    for (const to of ready.flatMap((id) => of(after, id))) {
      open.set(to, of(open, to) - 1);
      if (open.get(to) === 0) next.push(to);
    }
    ready = next;
  }
  for (const id of ids) if (!layer.has(id)) layer.set(id, 0);
  return layer;
}

/**
 * @param {string[]} ids
 * @param {Edge[]} edges
 * @returns {Neighbours}
 */
function neighbours(ids, edges) {
  const none = () => new Map(ids.map((id) => [id, /** @type {string[]} */ ([])]));
  const [before, after] = [none(), none()];
  for (const [from, to] of edges) {
    of(before, to).push(from);
    of(after, from).push(to);
  }
  return { before, after };
}

/**
 * @template T
 * @param {number[]} numbers
 * @param {T} otherwise is returned where there are none.
 */
function mean(numbers, otherwise) {
  return numbers.length ? numbers.reduce((sum, value) => sum + value, 0) / numbers.length : otherwise;
}

/**
 * Order each layer by the mean place of its neighbours, to and fro.
 *
 * @param {string[][]} rows
 * @param {Neighbours} neighbourhood
 */
function ordered(rows, { before, after }) {
  /** @type {Map<string, number>} */
  const place = new Map();
  const number = (/** @type {string[]} */ row) => row.forEach((id, index) => place.set(id, index / row.length));
  rows.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const near = down ? before : after;
    for (const row of down ? rows : [...rows].reverse()) {
      const key = new Map(row.map((id) => [id, mean(of(near, id).map((other) => of(place, other)), of(place, id))]));
      row.sort((a, b) => of(key, a) - of(key, b));
      number(row);
    }
  }
  return rows;
}

/**
 * Divide a layer that is too long into columns side by side.
 *
 * @param {string[]} row
 * @param {(id: string) => number} heightOf
 * @param {number} most
 */
function columns(row, heightOf, most) {
  /** @type {string[][]} */
  const parts = [];
  let height = Infinity;
  for (const id of row) {
    if (height > 0 && height + heightOf(id) > most) {
      parts.push([]);
      height = 0;
    }
    parts[parts.length - 1].push(id);
    height += heightOf(id);
  }
  return parts;
}

/**
 * Place one column: each vertex near the mean of those before it, none above another.
 *
 * @param {string[]} column
 * @param {(id: string) => Size} size
 * @param {number} gap
 * @param {(id: string) => number | null} goalOf returns where the middle of a vertex should be; null: anywhere.
 * @param {number} total height of all columns.
 */
function settle(column, size, gap, goalOf, total) {
  const height = column.reduce((sum, id) => sum + size(id).h + gap, -gap);
  /** @type {Map<string, number>} */
  const placed = new Map();
  let y = 0;
  let slack = total - height;
  for (const id of column) {
    const goal = goalOf(id);
    const free = goal === null ? 0 : Math.min(slack, Math.max(0, goal - size(id).h / 2 - y));
    slack -= free;
    y += free;
    placed.set(id, y);
    y += size(id).h + gap;
  }
  if (column.every((id) => goalOf(id) === null)) for (const id of column) placed.set(id, of(placed, id) + slack / 2);
  return placed;
}

/**
 * Return the place of each vertex (its left upper corner), and the size of all.
 *
 * @param {Size[]} nodes
 * @param {Edge[]} edges
 * @param {{gapX?: number, gapY?: number}} [gaps]
 */
export function layout(nodes, edges, { gapX = 46, gapY = 12 } = {}) {
  const sizes = new Map(nodes.map((node) => [node.id, node]));
  const size = (/** @type {string} */ id) => of(sizes, id);
  const ids = nodes.map((node) => node.id);
  const lines = edges.filter(([from, to]) => sizes.has(from) && sizes.has(to) && from !== to);
  const near = neighbours(ids, lines);
  /** @type {string[][]} */
  const rows = [];
  for (const [id, depth] of layers(ids, lines)) (rows[depth] ??= []).push(id);
  const area = nodes.reduce((sum, node) => sum + (node.w + gapX) * (node.h + gapY), 0);
  const tall = Math.max(0, ...nodes.map((node) => node.h));
  const most = Math.max(320, tall, Math.sqrt(area / 1.9));
  const all = ordered(rows, near).flatMap((row) => columns(row, (id) => size(id).h + gapY, most + gapY));
  const heights = all.map((column) => column.reduce((sum, id) => sum + size(id).h + gapY, -gapY));
  const total = Math.max(0, ...heights);
  /** @type {Map<string, number>} */
  const centre = new Map();
  /** @type {Map<string, Point>} */
  const places = new Map();
  let x = 0;
  for (const column of all) {
    const goalOf = (/** @type {string} */ id) => mean(of(near.before, id).flatMap((other) => centre.get(other) ?? []), null);
    for (const [id, y] of settle(column, size, gapY, goalOf, total)) {
      places.set(id, { x, y });
      centre.set(id, y + size(id).h / 2);
    }
    x += Math.max(...column.map((id) => size(id).w)) + gapX;
  }
  return { places, width: Math.max(0, x - gapX), height: total };
}
