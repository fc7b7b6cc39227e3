// What a view may say of the data that it shows: loading, failed, empty, stale or ready.  Pure; instants are in milliseconds.

import { span } from "./dom.js";

/** Seconds of a first read after which a view says for how long it has waited. */
export const SLOW = 5;
/** Seconds after which data counts as stale while the API does not answer. */
export const OVERDUE = 15;

/** The state of a read that is repeated: its last value, its last error, and what is under way. */
export class ReadState {
  constructor() {
    this.value = undefined;
    this.error = null;
    this.readAt = null;
    this.startedAt = null;
  }

  /** A read begins; its value and its error stay until it ends. */
  begin(now) {
    this.startedAt = now;
  }

  /** A read has brought a value. */
  succeed(value, now) {
    Object.assign(this, { value, error: null, readAt: now, startedAt: null });
  }

  /** A read has failed: what was read before stays, and is stale. */
  fail(error) {
    Object.assign(this, { error, startedAt: null });
  }

  /** Return "loading", "failed", "stale" or "ready". */
  phase(now) {
    if (this.readAt === null) return this.error ? "failed" : "loading";
    const isOverdue = this.startedAt !== null && now - this.startedAt > 1000 && now - this.readAt > OVERDUE * 1000;
    return this.error || isOverdue ? "stale" : "ready";
  }
}

const WORST = ["failed", "loading", "stale", "ready"];

/**
 * Return the state of a view that needs several reads: the worst of theirs.
 *
 * @param states of the reads, at least one.
 * @param isEmpty returns whether their values leave nothing to show; it is called only where all have been read.
 * @returns {phase, error, readAt, waited}: phase is "loading", "failed", "empty", "stale" or "ready"; readAt is the instant of the oldest
 *   value, waited the seconds for which a first read has taken.
 */
export function viewOf(states, isEmpty, now) {
  const phases = states.map((state) => state.phase(now));
  const worst = WORST.find((phase) => phases.includes(phase));
  const error = states.find((state, index) => phases[index] === worst)?.error ?? null;
  const readAt = states.reduce((oldest, state) => (state.readAt === null ? oldest : Math.min(oldest, state.readAt)), Infinity);
  const starts = states.filter((state, index) => phases[index] === "loading").map((state) => state.startedAt ?? now);
  const waited = starts.length ? (now - Math.min(...starts)) / 1000 : 0;
  const phase = worst === "ready" && isEmpty() ? "empty" : worst;
  return { phase, error, readAt, waited };
}

/**
 * Return the sentence that a view says of its state; null: it says nothing, or what its subject says where it is empty.
 *
 * @param subject what is read, with its article: "the stacks".
 */
export function sentenceOf({ phase, error, readAt, waited }, subject, now) {
  const Subject = subject[0].toUpperCase() + subject.slice(1);
  if (phase === "loading") return waited < SLOW ? `Reading ${subject} …` : `Reading ${subject} … The API has not answered for ${span(Math.floor(waited))}.`;
  if (phase === "failed") return `${Subject} could not be read: ${error.message}`;
  if (phase !== "stale") return null;
  const age = span(Math.round((now - readAt) / 1000));
  return `Not up to date: this is how ${subject} looked ${age} ago. ${error?.message ?? "The API has not answered since."}`;
}
