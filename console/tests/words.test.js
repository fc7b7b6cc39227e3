// The words and keys of states, and texts that users have chosen.

import assert from "node:assert/strict";
import { test } from "node:test";


import { span, spelled } from "../page/dom.js";
import { STATES, hueOf, isPaused, keyOf, keyOfStack, taskWords, words } from "../page/states.js";

test("each status has a key with a shape and a word", () => {
  const keys = {
    CREATE_COMPLETE: "ok", UPDATE_IN_PROGRESS: "run", DELETE_FAILED: "bad", INIT_COMPLETE: "wait", DELETE_COMPLETE: "gone",
    SUSPEND_COMPLETE: "off", RESUME_COMPLETE: "ok", CHECK_FAILED: "bad",
  };
  for (const [status, key] of Object.entries(keys)) {
    assert.equal(keyOf(status), key, status);
    assert.equal(keyOf(status, true), "held", status);
    assert.ok(STATES[key].word);
  }
});

test("a status is said in words", () => {
  const say = (status, isHeld) => words(status, keyOf(status, isHeld));
  assert.equal(say("CREATE_IN_PROGRESS"), "create in progress");
  assert.equal(say("CREATE_IN_PROGRESS", true), "create held");
  assert.equal(say("INIT_COMPLETE"), "waiting");
  assert.equal(say("INIT_COMPLETE", true), "held");
});

test("a stack counts as held only while its action is in progress", () => {
  const reason = "CREATE paused at breakpoint: pre-create on r1";
  const stack = (status, text) => ({ stack_status: status, stack_status_reason: text });
  assert.equal(keyOfStack(stack("CREATE_IN_PROGRESS", reason)), "held");
  assert.equal(keyOfStack(stack("CREATE_IN_PROGRESS", "Stack CREATE started")), "run");
  assert.equal(keyOfStack(stack("CREATE_FAILED", reason)), "bad");
  assert.equal(isPaused(stack("UPDATE_IN_PROGRESS", null)), false);
});

test("a task says its action, its state, and where it is or for which event it waits", () => {
  assert.equal(taskWords(null), null);
  assert.equal(taskWords({ action: "CREATE", state: "running", attempt: 1, conductor: "conductor-1" }), "create: running on conductor-1");
  assert.equal(taskWords({ action: "create", state: "ready", attempt: 3, conductor: null }), "create: ready, attempt 3");
  assert.equal(taskWords({ action: "create", state: "parked", waits_for: "stack" }), "create: waits for its nested stack");
  assert.equal(taskWords({ action: "create", state: "parked", waits_for: "moon" }), "create: waits for moon");
});

test("a conductor has one colour as long as the others stay", () => {
  const hosts = Array.from({ length: 12 }, (_, index) => `c${index}`);
  assert.deepEqual(["c0", "c9", "c10", "other"].map((host) => hueOf(host, hosts)), ["hue-0", "hue-9", "hue-0", "hue-none"]);
});

test("characters that disguise a name are spelled out, all others stay", () => {
  assert.equal(spelled("\u202egpj.exe"), "⟨U+202E⟩gpj.exe");
  assert.equal(spelled("a\u0000b\u200bc\u2066d\ufeff"), "a⟨U+0000⟩b⟨U+200B⟩c⟨U+2066⟩d⟨U+FEFF⟩");
  assert.equal(spelled("<b>Grüße 名前</b>"), "<b>Grüße 名前</b>");
  assert.equal(spelled(null), "");
});

test("a span of seconds has the unit that a reader can grasp", () => {
  const spans = [[-1, "0 s"], [0.25, "0.25 s"], [3, "3 s"], [3.25, "3.3 s"], [42.4, "42 s"], [90, "90 s"], [150, "3 min"], [7300, "2 h"], [200000, "2 days"]];
  for (const [seconds, text] of spans) assert.equal(span(seconds), text);
});
