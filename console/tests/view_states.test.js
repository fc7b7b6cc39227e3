// What a view says of its data: loading, failed, empty, stale and ready are five states, and none passes for another.

import assert from "node:assert/strict";
import { test } from "node:test";


import { ReadState, sentenceOf, viewOf } from "../page/view_state.js";

const NOW = 1_800_000_000_000;
const after = (seconds) => NOW + seconds * 1000;
const error = new Error("The API does not answer.");

/** Return a state after some steps: ["begin", second], ["succeed", second, value] or ["fail"]. */
function stateAfter(...steps) {
  const state = new ReadState();
  for (const [step, second, value] of steps) {
    if (step === "begin") state.begin(after(second));
    else if (step === "succeed") state.succeed(value, after(second));
    else state.fail(error);
  }
  return state;
}

const viewAt = (second, states, isEmpty = false) => viewOf(states, () => isEmpty, after(second));
const sentenceAt = (second, states) => sentenceOf(viewAt(second, states), "the stacks", after(second));

test("what has not been read is loading, never empty, however long that takes", () => {
  for (const state of [stateAfter(), stateAfter(["begin", 0])]) {
    for (const second of [0, 3, 3600]) assert.equal(viewAt(second, [state], true).phase, "loading");
  }
});

test("a first read that fails is failed, not empty, also while it is tried again", () => {
  const state = stateAfter(["begin", 0], ["fail"]);
  assert.equal(viewAt(1, [state], true).phase, "failed");
  state.begin(after(5));
  assert.equal(viewAt(6, [state], true).phase, "failed");
  assert.equal(sentenceAt(6, [state]), "The stacks could not be read: The API does not answer.");
  state.succeed([], after(7));
  assert.equal(viewAt(7, [state], true).phase, "empty");
});

test("what was read stays as stale where a later read fails, also where it was empty", () => {
  const state = stateAfter(["begin", 0], ["succeed", 1, []], ["begin", 4], ["fail"]);
  assert.equal(viewAt(31, [state], true).phase, "stale");
  assert.equal(sentenceAt(31, [state]), "Not up to date: this is how the stacks looked 30 s ago. The API does not answer.");
  state.succeed([1], after(33));
  assert.deepEqual([viewAt(33, [state]).phase, sentenceAt(33, [state])], ["ready", null]);
});

test("what is old is stale while a read of it hangs, and what is young is not", () => {
  const state = stateAfter(["begin", 0], ["succeed", 1, [1]], ["begin", 4]);
  assert.deepEqual([5, 15, 17].map((second) => viewAt(second, [state]).phase), ["ready", "ready", "stale"]);
  assert.match(sentenceAt(20, [state]), /looked 19 s ago\. The API has not answered since\.$/);
  // A page that was hidden for an hour reads at once: what it has flickers only where that takes long.
  const hidden = stateAfter(["begin", 0], ["succeed", 1, [1]], ["begin", 3600]);
  assert.deepEqual([3600.5, 3602].map((second) => viewAt(second, [hidden]).phase), ["ready", "stale"]);
});

test("a view is as its worst read", () => {
  const states = { ready: stateAfter(["succeed", 0, 1]), stale: stateAfter(["succeed", 0, 1], ["fail"]), loading: stateAfter(["begin", 0]), failed: stateAfter(["begin", 0], ["fail"]) };
  const order = ["ready", "stale", "loading", "failed"];
  for (const [place, one] of order.entries()) {
    for (const other of order.slice(place)) assert.equal(viewAt(1, [states[one], states[other]]).phase, other, `${one} and ${other}`);
  }
});

test("the age of a view is that of its oldest part", () => {
  const states = [stateAfter(["succeed", 0, 1], ["fail"]), stateAfter(["succeed", 50, 1])];
  assert.match(sentenceAt(60, states), /looked 60 s ago/);
});

test("a view that has waited for long says for how long", () => {
  const state = stateAfter(["begin", 0]);
  assert.equal(sentenceAt(2, [state]), "Reading the stacks …");
  assert.equal(sentenceAt(12.7, [state]), "Reading the stacks … The API has not answered for 12 s.");
});
