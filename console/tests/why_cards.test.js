// The cards of the tab "Why": the cause, what happens by itself, what helps.

import assert from "node:assert/strict";
import { test } from "node:test";


import { cardsOf } from "../page/why.js";

const HELD = {
  resource: "schema", type: "OS::Heat::TestResource", action: "create", state: "held", attempt: 0, held_by: null, since: "2026-11-24T02:12:38+00:00",
  cause: "breakpoint", why: "it is held at the breakpoint pre-create", next: "nothing: a breakpoint holds until it is cleared",
  commands: ["openstack stack continue 4cf65f84 schema"],
};
const FAILED = {
  counts: {}, general: [{ cause: "failed", why: "Resource CREATE failed: ValueError", next: "nothing: it has ended", commands: ["openstack stack update --existing 4cf65f84"] }],
  failed: [{ resource: "page", action: "CREATE", reason: "ValueError: resources.page: Test Resource failed page" }], tasks: [], more: 0,
};

test("a task that is held says at which breakpoint, what helps, and may be continued", () => {
  assert.deepEqual(cardsOf({ general: [], failed: [], tasks: [HELD] }), [{
    mark: "held", resource: "schema", state: "held", label: "create held", type: "OS::Heat::TestResource", why: HELD.why, next: HELD.next,
    since: HELD.since, facts: [], commands: HELD.commands,
  }]);
});

test("a task that runs says its attempt and its conductor, without the incarnation", () => {
  const [card] = cardsOf({ tasks: [{ ...HELD, state: "running", attempt: 2, held_by: "conductor-1/5e1f" }] });
  assert.deepEqual([card.mark, card.state, card.label, card.facts], ["", "run", "create running", ["attempt 2", "conductor-1"]]);
});

test("any other task waits", () => {
  const cards = cardsOf({ tasks: ["ready", "waiting", "parked"].map((state) => ({ ...HELD, state })) });
  assert.deepEqual(cards.map((card) => [card.state, card.label]), [["wait", "create ready"], ["wait", "create waiting"], ["wait", "create parked"]]);
});

test("a failed stack says why, and which resource has failed with which reason", () => {
  const [stack, resource, ...others] = cardsOf(FAILED);
  assert.deepEqual(others, []);
  assert.deepEqual([stack.resource, stack.why, stack.next, stack.commands], [null, FAILED.general[0].why, "nothing: it has ended", FAILED.general[0].commands]);
  assert.deepEqual([resource.mark, resource.resource, resource.state, resource.label, resource.why], ["bad", "page", "bad", "create failed", FAILED.failed[0].reason]);
});

test("nothing is said of a stack that is complete", () => {
  assert.deepEqual(cardsOf({ general: [{ cause: "complete", why: "it is complete", next: "nothing" }], failed: [], tasks: [] }), []);
  assert.deepEqual(cardsOf({}), []);
});
