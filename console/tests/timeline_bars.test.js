// The bars of the timeline: one for each attempt, one for each hold at a breakpoint; the axis under them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { event, graphOf, SHOP, stackEvent, WEB } from "./answers.js";

import { criticalPath, eventsOfBars, latestAction, rowsOf, secondsOf, sharesOf, withPresentWaits } from "../page/attempts.js";
import { eventsOf, resourcesOf } from "../page/shapes.js";
import { barWords, pageOf, pathWords, tickWords, ticksOf } from "../page/timeline.js";

const START = Date.parse("2026-11-24T02:12:00Z") / 1000;
const instant = (second) => `2026-11-24T02:12:${second.toFixed(3).padStart(6, "0")}Z`;

/** Return the events of an attempt of a resource: both have its number, the second its claim. */
function attempt(stack, name, [ready, from, to], { status = "CREATE_COMPLETE", conductor = "conductor-1", number = 1, reason = "state changed" } = {}) {
  const times = { attempt: number, conductor, ready_time: instant(ready), claimed_time: instant(from) };
  return [event(stack, name, "CREATE_IN_PROGRESS", from, times), event(stack, name, status, to, { ...times, resource_status_reason: reason })];
}

/** Return the rows of events as the timeline shows them. */
function rows(events) {
  return rowsOf(eventsOfBars(eventsOf({ events }, SHOP), resourcesOf(graphOf()))).filter((row) => row.bars.length);
}

function only(events) {
  const all = rows(events);
  assert.equal(all.length, 1);
  return all[0].bars;
}

const HOLD = [
  event(SHOP, "schema", "INIT_COMPLETE", 3, { resource_status_reason: "CREATE paused until Hook pre-create is cleared", conductor: "conductor-2" }),
  event(SHOP, "schema", "INIT_COMPLETE", 7, { resource_status_reason: "Hook pre-create is cleared" }),
];

test("an attempt is a bar from its claim to its end, with conductor, number and the time it was ready", () => {
  const [bar] = only(attempt(SHOP, "network", [1, 2, 5]));
  assert.deepEqual([bar.kind, bar.action, bar.failed, bar.attempt, bar.conductor, bar.taken, bar.again], ["try", "CREATE", false, 1, "conductor-1", null, null]);
  assert.deepEqual([bar.ready - START, bar.from - START, bar.to - START], [1, 2, 5]);
  assert.equal(barWords(bar, START + 60), "create, attempt 1, conductor-1, 3 s");
});

test("a hold at a breakpoint is a bar until it is cleared, and the attempt after it another", () => {
  const bars = only([...HOLD, ...attempt(SHOP, "schema", [7, 8, 9])]);
  assert.deepEqual(bars.map((bar) => [bar.kind, bar.from - START, bar.to - START]), [["hold", 3, 7], ["try", 8, 9]]);
  const [open] = only(HOLD.slice(0, 1));
  assert.equal(open.to, null);
  assert.equal(barWords(open, START + 23), "create held at a breakpoint, conductor-2, 20 s, not ended");
  const [ended] = only([HOLD[0], event(SHOP, "schema", "CREATE_FAILED", 5, { resource_status_reason: "CREATE aborted" })]);
  assert.deepEqual([ended.kind, ended.failed, ended.to - START], ["hold", false, 5], "not the hold has failed");
});

test("a failure says its reason, and the next attempt has a bar of its own", () => {
  const reason = "ValueError: resources.page: Test Resource failed page";
  const bars = only([...attempt(SHOP, "page", [1, 1, 2], { status: "CREATE_FAILED", reason }), ...attempt(SHOP, "page", [3, 3, 4], { number: 2 })]);
  assert.deepEqual(bars.map((bar) => [bar.failed, bar.attempt]), [[true, 1], [false, 2]]);
  assert.equal(barWords(bars[0], 0), `create, attempt 1, conductor-1, 1 s, failed: ${reason}`);
});

