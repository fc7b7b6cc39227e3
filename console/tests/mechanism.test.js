// Whatever a view reads passes through the one mechanism that distinguishes loading, empty, failed and stale.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";

const PAGE = new URL("../page/", import.meta.url);
const TEXTS = fs.readdirSync(PAGE).filter((name) => name.endsWith(".js")).map((name) => /** @type {const} */ ([name, fs.readFileSync(new URL(name, PAGE), "utf8")]));
/** Reads that are no view's: whether the user is an admin, and the files of a template that a form sends on. */
const OTHERS = ["main.js", "compare.js"];

test("a view reads by sources, and shows them in a data view", () => {
  const reading = TEXTS.filter(([name, text]) => text.includes("api.get(") && !OTHERS.includes(name));
  assert.ok(reading.length >= 6);
  for (const [name, text] of reading) {
    const reads = text.split("\n").filter((line) => line.includes("api.get("));
    const isSource = (/** @type {string} */ line) => /new Source\(|_readGraph|this\.api\.get|new EventLog/.test(line);
    assert.deepEqual(reads.filter((line) => !isSource(line)), [], `${name} reads without a source`);
  }
  for (const [name, text] of TEXTS.filter(([, other]) => /new Source\(/.test(other) && !other.includes("class StackData"))) {
    assert.match(text, /new DataView\(/, `${name} has a source that no view shows`);
  }
});

test("only a data view decides what is said of a read", () => {
  const saying = TEXTS.filter(([, text]) => /\b(sentenceOf|viewOf)\b/.test(text)).map(([name]) => name);
  assert.deepEqual(saying, ["data_view.js", "view_state.js"]);
});
