// What a slow API must not cause: an older answer over a newer one, or a request that is sent twice.

import assert from "node:assert/strict";
import { test } from "node:test";

import { once } from "../page/dom.js";
import { Live, Source } from "../page/live.js";

globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {}, querySelectorAll: () => [] };

/** Return a read whose answers come when the test says so, and its requests. */
function gated() {
  const requests = [];
  return { requests, read: (isFresh) => new Promise((answer) => requests.push({ isFresh, answer })) };
}

const soon = () => new Promise(setImmediate);

test("reads of a source follow each other, so that the answer of the last one stays", async () => {
  const { requests, read } = gated();
  const source = new Source(read);
  source.refresh(true);
  const last = source.refresh(true);
  await soon();
  assert.equal(requests.length, 1);
  requests[0].answer("old");
  await soon();
  assert.equal(requests.length, 2);
  requests[1].answer("new");
  await last;
  assert.equal(source.value, "new");
});

test("what is read after an action began after it", async (context) => {
  const { requests, read } = gated();
  let isOver = false;
  const live = new Live(1000, () => {});
  context.after(() => live.stop());
  live.follow([new Source(read)]);
  await soon();
  const reading = live.now().then(() => { isOver = true; });
  requests[0].answer("before");
  await soon();
  assert.deepEqual([isOver, requests.map(({ isFresh }) => isFresh)], [false, [true, true]]);
  requests[1].answer("after");
  await reading;
});

test("a button does nothing more while what it does takes time, whatever comes of that", async () => {
  const attributes = new Map();
  const element = {
    getAttribute: (name) => attributes.get(name) ?? null, setAttribute: (name, value) => attributes.set(name, value), removeAttribute: (name) => attributes.delete(name),
  };
  let sent = 0;
  const { requests, read } = gated();
  const act = async () => {
    sent += 1;
    if (await read() === "refused") throw new Error("refused");
  };
  const first = once(element, act);
  await once(element, act);
  assert.equal(sent, 1);
  requests[0].answer("accepted");
  await first;
  const second = once(element, act);
  requests[1].answer("refused");
  await assert.rejects(second, /refused/);
  once(element, () => { sent += 1; });
  once(element, () => { sent += 1; });
  assert.equal(sent, 4);
});
