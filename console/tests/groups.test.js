// How the resources of a large stack are grouped: by type and layer, with the state that matters most.

import assert from "node:assert/strict";
import { test } from "node:test";

import { grouped, salientOf } from "../page/groups.js";
import { sceneOf } from "../page/scene.js";

const item = (name, type, requires = [], more = {}) => ({
  id: `s/${name}`, name, path: name, type, status: "CREATE_COMPLETE", held: null, stack: "s", parent: null, hasChild: false,
  requires: requires.map((other) => `s/${other}`), requiredBy: [], ...more,
});
const many = (count, make) => Array.from({ length: count }, (_, index) => make(index));
const FLEET = [
  item("net", "OS::Neutron::Net"),
  ...many(3, (index) => item(`port${index}`, "OS::Neutron::Port", ["net"])),
  ...many(3, (index) => item(`server${index}`, "OS::Nova::Server", [`port${index}`], index === 1 ? { status: "CREATE_FAILED" } : {})),
  item("late", "OS::Nova::Server", ["server0"]),
];
const groupsIn = (resources) => resources.filter((one) => one.members);

test("a stack that can be seen is shown as it is", () => {
  assert.equal(grouped(FLEET, 8), FLEET);
});

test("resources of one type in one layer are a group, and one alone stays itself", () => {
  const shown = grouped(FLEET, 7);
  assert.deepEqual(groupsIn(shown).map((group) => group.name), ["3 × Port", "3 × Server"]);
  assert.deepEqual(shown.filter((one) => one.parent === null && !one.members).map((one) => one.name), ["net", "late"]);
});

test("a group needs what its members need, and what needs one of them needs the group", () => {
  const shown = grouped(FLEET, 7);
  const [ports, servers] = groupsIn(shown);
  assert.deepEqual(ports.requires, ["s/net"]);
  assert.deepEqual(servers.requires, [ports.id]);
  assert.deepEqual(shown.find((one) => one.name === "late").requires, [servers.id]);
  const scene = sceneOf(shown, new Set(), () => 100);
  assert.deepEqual(scene.items.map((one) => one.id).sort(), ["s/net", "s/late", ports.id, servers.id].sort());
  assert.equal(scene.edges.length, 3);
});

test("an unfolded group holds its members", () => {
  const shown = grouped(FLEET, 7);
  const servers = groupsIn(shown)[1];
  const scene = sceneOf(shown, new Set([servers.id]), () => 100);
  assert.equal(scene.items.filter((one) => one.depth === 1).length, 3);
});

test("a group has the state that matters most, and names those members first", () => {
  const [ports, servers] = groupsIn(grouped(FLEET, 7));
  assert.equal(ports.status, "CREATE_COMPLETE");
  assert.equal(servers.status, "CREATE_FAILED");
  assert.deepEqual(salientOf(servers).map((one) => one.name), ["server1"]);
});

test("the members of a nested stack are grouped among themselves", () => {
  const inner = many(4, (index) => item(`web/${index}`, "OS::Nova::Server", [], { parent: "s/web", stack: "t", id: `t/${index}` }));
  const shown = grouped([item("web", "OS::Heat::ResourceGroup", [], { hasChild: true }), ...inner], 3);
  assert.deepEqual(groupsIn(shown).map((group) => [group.name, group.parent]), [["4 × Server", "s/web"]]);
  assert.equal(shown.find((one) => one.name === "web").parent, null);
});
