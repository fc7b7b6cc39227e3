// The rows of the tab "Drift".

import assert from "node:assert/strict";
import { test } from "node:test";

import { driftWords, rowsOf } from "../page/drift.js";

test("each property that differs has a row, and so has a thing that is gone", () => {
  const common = { resource_name: "web", resource_type: "T", physical_resource_id: "1", stack_name: "s", stack_id: "2", since: "2026-01-01T00:00:00Z" };
  const changed = { ...common, resource_path: "n/web", difference: "CHANGED", properties: [{ name: "tags", template: ["a"], cloud: null }] };
  const rows = rowsOf({ drift_status: "DRIFTED", observed_time: null, unknown: [], resources: [changed, { ...common, resource_path: "port", difference: "GONE", properties: [] }] });
  assert.deepEqual(rows.map((row) => [row.path, row.property, row.template, row.cloud]), [["n/web", "tags", '["a"]', "null"], ["port", "", "", "gone"]]);
});

test("a stack that was not observed has no words", () => {
  assert.equal(driftWords({}), "");
  assert.equal(driftWords({ drift_status: "DRIFTED", drifted_resources: 2 }), "drifted: 2");
  assert.equal(driftWords({ drift_status: "IN_SYNC", drifted_resources: 0 }), "in sync");
});