test("an attempt that another conductor ends is one bar, which says who took it over and when", () => {
  const [first] = attempt(SHOP, "network", [1, 1, 2]);
  const [, last] = attempt(SHOP, "network", [4, 5, 6], { conductor: "conductor-2", number: 2 });
  const [bar, ...others] = only([first, last]);
  assert.deepEqual(others, []);
  assert.deepEqual([bar.taken, bar.attempt, bar.again - START, bar.to - START], ["conductor-2", 2, 5, 6]);
  assert.match(barWords(bar, 0), /attempt 2, conductor-2, 5 s, taken over by conductor-2$/);
});

test("an event that is repeated begins no second bar", () => {
  const [first, last] = attempt(SHOP, "network", [1, 1, 2]);
  assert.equal(only([first, { ...first, id: "again" }, last]).length, 1);
});

test("rows stand in the order in which they began, those of a nested stack under its holder's path", () => {
  const events = [
    stackEvent(SHOP, "CREATE_IN_PROGRESS", 1, "Stack CREATE started"), ...attempt(SHOP, "network", [1, 1, 2]), ...attempt(SHOP, "web", [2, 2, 5]),
    stackEvent(WEB, "CREATE_IN_PROGRESS", 3, "Stack CREATE started"), ...attempt(WEB, "0", [3, 3, 4]),
    stackEvent(WEB, "CREATE_COMPLETE", 4, "Stack CREATE completed successfully"), stackEvent(SHOP, "CREATE_COMPLETE", 6, "Stack CREATE completed successfully"),
  ];
  assert.deepEqual(rows(events).map((row) => [row.path, row.name, row.isStack]), [["", "shop", true], ["", "network", false], ["", "web", false], ["web", "0", false]]);
});

test("a name of a stack and its id are read from the address, behind a proxy too", () => {
  const [root, nested] = eventsOf({ events: [stackEvent(SHOP, "CREATE_IN_PROGRESS", 1, ""), event(WEB, "0", "CREATE_COMPLETE", 2)] }, SHOP);
  assert.deepEqual([root.key, root.isStack, root.isRoot, root.path], [`${SHOP}/`, true, true, ""]);
  assert.deepEqual([nested.key, nested.isStack, nested.isRoot, nested.path], [`${WEB}/0`, false, false, "shop-web-7eed"]);
  const resource = eventsOf({ events: [event(SHOP, "shop", "CREATE_COMPLETE", 1, { physical_resource_id: "server" })] }, SHOP)[0];
  assert.equal(resource.isStack, false, "a resource may be named as its stack");
});

test("the latest action begins at its first event, not at one of a nested stack", () => {
  const events = eventsOf({ events: [
    stackEvent(SHOP, "CREATE_IN_PROGRESS", 1, "Stack CREATE started"), stackEvent(SHOP, "UPDATE_IN_PROGRESS", 10, "Stack UPDATE started"),
    stackEvent(SHOP, "UPDATE_IN_PROGRESS", 12, "UPDATE paused at breakpoint: pre-update on schema"), stackEvent(WEB, "UPDATE_IN_PROGRESS", 15, "Stack UPDATE started"),
  ] }, SHOP);
  assert.equal(latestAction(events) - START, 10);
  assert.equal(secondsOf(events[0]) - START, 1);
  assert.equal(latestAction([]), null);
});

test("the path that decided the duration leads from the last end back through what each needed last", () => {
  const all = rows([...attempt(SHOP, "network", [0, 0, 2]), ...attempt(SHOP, "schema", [2, 2, 3]), ...attempt(SHOP, "web", [2, 2, 8]), ...attempt(SHOP, "page", [8, 8, 9])]);
  const requires = new Map(resourcesOf(graphOf()).map((item) => [item.id, item.requires]));
  assert.deepEqual([...criticalPath(all, requires)], ["page", "web", "network"].map((name) => `${SHOP}/${name}`));
  assert.deepEqual([...criticalPath([], requires)], []);
  const words = (path) => pathWords(sharesOf(all, path));
  assert.equal(words(criticalPath(all, requires)), "Critical path of 3 resources: 9 s, of which web 6 s, network 2 s, page 1 s.");
  assert.equal(words(new Set([`${SHOP}/network`])), "Critical path of one resource: 2 s.");
  assert.equal(words(new Set()), "");
});

