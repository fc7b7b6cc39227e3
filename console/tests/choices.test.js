// What users choose: the address, filters, the order of a list, several stacks at once, how a cancel ends, Horizon's pages.

import assert from "node:assert/strict";
import { test } from "node:test";

import { graphOf, SHOP, WEB } from "./answers.js";

import { cancelChoices } from "../page/actions.js";
import { BULK_ACTIONS, each, outcomeWords } from "../page/bulk.js";
import { countsOf, matching, sorted, withHolders } from "../page/filters.js";
import { resourcePage, stackPage } from "../page/horizon.js";
import { hashOf, routeOf } from "../page/route.js";
import { resourcesOf } from "../page/shapes.js";

const RESOURCES = resourcesOf(graphOf());
const paths = (resources) => resources.map((item) => item.path);

test("an address names the page and what is chosen on it, whatever the names are", () => {
  const names = ["shop", "a/b?c#d", "ä ö", "100%", "<b>"];
  for (const name of names) {
    const { parts, query } = routeOf(hashOf(["stack", name, SHOP, "graph"], { resource: name, state: "bad,held", q: "" }));
    assert.deepEqual([parts, Object.fromEntries(query)], [["stack", name, SHOP, "graph"], { resource: name, state: "bad,held" }]);
  }
  assert.equal(hashOf(["stack", "shop", SHOP, undefined], { resource: null }), `#/stack/shop/${SHOP}`);
  assert.equal(hashOf([""]), "#/");
  assert.deepEqual(routeOf("").parts, [""]);
  assert.deepEqual(routeOf("#/stack/%ff").parts, [""], "an address that nobody can read leads to the start");
});

test("resources are filtered by state, and by words of their name or type", () => {
  assert.deepEqual(paths(matching(RESOURCES, {})), paths(RESOURCES));
  assert.deepEqual(paths(matching(RESOURCES, { text: " WEB/ " })), ["web/0", "web/1"]);
  assert.deepEqual(paths(matching(RESOURCES, { text: "resourcegroup" })), ["web"]);
  assert.deepEqual(paths(matching(RESOURCES, { states: new Set(["held", "wait"]) })), ["schema", "page"]);
  assert.deepEqual(paths(matching(RESOURCES, { text: "web", states: new Set(["held"]) })), []);
  assert.deepEqual([...countsOf(RESOURCES)], [["ok", 4], ["held", 1], ["wait", 1]]);
});

test("a resource of a nested stack is shown with those that hold it, once, in the order of all", () => {
  assert.deepEqual(paths(withHolders(matching(RESOURCES, { text: "web/1" }), RESOURCES)), ["web", "web/1"]);
  assert.deepEqual(paths(withHolders(RESOURCES, RESOURCES)), paths(RESOURCES));
  assert.deepEqual(withHolders([], RESOURCES), []);
});

test("items are sorted by a key, numbers as numbers, those without one last both ways", () => {
  const items = ["r10", "r9", null, "r1"].map((name, place) => ({ name, place, size: name && Number(name.slice(1)) }));
  const names = (key, isDescending) => sorted(items, key, isDescending).map((item) => item.name);
  assert.deepEqual(names((item) => item.name), ["r1", "r9", "r10", null]);
  assert.deepEqual(names((item) => item.name, true), ["r10", "r9", "r1", null]);
  assert.deepEqual(names((item) => item.size, true), ["r10", "r9", "r1", null]);
  assert.deepEqual(sorted(items, () => 0, true).map((item) => item.place), [0, 1, 2, 3], "equal ones keep their order");
});

test("a cancel offers to roll back what can be rolled back", () => {
  const answers = (status) => cancelChoices(status).answers.map(([action]) => action);
  assert.deepEqual(answers("CREATE_IN_PROGRESS"), ["cancel_update", "cancel_without_rollback"]);
  assert.deepEqual(answers("UPDATE_IN_PROGRESS"), ["cancel_update", "cancel_without_rollback"]);
  for (const action of ["SUSPEND", "RESUME", "CHECK", "ROLLBACK"]) assert.deepEqual(answers(`${action}_IN_PROGRESS`), ["cancel_without_rollback"]);
  assert.match(cancelChoices("CREATE_IN_PROGRESS").text, /deletes the resources/);
});

test("an action on several stacks goes to each, some at once, and says which were refused", async () => {
  let running = 0;
  let most = 0;
  const stacks = Array.from({ length: 9 }, (_, index) => ({ stack_name: `s${index}` }));
  const outcomes = await each(stacks, async (stack) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    if (stack.stack_name === "s4") throw new Error("It is busy.");
  }, 3);
  assert.equal(most, 3);
  assert.deepEqual(outcomes.map(({ item }) => item), stacks);
  assert.equal(outcomeWords(outcomes, "being deleted"), "8 stacks are being deleted. 1 refused. s4: It is busy.");
  assert.equal(outcomeWords(outcomes.slice(0, 1), "being checked"), "1 stack is being checked.");
  assert.deepEqual(await each([], () => {}), []);
});

test("of several stacks those take part in an action to which it fits", () => {
  const fitting = (status) => BULK_ACTIONS.filter((action) => action.fits(status)).map((action) => action.key);
  assert.deepEqual(fitting("CREATE_COMPLETE"), ["check", "suspend", "delete"]);
  assert.deepEqual(fitting("SUSPEND_COMPLETE"), ["check", "resume", "delete"]);
  assert.deepEqual(fitting("UPDATE_IN_PROGRESS"), ["delete"]);
  assert.deepEqual(fitting("DELETE_FAILED"), ["delete"]);
  assert.deepEqual(fitting("DELETE_IN_PROGRESS"), []);
});

test("Horizon's page of a resource is linked where Horizon has one", () => {
  const root = "https://cloud.example.org/horizon";
  const server = { type: "OS::Nova::Server", physical: "4f/1", child: null };
  assert.equal(resourcePage(root, server), `${root}/project/instances/4f%2F1/`);
  assert.equal(resourcePage(`${root}/`, { ...server, type: "OS::Neutron::Port", physical: "p1" }), `${root}/project/networks/ports/p1/detail`);
  assert.equal(resourcePage(root, { ...server, physical: null }), null, "it does not exist yet");
  assert.equal(resourcePage(root, { ...server, type: "constructor" }), null);
  assert.equal(resourcePage(null, server), null, "no Horizon is configured");
  assert.equal(resourcePage(root, RESOURCES[2]), `${root}/project/stacks/stack/${WEB}/`);
  assert.equal(stackPage(null, SHOP), null);
});
