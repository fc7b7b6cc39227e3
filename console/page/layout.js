// Places the vertices of a graph in layers, from what is needed to what needs it.  Pure.

const SWEEPS = 4;

/** Return the layer of each vertex: one behind the last of those that it needs. */
export function layers(ids, edges) {
  const after = new Map(ids.map((id) => [id, []]));
  const open = new Map(ids.map((id) => [id, 0]));
  for (const [from, to] of edges) {
    after.get(from).push(to);
    open.set(to, open.get(to) + 1);
  }
  const layer = new Map();
  let ready = ids.filter((id) => open.get(id) === 0);
  for (let depth = 0; ready.length; depth += 1) {
    const next = [];
    for (const id of ready) layer.set(id, depth);
    for (const id of ready) {
      for (const to of after.get(id)) {
        open.set(to, open.get(to) - 1);
        if (open.get(to) === 0) next.push(to);
      }
    }
    ready = next;
  }
  for (const id of ids) if (!layer.has(id)) layer.set(id, 0);
  return layer;
}

function neighbours(ids, edges) {
  const before = new Map(ids.map((id) => [id, []]));
  const behind = new Map(ids.map((id) => [id, []]));
  for (const [from, to] of edges) {
    before.get(to).push(from);
    behind.get(from).push(to);
  }
  return { before, behind };
}

function mean(numbers, otherwise) {
  return numbers.length ? numbers.reduce((sum, value) => sum + value, 0) / numbers.length : otherwise;
}

/** Order each layer by the mean place of its neighbours, to and fro. */
function ordered(rows, { before, behind }) {
  const place = new Map();
  const number = (row) => row.forEach((id, index) => place.set(id, index / row.length));
  rows.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const near = down ? before : behind;
    for (const row of down ? rows : [...rows].reverse()) {
      const key = new Map(row.map((id) => [id, mean(near.get(id).map((n) => place.get(n)), place.get(id))]));
      row.sort((a, b) => key.get(a) - key.get(b));
      number(row);
    }
  }
  return rows;
}

/** Divide a layer that is too long into columns side by side. */
function columns(row, size, most) {
  const found = [[]];
  let height = 0;
  for (const id of row) {
    if (height > 0 && height + size(id).h > most) {
      found.push([]);
      height = 0;
    }
    found.at(-1).push(id);
    height += size(id).h;
  }
  return found;
}

/** Place one column: each vertex near the mean of those before it, none above another. */
function settle(column, size, gap, wanted, total) {
  const height = column.reduce((sum, id) => sum + size(id).h + gap, -gap);
  const placed = new Map();
  let y = 0;
  let slack = total - height;
  for (const id of column) {
    const goal = wanted(id);
    const free = goal === null ? 0 : Math.min(slack, Math.max(0, goal - size(id).h / 2 - y));
    slack -= free;
    y += free;
    placed.set(id, y);
    y += size(id).h + gap;
  }
  if (column.every((id) => wanted(id) === null)) for (const id of column) placed.set(id, placed.get(id) + slack / 2);
  return placed;
}

/**
 * Return the place of each vertex (its left upper corner), and the size of all.
 *
 * @param nodes of {id, w, h}.
 * @param edges of [from, to].
 */
export function layout(nodes, edges, { gapX = 46, gapY = 12 } = {}) {
  const sizes = new Map(nodes.map((node) => [node.id, node]));
  const size = (id) => sizes.get(id);
  const ids = nodes.map((node) => node.id);
  const known = edges.filter(([from, to]) => sizes.has(from) && sizes.has(to) && from !== to);
  const near = neighbours(ids, known);
  const rows = [];
  for (const [id, depth] of layers(ids, known)) (rows[depth] ??= []).push(id);
  const area = nodes.reduce((sum, node) => sum + (node.w + gapX) * (node.h + gapY), 0);
  const tall = Math.max(0, ...nodes.map((node) => node.h));
  const most = Math.max(320, tall, Math.sqrt(area / 1.9));
  const all = ordered(rows, near).flatMap((row) => columns(row, (id) => ({ h: size(id).h + gapY }), most + gapY));
  const heights = all.map((column) => column.reduce((sum, id) => sum + size(id).h + gapY, -gapY));
  const total = Math.max(0, ...heights);
  const centre = new Map();
  const places = new Map();
  let x = 0;
  for (const column of all) {
    const wanted = (id) => mean(near.before.get(id).map((n) => centre.get(n)).filter((y) => y !== undefined), null);
    for (const [id, y] of settle(column, size, gapY, wanted, total)) {
      places.set(id, { x, y });
      centre.set(id, y + size(id).h / 2);
    }
    x += Math.max(...column.map((id) => size(id).w)) + gapX;
  }
  return { places, width: Math.max(0, x - gapX), height: total };
}