test("the ticks of the axis are round, leave room for their words, and end with it", () => {
  assert.deepEqual(ticksOf(10, 900), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.deepEqual(ticksOf(10, 300), [0, 5, 10]);
  for (const length of [0.1, 0.7, 3, 59, 61, 3600, 5e4, 3e6, 1e8]) {
    for (const width of [0, 200, 900, 3000]) {
      const ticks = ticksOf(length, width);
      assert.equal(ticks[0], 0);
      assert.ok(ticks.at(-1) <= length);
      assert.ok(ticks.length >= 2 || width < 400, `${length} s on ${width} pixels: ${ticks}`);
      assert.ok(ticks.length <= Math.max(2, width / 90) + 1, `${length} s on ${width} pixels: ${ticks.length} ticks`);
    }
  }
});

test("the words of a tick are exact: no two ticks of an axis have the same", () => {
  assert.deepEqual([0.05, 1.05, 45, 60, 90, 150, 3600, 9000, 194_400].map(tickWords), ["0.05 s", "1.05 s", "45 s", "1 min", "1 min 30 s", "2 min 30 s", "1 h", "2 h 30 min", "2 d 6 h"]);
  for (let length = 0.1; length < 1e8; length *= 1.07) {
    for (const width of [300, 900, 3000]) {
      const words = ticksOf(length, width).map(tickWords);
      assert.equal(new Set(words).size, words.length, `${length} s on ${width} pixels: ${words}`);
    }
  }
});

test("the pauses before retries are parts of their bar, each with its reason", () => {
  const again = (second, number) => event(SHOP, "network", "CREATE_IN_PROGRESS", second, {
    attempt: number, conductor: "conductor-1", resource_status_reason: `will be tried again: over the quota: cores, try ${number}; next try in 10 s`,
  });
  const [first, last] = attempt(SHOP, "network", [1, 1, 30], { number: 3 });
  const [bar, ...others] = only([{ ...first, attempt: 1 }, again(2, 1), again(13, 2), last]);
  assert.deepEqual(others, []);
  assert.deepEqual(bar.waits.map((wait) => [wait.from - START, wait.to - START, wait.reason]), [[2, 12, "over the quota: cores, try 1"], [13, 23, "over the quota: cores, try 2"]]);
  assert.match(barWords(bar, 0), /attempt 3, .*waited 10 s: over the quota: cores, try 1, waited 10 s: over the quota: cores, try 2/);
});

test("a bar that has not ended says for what its resource waits now", () => {
  const [first] = attempt(SHOP, "network", [1, 1, 2]);
  const resources = resourcesOf(graphOf()).map((item) => (item.name === "network" ? { ...item, task: { action: "create", state: "parked", since: instant(5), waits_for: "signal" } } : item));
  const [{ bars: [bar] }] = withPresentWaits(rows([first]), resources);
  assert.deepEqual(bar.waits, [{ from: START + 5, to: null, reason: "create: waits for a signal" }]);
  assert.match(barWords(bar, START + 25), /waited 20 s: create: waits for a signal, not ended/);
});

test("a page of rows is counted from the end", () => {
  const numbers = Array.from({ length: 12 }, (_, index) => index);
  assert.deepEqual(pageOf(numbers, 0, 5), { page: 0, last: 2, from: 7, to: 12, rows: [7, 8, 9, 10, 11] });
  assert.deepEqual(pageOf(numbers, 2, 5), { page: 2, last: 2, from: 0, to: 2, rows: [0, 1] });
  assert.deepEqual(pageOf(numbers, 9, 5).page, 2, "the page is gone");
  assert.deepEqual(pageOf([], 0, 5), { page: 0, last: 0, from: 0, to: 0, rows: [] });
});
