// The events of a stack, as they are read page by page, and what is said of those that are gone.

import assert from "node:assert/strict";
import { test } from "node:test";

import { event, SHOP, stackEvent, WEB } from "./answers.js";

import { EventLog, missingWords } from "../page/event_log.js";
import { eventsOf } from "../page/shapes.js";

/** An API that keeps events, and answers pages of at most `page`. */
class Api {
  constructor(count, page) {
    this.page = page;
    this.requests = 0;
    this.events = [];
    this.add(count);
  }

  add(count) {
    for (let number = 0; number < count; number += 1) this.events.push(event(SHOP, `r${this.events.length}`, "CREATE_COMPLETE", 1));
  }

  get(path) {
    this.requests += 1;
    const query = new URL(path, "http://api/").searchParams;
    const ordered = query.get("sort_dir") === "desc" ? [...this.events].reverse() : this.events;
    const marker = query.get("marker");
    const place = ordered.findIndex((item) => item.id === marker);
    if (marker && place < 0) return Promise.reject(Object.assign(new Error("The marker is not the id of an event"), { status: 400 }));
    return Promise.resolve({ events: ordered.slice(place + 1, place + 1 + Math.min(this.page, Number(query.get("limit")))) });
  }
}

const names = (events) => events.map((item) => Number(item.name.slice(1)));
const numbers = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);

test("all events are read, in the order of time, however short the API's pages are", async () => {
  for (const page of [1, 2, 3, 1000]) {
    const api = new Api(7, page);
    const log = new EventLog((path) => api.get(path), "events", SHOP);
    assert.deepEqual(names(await log.read(true)), numbers(0, 7), `pages of ${page}`);
    api.add(5);
    assert.deepEqual(names(await log.read(false)), numbers(0, 12), `pages of ${page}, later`);
  }
});

test("the same list is returned while there is nothing new, by one request", async () => {
  const api = new Api(3, 1000);
  const log = new EventLog((path) => api.get(path), "events", SHOP);
  const events = await log.read(true);
  api.requests = 0;
  assert.equal(await log.read(false), events);
  assert.equal(api.requests, 1);
  const none = new EventLog((path) => new Api(0, 10).get(path), "events", SHOP);
  assert.deepEqual(await none.read(true), []);
});

test("of more events than are shown the latest are read, and the others are said to be missing", async () => {
  const api = new Api(25, 10);
  const log = new EventLog((path) => api.get(path), "events", SHOP, { most: 20 });
  const events = await log.read(true);
  assert.deepEqual(names(events), numbers(5, 25));
  assert.equal(missingWords(events, null, 20), "Only the latest 20 events are shown.");
  api.add(10);
  assert.deepEqual(names(await log.read(false)), numbers(15, 35));
});

test("where the last event was purged meanwhile, all are read again", async () => {
  const api = new Api(5, 1000);
  const log = new EventLog((path) => api.get(path), "events", SHOP);
  await log.read(true);
  api.events = [];
  api.add(2);
  assert.equal((await log.read(false)).length, 2);
  api.get = () => Promise.reject(Object.assign(new Error("No."), { status: 400 }));
  await assert.rejects(log.read(false), /No\./, "another refusal is no reason to try for ever");
});

test("events that are gone are said to be, where an action that is shown has lost some", () => {
  const of = (...events) => eventsOf({ events }, SHOP);
  const start = stackEvent(SHOP, "CREATE_IN_PROGRESS", 1, "Stack CREATE started");
  const later = event(SHOP, "network", "CREATE_COMPLETE", 4);
  assert.equal(missingWords(of(start, later), null), null);
  assert.match(missingWords(of(later), null), /^Older events are gone/);
  const nested = event(WEB, "0", "CREATE_COMPLETE", 5);
  assert.match(missingWords(of(start, nested), null), /^Older/, "those of a nested stack");
  assert.equal(missingWords(of(start, stackEvent(WEB, "CREATE_IN_PROGRESS", 3, ""), nested), null), null);
  const update = stackEvent(SHOP, "UPDATE_IN_PROGRESS", 7, "Stack UPDATE started");
  const since = Date.parse("2026-11-24T02:12:07Z") / 1000;
  assert.equal(missingWords(of(update), since), null, "the latest action is whole");
  assert.match(missingWords(of(update), null), /^Older/, "the others are not");
  assert.equal(missingWords([], null), null);
});
