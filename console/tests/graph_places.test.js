// Where the graph draws resources: what needs another stands behind it, and nothing overlaps or jumps.

import assert from "node:assert/strict";
import { test } from "node:test";

import { graphOf, SHOP } from "./answers.js";

import { layers, layout } from "../page/layout.js";
import { NODE_H, itemAt, itemTowards, sceneOf, shapeOf } from "../page/scene.js";
import { resourcesOf } from "../page/shapes.js";

/** Return a function that returns numbers from 0 to below 1: the same ones for the same seed. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}

/** Return an acyclic graph of boxes of several sizes; some have no edge. */
function graph(seed) {
  const next = random(seed);
  const count = 1 + Math.floor(next() * 60);
  const nodes = Array.from({ length: count }, (_, index) => ({ id: `n${index}`, w: 74 + Math.floor(next() * 140), h: next() < 0.2 ? 150 : 28 }));
  const edges = [];
  for (let to = 1; to < count; to += 1) {
    for (let number = Math.floor(next() * 3); number > 0; number -= 1) edges.push([`n${Math.floor(next() * to)}`, `n${to}`]);
  }
  return { nodes, edges };
}

const GRAPHS = Array.from({ length: 60 }, (_, seed) => graph(seed + 1));

function overlap(a, b) {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

function assertApart(boxes) {
  for (const [index, a] of boxes.entries()) {
    for (const b of boxes.slice(index + 1)) assert.ok(!overlap(a, b), `${JSON.stringify(a)} overlaps ${JSON.stringify(b)}`);
  }
}

function boxesOf(nodes, { places }) {
  return nodes.map((node) => ({ ...node, ...places.get(node.id) }));
}

test("a resource stands one layer behind the last of those that it needs", () => {
  const edges = [["a", "b"], ["b", "c"], ["a", "c"], ["c", "d"]];
  assert.deepEqual([...layers(["d", "c", "b", "a", "alone"], edges)].sort(), [["a", 0], ["alone", 0], ["b", 1], ["c", 2], ["d", 3]]);
});

test("no two boxes overlap, and all are within the size", () => {
  for (const { nodes, edges } of GRAPHS) {
    const all = layout(nodes, edges);
    const boxes = boxesOf(nodes, all);
    assertApart(boxes);
    for (const box of boxes) {
      assert.ok(box.x >= 0 && box.x + box.w <= all.width && box.y >= 0 && box.y + box.h <= all.height + 1e-6, JSON.stringify([box, all.width, all.height]));
    }
  }
});

test("each edge leads to the right", () => {
  for (const { nodes, edges } of GRAPHS) {
    const { places } = layout(nodes, edges);
    const widths = new Map(nodes.map((node) => [node.id, node.w]));
    for (const [from, to] of edges) assert.ok(places.get(from).x + widths.get(from) < places.get(to).x, `${from} → ${to}`);
  }
});

test("the places follow from the graph only", () => {
  for (const { nodes, edges } of GRAPHS) {
    const [once, again] = [1, 2].map(() => layout(structuredClone(nodes), structuredClone(edges)));
    assert.deepEqual(once, again);
  }
});

test("a chain is a straight line", () => {
  const nodes = ["a", "b", "c"].map((id) => ({ id, w: 80, h: 28 }));
  const { places, width } = layout(nodes, [["a", "b"], ["b", "c"]], { gapX: 46 });
  assert.deepEqual([...places], [["a", { x: 0, y: 0 }], ["b", { x: 126, y: 0 }], ["c", { x: 252, y: 0 }]]);
  assert.equal(width, 332);
});

test("edges between two layers do not cross where they need not", () => {
  const nodes = ["a1", "a2", "a3", "a4", "a5", "b", "c"].map((id) => ({ id, w: 80, h: 28 }));
  const edges = [["a1", "b"], ["a2", "b"], ["a5", "b"], ["a4", "c"]];
  const { places } = layout(nodes, edges);
  const isAbove = (a, b) => places.get(a).y < places.get(b).y;
  for (const [from, to] of edges.slice(0, 3)) assert.equal(isAbove(from, "a4"), isAbove(to, "c"), `${from} → ${to} crosses a4 → c`);
});

test("a resource stands beside the middle of those that it needs", () => {
  const nodes = ["a1", "a2", "a3", "b"].map((id) => ({ id, w: 80, h: 28 }));
  for (const needed of [["a2"], ["a1", "a3"], ["a1", "a2", "a3"]]) {
    const { places } = layout(nodes, needed.map((id) => [id, "b"]));
    const middle = needed.reduce((sum, id) => sum + places.get(id).y, 0) / needed.length;
    assert.equal(places.get("b").y, middle, needed.join());
  }
});

test("many resources without edges stand in columns, not in one high tower", () => {
  const nodes = Array.from({ length: 400 }, (_, index) => ({ id: `n${index}`, w: 100, h: 28 }));
  const all = layout(nodes, []);
  assertApart(boxesOf(nodes, all));
  assert.ok(all.width > all.height && all.width < 4 * all.height, `${all.width} × ${all.height}`);
});

test("edges to resources that are not drawn, to itself and in a ring are borne", () => {
  const nodes = ["a", "b"].map((id) => ({ id, w: 80, h: 28 }));
  for (const edges of [[["a", "gone"]], [["a", "b"], ["b", "b"]], [["a", "b"], ["b", "a"]]]) {
    const all = layout(nodes, edges);
    assert.equal(all.places.size, 2);
    assertApart(boxesOf(nodes, all));
  }
  const { places } = layout(nodes, [["a", "b"], ["b", "b"]]);
  assert.ok(places.get("a").x < places.get("b").x);
  assert.deepEqual(layout([], []), { places: new Map(), width: 0, height: 0 });
});

const widthOf = () => 80;
const shop = (states) => resourcesOf(graphOf(states));
const WEB = `${SHOP}/web`;

test("a nested stack that is folded is one box, with the edges of its holder", () => {
  const scene = sceneOf(shop(), new Set(), widthOf);
  assert.deepEqual(scene.items.map((item) => [item.id, item.box, item.h]), ["network", "schema", "web", "page"].map((name) => [`${SHOP}/${name}`, false, NODE_H]));
  assert.deepEqual(scene.edges.map(({ from, to }) => `${from} ${to}`.replaceAll(`${SHOP}/`, "")).sort(), ["network schema", "network web", "schema page", "web page"]);
});

test("a nested stack that is unfolded is a box around its resources", () => {
  const { items, edges } = sceneOf(shop(), new Set([WEB]), widthOf);
  const holder = items.find((item) => item.id === WEB);
  const inner = items.filter((item) => item.depth === 1);
  assert.ok(holder.box);
  assert.equal(inner.length, 2);
  assertApart(inner);
  assertApart(items.filter((item) => item.depth === 0));
  for (const item of inner) {
    assert.ok(item.x > holder.x && item.y >= holder.y + NODE_H && item.x + item.w < holder.x + holder.w && item.y + item.h < holder.y + holder.h, JSON.stringify([item, holder]));
  }
  assert.ok(edges.some(({ from, to }) => from === inner[0].id && to === inner[1].id));
});

test("between two readings nothing moves unless resources or edges change", () => {
  const [held, complete] = [shop(), shop({ schema: "CREATE_COMPLETE", breakpoint: null })];
  for (const open of [new Set(), new Set([WEB])]) {
    assert.equal(shapeOf(complete, open), shapeOf(held, open));
    assert.deepEqual(sceneOf(complete, open, widthOf), sceneOf(held, open, widthOf));
  }
  const renamed = shop();
  renamed[0].name = "net";
  const freed = shop();
  freed[1].requires = [];
  for (const other of [renamed, freed, shop().slice(1)]) assert.notEqual(shapeOf(other, new Set()), shapeOf(held, new Set()));
  assert.notEqual(shapeOf(held, new Set([WEB])), shapeOf(held, new Set()));
});

test("a click chooses the innermost resource at its point", () => {
  const { items } = sceneOf(shop(), new Set([WEB]), widthOf);
  const inner = items.find((item) => item.depth === 1);
  const holder = items.find((item) => item.id === WEB);
  assert.equal(itemAt(items, inner.x + 1, inner.y + 1).id, inner.id);
  assert.equal(itemAt(items, holder.x + 1, holder.y + 1).id, WEB);
  assert.equal(itemAt(items, -5, -5), null);
});

test("arrow keys walk along the edges and back", () => {
  const { items } = sceneOf(shop(), new Set(), widthOf);
  const item = (name) => items.find((one) => one.id === `${SHOP}/${name}`);
  const [upper, lower] = ["schema", "web"].map(item).sort((a, b) => a.y - b.y);
  assert.ok([upper, lower].includes(itemTowards(items, item("network"), 1, 0)));
  assert.equal(itemTowards(items, upper, 0, 1), lower);
  assert.equal(itemTowards(items, lower, 0, -1), upper);
  assert.equal(itemTowards(items, upper, 1, 0), item("page"));
  assert.equal(itemTowards(items, upper, -1, 0), item("network"));
  assert.equal(itemTowards(items, item("page"), 1, 0), null);
});
