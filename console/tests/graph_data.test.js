// What the console reads from the graph of a stack: edges, nested stacks, paths.

import assert from "node:assert/strict";
import { test } from "node:test";

import { graphOf, SHOP, WEB } from "./answers.js";

import { resourcesOf } from "../page/shapes.js";
const RESOURCES = resourcesOf(graphOf());
const resource = (path) => RESOURCES.find((item) => item.path === path);

test("a resource of a nested stack has the path through its holder", () => {
  assert.deepEqual(RESOURCES.map((item) => item.path), ["network", "schema", "web", "page", "web/0", "web/1"]);
  assert.deepEqual(RESOURCES.map((item) => item.parent), [null, null, null, null, `${SHOP}/web`, `${SHOP}/web`]);
  assert.deepEqual(RESOURCES.filter((item) => item.hasChild).map((item) => item.path), ["web"]);
});

test("edges stay within their stack, though names are the same in another", () => {
  const graph = graphOf();
  graph.resources.push({ ...graph.resources[0], stack: WEB, name: "page" });
  const requires = Object.fromEntries(resourcesOf(graph).map((item) => [item.path, item.requires]));
  assert.deepEqual(requires, {
    network: [], schema: [`${SHOP}/network`], web: [`${SHOP}/network`], page: [`${SHOP}/schema`, `${SHOP}/web`],
    "web/0": [], "web/1": [`${WEB}/0`], "web/page": [],
  });
});

test("a resource has its state, breakpoint, task and the name of its stack", () => {
  const { status, held, task, stackName } = resource("schema");
  assert.deepEqual([status, held, task.state, stackName], ["INIT_COMPLETE", "pre-create", "held", "shop"]);
  assert.equal(resource("web/0").stackName, "shop-web-7eed");
});

test("an edge to a resource that is gone is left out", () => {
  const graph = graphOf();
  graph.resources[0].required_by.push("gone");
  assert.deepEqual(resourcesOf(graph).map((item) => item.requires.length), [0, 1, 1, 2, 0, 1]);
});
