// Turns events into bars: one for each attempt of each resource, and one for each hold at a breakpoint.  Pure.

import { taskWords } from "./states.js";

const END = /_(COMPLETE|FAILED)$/;
const AGAIN = /^will be tried again: (.*?)(?:; next try in (\d+) s)?$/s;

/**
 * Return the seconds of an event's instant.
 *
 * @param {StackEvent} event
 */
export function secondsOf(event) {
  return Date.parse(event.at) / 1000;
}

/**
 * @param {StackEvent} event
 * @param {Bar["kind"]} kind
 * @returns {Bar}
 */
function barFrom(event, kind) {
  // A resource that is held before its creation has the status INIT_COMPLETE still: the reason names the action.
  const action = kind === "hold" ? event.reason.split(" ")[0] : event.status.split("_")[0];
  return {
    key: event.key, kind, status: event.status, from: secondsOf(event), to: null, conductor: event.conductor, attempt: event.attempt, action,
    failed: false, reason: "", taken: null, again: null, waits: [], ready: event.ready ? Date.parse(event.ready) / 1000 : null,
  };
}

/**
 * Return a bar as its last event ends it.
 *
 * @param {Bar} bar
 * @param {StackEvent} event
 * @returns {Bar}
 */
function ended(bar, event) {
  const to = secondsOf(event);
  if (bar.kind === "hold") return { ...bar, to };
  const failed = event.status.endsWith("FAILED");
  const isTaken = event.conductor && bar.conductor && event.conductor !== bar.conductor;
  const isAgain = event.claimed && (event.attempt ?? 0) > (bar.attempt ?? 0);
  return {
    ...bar, to, failed, reason: failed ? event.reason : "", taken: isTaken ? event.conductor : bar.taken,
    again: isAgain ? Date.parse(event.claimed ?? "") / 1000 : bar.again, attempt: event.attempt ?? bar.attempt, conductor: event.conductor ?? bar.conductor,
  };
}

/**
 * Return the rows of a timeline, in the order in which they began.
 *
 * @param {StackEvent[]} events in the order of time.
 */
export function rowsOf(events) {
  /** @type {Map<string, Row>} */
  const rows = new Map();
  for (const event of events) {
    const row = rows.get(event.key) ?? { key: event.key, name: event.name, path: event.path, isStack: event.isStack, bars: [] };
    rows.set(event.key, row);
    add(row.bars, event);
  }
  return [...rows.values()];
}

/**
 * Return the pause before a retry that an event shows; null: it shows none.
 *
 * @param {StackEvent} event
 * @returns {Wait | null}
 */
function waitOf(event) {
  const match = AGAIN.exec(event.reason);
  const from = secondsOf(event);
  return match && { from, to: match[2] ? from + Number(match[2]) : null, reason: match[1] };
}

/**
 * Return whether an event only says that the try of an open bar goes on; a pause becomes a part of the bar.
 *
 * @param {Bar[]} bars
 * @param {Bar} open
 * @param {StackEvent} event
 */
function goesOn(bars, open, event) {
  if (open.kind !== "try" || isHold(event) || event.status !== open.status) return false;
  const wait = waitOf(event);
  if (wait) bars.splice(-1, 1, { ...open, attempt: event.attempt ?? open.attempt, waits: [...open.waits, wait] });
  return wait !== null || event.attempt === open.attempt;
}

/**
 * Let an event end the open bar of a row, and begin the next one.
 *
 * @param {Bar[]} bars
 * @param {StackEvent} event
 */
function add(bars, event) {
  const last = bars.at(-1);
  const open = last && last.to === null ? last : null;
  const isHeld = isHold(event);
  if (open && goesOn(bars, open, event)) return;
  if (open) bars.splice(-1, 1, ended(open, event));
  if (isHeld) bars.push(barFrom(event, "hold"));
  else if (event.status.endsWith("IN_PROGRESS")) bars.push(barFrom(event, "try"));
  else if (END.test(event.status) && !open && !event.status.startsWith("INIT")) bars.push(ended(barFrom(event, "try"), event));
}

