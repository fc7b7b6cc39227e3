// What a view may say of the data that it shows: loading, failed, empty, stale or ready.  Pure; instants are in milliseconds.

import { span } from "./dom.js";

/** Seconds of a first read after which a view says for how long it has waited. */
export const SLOW = 5;
/** Seconds after which data counts as stale while the API does not answer. */
export const OVERDUE = 15;

/** @typedef {"failed" | "loading" | "stale" | "ready"} ReadPhase */

/** @typedef {{phase: ReadPhase | "empty", error: Error | null, readAt: number, waited: number}} ViewState */

/**
 * The state of a read that is repeated: its last value, its last error, and what is under way.
 *
 * @template T
 */
export class ReadState {
  constructor() {
    /** @type {T | undefined} */
    this.value = undefined;
    /** @type {(Error & {status?: number}) | null} */
    this.error = null;
    /** @type {number | null} the instant of the value */
    this.readAt = null;
    /** @type {number | null} the instant at which the read began that is under way */
    this.startedAt = null;
  }

  /**
   * A read begins; its value and its error stay until it ends.
   *
   * @param {number} now
   */
  begin(now) {
    this.startedAt = now;
  }

  /**
   * A read has brought a value.
   *
   * @param {T} value
   * @param {number} now
   */
  succeed(value, now) {
    this.value = value;
    this.error = null;
    this.readAt = now;
    this.startedAt = null;
  }

  /**
   * A read has failed: what was read before stays, and is stale.
   *
   * @param {Error} error
   */
  fail(error) {
    this.error = error;
    this.startedAt = null;
  }

  /**
   * Return what the read allows to say now.
   *
   * @param {number} now
   * @returns {ReadPhase}
   */
  phase(now) {
    if (this.readAt === null) return this.error ? "failed" : "loading";
    const isOverdue = this.startedAt !== null && now - this.startedAt > 1000 && now - this.readAt > OVERDUE * 1000;
    return this.error || isOverdue ? "stale" : "ready";
  }
}

/** @type {ReadPhase[]} */
const WORST = ["failed", "loading", "stale", "ready"];

/**
 * Return the state of a view that needs several reads: the worst of theirs.
 *
 * @param {ReadState<any>[]} states of the reads, at least one.
 * @param {() => boolean} isEmpty returns whether their values leave nothing to show; it is called only where all have been read.
 * @param {number} now
 * @returns {ViewState} `readAt` is the instant of the oldest value, `waited` the seconds that a first read has taken.
 */
export function viewOf(states, isEmpty, now) {
  const phases = states.map((state) => state.phase(now));
  const worst = WORST.find((one) => phases.includes(one)) ?? "ready";
  const error = states[phases.indexOf(worst)].error ?? null;
  const readAt = Math.min(...states.map((state) => state.readAt ?? Infinity));
  const starts = states.filter((_, index) => phases[index] === "loading").map((state) => state.startedAt ?? now);
  const waited = starts.length ? (now - Math.min(...starts)) / 1000 : 0;
  const phase = worst === "ready" && isEmpty() ? "empty" : worst;
  return { phase, error, readAt, waited };
}

/**
 * Return the sentence that a view says of its state; null: it says nothing, or what its subject says where it is empty.
 *
 * @param {ViewState} view
 * @param {string} subject what is read, with its article: "the stacks".
 * @param {number} now
 */
export function sentenceOf({ phase, error, readAt, waited }, subject, now) {
  const Subject = subject[0].toUpperCase() + subject.slice(1);
  if (phase === "loading") return waited < SLOW ? `Reading ${subject} …` : `Reading ${subject} … The API has not answered for ${span(Math.floor(waited))}.`;
  if (phase === "failed") return `${Subject} could not be read: ${error?.message}`;
  if (phase !== "stale") return null;
  const age = span(Math.round((now - readAt) / 1000));
  return `Not up to date: this is how ${subject} looked ${age} ago. ${error?.message ?? "The API has not answered since."}`;
}
