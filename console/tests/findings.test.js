// The findings of a preflight beside the changes of an update.

import assert from "node:assert/strict";
import { test } from "node:test";

import { findingRows } from "../page/compare.js";

const UNKNOWN = { kind: "not checked", path: "", message: "not checked: network: no answer within 5 s", needed: "", available: "", certainty: "not known", advice: "" };
const QUOTA = {
  kind: "quota", path: "resources.web", message: "quota cores of compute: 8 needed, 4 left", needed: "8", available: "4", certainty: "likely", advice: "Make room.",
};

test("what hinders the update comes first, with its place and with advice", () => {
  assert.deepEqual(findingRows([UNKNOWN, QUOTA]), [
    { hinders: true, path: "resources.web", text: "quota cores of compute: 8 needed, 4 left (likely). Make room." },
    { hinders: false, path: "", text: "not checked: network: no answer within 5 s (not known)." },
  ]);
});

test("a quota of which nobody knows how much it takes hinders nothing", () => {
  assert.deepEqual(findingRows([{ ...QUOTA, certainty: "not known" }]).map((row) => row.hinders), [false]);
});
