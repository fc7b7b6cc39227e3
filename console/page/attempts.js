// Turns events into bars: one for each attempt of each resource, and one for each hold at a breakpoint.  Pure.

const END = /_(COMPLETE|FAILED)$/;

/** Return the seconds of an event's instant. */
export function secondsOf(event) {
  return Date.parse(event.at) / 1000;
}

function bar(event, kind) {
  // A resource that is held before its creation has the status INIT_COMPLETE still: the reason names the action.
  const action = kind === "hold" ? event.reason.split(" ")[0] : event.status.split("_")[0];
  return { key: event.key, kind, from: secondsOf(event), to: null, conductor: event.conductor, attempt: event.attempt, action, failed: false, taken: null, again: null, ready: event.ready ? Date.parse(event.ready) / 1000 : null };
}

function close(open, event) {
  open.to = secondsOf(event);
  if (open.kind === "hold") return;
  open.failed = event.status.endsWith("FAILED");
  open.reason = open.failed ? event.reason : "";
  if (event.conductor && open.conductor && event.conductor !== open.conductor) open.taken = event.conductor;
  if (event.claimed && event.attempt > open.attempt) open.again = Date.parse(event.claimed) / 1000;
  open.attempt = event.attempt ?? open.attempt;
  open.conductor = event.conductor ?? open.conductor;
}

/**
 * Return the rows of a timeline, in the order in which they began.
 *
 * @param events of {key, name, path, status, reason, at, conductor, attempt}, in the order of time.
 * @returns rows of {key, name, path, bars}; a bar that has not ended has `to: null`.
 */
export function rowsOf(events) {
  const rows = new Map();
  const open = new Map();
  for (const event of events) {
    if (!rows.has(event.key)) rows.set(event.key, { key: event.key, name: event.name, path: event.path, isStack: event.isStack, bars: [] });
    const row = rows.get(event.key);
    const before = open.get(event.key);
    const isHeld = /paused until Hook/i.test(event.reason ?? "");
    if (before && !(before.kind === "try" && !isHeld && event.status === before.status && event.attempt === before.attempt)) {
      close(before, event);
      open.delete(event.key);
    } else if (before) continue;
    if (isHeld) start(row, open, bar(event, "hold"), event);
    else if (event.status.endsWith("IN_PROGRESS")) start(row, open, bar(event, "try"), event);
    else if (END.test(event.status) && !before && !event.status.startsWith("INIT")) {
      const point = bar(event, "try");
      close(point, event);
      row.bars.push(point);
    }
  }
  return [...rows.values()];
}

function start(row, open, made, event) {
  made.status = event.status;
  row.bars.push(made);
  open.set(row.key, made);
}

/** Return the events of which a timeline has bars, each with its path: the bar of a resource also stands for its nested stack. */
export function eventsOfBars(events, resources) {
  const holders = new Map(resources.filter((item) => item.child).map((item) => [item.child, item.path]));
  return events.filter((event) => !event.isStack || event.isRoot)
    .map((event) => (event.isRoot ? event : { ...event, path: holders.get(event.stack) ?? event.path }));
}

/** Return the instant from which the latest action of the stack counts; null: none is known. */
export function latestAction(events) {
  for (let index = events.length - 1; index >= 0; index -= 1) {
    const event = events[index];
    if (event.isStack && event.isRoot && event.status.endsWith("IN_PROGRESS") && /started/i.test(event.reason ?? "")) return secondsOf(event);
  }
  return null;
}

/** Return the keys of the rows that decided how long all took: back from the last end, by what each needed. */
export function criticalPath(rows, requires) {
  const ends = new Map();
  for (const row of rows) {
    const last = row.bars.filter((item) => item.kind === "try").at(-1);
    if (!row.isStack && last && last.to !== null) ends.set(row.key, last.to);
  }
  const latest = (keys) => keys.filter((key) => ends.has(key)).sort((a, b) => ends.get(b) - ends.get(a))[0];
  const path = new Set();
  for (let key = latest([...ends.keys()]); key !== undefined && !path.has(key); key = latest(requires.get(key) ?? [])) path.add(key);
  return path;
}