/**
 * Return rows with what their open bars wait for now, which no event says: a signal, a nested stack, the next try.
 *
 * @param {Row[]} rows
 * @param {Resource[]} resources
 */
export function withPresentWaits(rows, resources) {
  const parked = new Map(resources.filter((item) => item.task?.state === "parked").map((item) => [item.id, item]));
  return rows.map((row) => {
    const item = parked.get(row.key);
    const bar = row.bars.at(-1);
    if (!item || !bar || bar.kind !== "try" || bar.to !== null || bar.waits.some((wait) => (wait.to ?? Infinity) > Date.now() / 1000)) return row;
    const from = Math.max(bar.from, Date.parse(item.task?.since ?? "") / 1000 || bar.from);
    return { ...row, bars: [...row.bars.slice(0, -1), { ...bar, waits: [...bar.waits, { from, to: null, reason: item.task?.waits_for === "retry" ? item.reason : taskWords(item.task) ?? "" }] }] };
  });
}

/**
 * Return whether an event says that a resource is held at a breakpoint.
 *
 * @param {StackEvent} event
 */
export function isHold(event) {
  return /paused until Hook/i.test(event.reason);
}

/**
 * Return the events of which a timeline has bars, each with its path: the bar of a resource also stands for its nested stack.
 *
 * @param {StackEvent[]} events
 * @param {Resource[]} resources
 */
export function eventsOfBars(events, resources) {
  const holders = new Map(resources.filter((item) => item.child).map((item) => [item.child, item.path]));
  return events.filter((event) => !event.isStack || event.isRoot)
    .map((event) => (event.isRoot ? event : { ...event, path: holders.get(event.stack) ?? event.path }));
}

/**
 * Return the instant from which the latest action of the stack counts; null: none is known.
 *
 * @param {StackEvent[]} events
 */
export function latestAction(events) {
  for (let index = events.length - 1; index >= 0; index -= 1) {
    const event = events[index];
    if (event.isStack && event.isRoot && event.status.endsWith("IN_PROGRESS") && /started/i.test(event.reason ?? "")) return secondsOf(event);
  }
  return null;
}

/**
 * Return the keys of the rows that decided how long all took: back from the last end, by what each needed.
 *
 * @param {Row[]} rows
 * @param {Map<string, string[]>} requires the keys of the rows that each one needs.
 */
export function criticalPath(rows, requires) {
  /** @type {Map<string, number>} */
  const ends = new Map();
  for (const row of rows) {
    const last = row.bars.filter((item) => item.kind === "try").at(-1);
    if (!row.isStack && last && last.to !== null) ends.set(row.key, last.to);
  }
  const endOf = (/** @type {string} */ key) => ends.get(key) ?? 0;
  const latest = (/** @type {string[]} */ keys) => /** @type {string | undefined} */ (keys.filter((key) => ends.has(key)).sort((a, b) => endOf(b) - endOf(a))[0]);
  /** @type {Set<string>} */
  const path = new Set();
  for (let key = latest([...ends.keys()]); key !== undefined && !path.has(key); key = latest(requires.get(key) ?? [])) path.add(key);
  return path;
}

/**
 * Return the parts of the time that a critical path took, the longest first: each row has it from the end of the row that it needed to its own.
 *
 * @param {Row[]} rows
 * @param {Set<string>} path of these rows, from the last to the first.
 * @returns {{row: Row, seconds: number}[]}
 */
export function sharesOf(rows, path) {
  const byKey = new Map(rows.map((row) => [row.key, row]));
  const onPath = [...path].reverse().flatMap((key) => byKey.get(key) ?? []);
  /** @type {number | null} */
  let begin = null;
  const shares = [];
  for (const row of onPath) {
    const end = row.bars.at(-1)?.to ?? row.bars[0].from;
    const from = begin ?? row.bars[0].ready ?? row.bars[0].from;
    shares.push({ row, seconds: Math.max(0, end - from) });
    begin = end;
  }
  return shares.sort((a, b) => b.seconds - a.seconds);
}
