// Each class of the page is short enough to be read at once.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";

const PAGE = new URL("../page/", import.meta.url);
const MOST_LINES = 200;

test("no class has more than 200 lines", () => {
  const modules = fs.readdirSync(PAGE).filter((name) => name.endsWith(".js"));
  const classes = modules.flatMap((name) => [...fs.readFileSync(new URL(name, PAGE), "utf8").matchAll(/^(?:export )?class (\w+)[^]*?^\}/gm)]);
  assert.ok(classes.length > 20);
  const long = classes.map(([text, name]) => [name, text.split("\n").length]).filter(([, lines]) => Number(lines) > MOST_LINES);
  assert.deepEqual(long, []);
});
