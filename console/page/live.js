// Reads again and again what a view shows, while it is shown.

import { ReadState } from "./view_state.js";
import { refreshAges } from "./dom.js";

const SLOWEST = 30;
const TICK = 1000;

/**
 * Something that is read from the API, with the state of the read.
 *
 * @template T
 */
export class Source {
  /**
   * @param {(isFresh: boolean) => Promise<T>} read returns the value; it is called with true where an answer a second old will not do.
   * @param {{isOnce?: boolean}} [options] isOnce: it need not be read again once it has been read.
   */
  constructor(read, { isOnce = false } = {}) {
    this._read = read;
    this.isOnce = isOnce;
    /** @type {ReadState<T>} */
    this.state = new ReadState();
    /** @type {Promise<void>} ends with the last read that was asked for */
    this._reading = Promise.resolve();
  }

  /** Return what was read last; undefined: nothing yet. */
  get value() {
    return this.state.value;
  }

  /**
   * Read it; the state says how that ended.
   *
   * Reads follow each other, because tabs share a source: of two at once the older answer could come last, and stay.
   *
   * @param {boolean} isFresh
   * @returns {Promise<void>}
   */
  refresh(isFresh) {
    this._reading = this._reading.then(() => this._refresh(isFresh));
    return this._reading;
  }

  /** @param {boolean} isFresh */
  async _refresh(isFresh) {
    this.state.begin(Date.now());
    try {
      this.state.succeed(await this._read(isFresh), Date.now());
    } catch (error) {
      this.state.fail(/** @type {Error} */ (error));
    }
  }
}

/** Repeats the read of one source: after an error it waits longer each time, and while the page is hidden for good. */
class Repetition {
  /**
   * @param {Source<any>} source
   * @param {number} seconds between two reads.
   * @param {() => void} changed is called after each read.
   */
  constructor(source, seconds, changed) {
    this._source = source;
    this._changed = changed;
    this._usual = seconds;
    this._pause = seconds;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._timer = undefined;
    /** @type {Promise<void> | null} ends with the read that is under way, and the one that is to follow it */
    this._running = null;
    this._isAgain = false;
    this._isOver = false;
  }

  /**
   * Read now, or once more where a read is under way that may have begun too early; the promise ends with that read.
   *
   * @param {boolean} isFresh
   */
  async run(isFresh) {
    if (this._isOver) return;
    if (this._running) {
      this._isAgain ||= isFresh;
      await this._running;
      return;
    }
    clearTimeout(this._timer);
    this._running = this._readAll(isFresh);
    await this._running;
  }

  /** @param {boolean} isFresh */
  async _readAll(isFresh) {
    for (let isFirst = true; isFirst || (this._isAgain && !this._isOver); isFirst = false) {
      this._isAgain = false;
      await this._source.refresh(isFresh || !isFirst);
      if (this._isOver) break;
      this._pause = this._source.state.error ? Math.min(SLOWEST, this._pause * 2) : this._usual;
      this._changed();
    }
    this._running = null;
    const isDone = this._source.isOnce && !this._source.state.error;
    if (!this._isOver && !document.hidden && !isDone) this._timer = setTimeout(() => this.run(false), this._pause * 1000);
  }

  /** @param {number} seconds between two reads. */
  pace(seconds) {
    this._usual = seconds;
  }

  stop() {
    this._isOver = true;
    clearTimeout(this._timer);
  }
}

/** Follows the sources of a view until it ends; `changed` is called after each read, and each second while the API lets wait. */
export class Live {
  /**
   * @param {number} seconds between two reads.
   * @param {() => void} changed
   */
  constructor(seconds, changed) {
    this._seconds = seconds;
    this._changed = changed;
    /** @type {Map<Source<any>, Repetition>} */
    this._repetitions = new Map();
    this._shown = () => {
      if (!document.hidden) this._runAll(false);
    };
    document.addEventListener("visibilitychange", this._shown);
    this._timer = setInterval(() => this._tick(), TICK);
  }

  /**
   * Follow these sources, and no others any more.
   *
   * @param {Source<any>[]} sources
   */
  follow(sources) {
    for (const [source, repetition] of this._repetitions) {
      if (sources.includes(source)) continue;
      repetition.stop();
      this._repetitions.delete(source);
    }
    for (const source of sources) {
      if (this._repetitions.has(source)) continue;
      const repetition = new Repetition(source, this._seconds, this._changed);
      this._repetitions.set(source, repetition);
      repetition.run(true);
    }
  }

  /** Read all of them now; the promise ends when that has been done. */
  async now() {
    await this._runAll(true);
  }

  /**
   * Change the seconds between two reads.
   *
   * @param {number} seconds
   */
  pace(seconds) {
    this._seconds = seconds;
    for (const repetition of this._repetitions.values()) repetition.pace(seconds);
  }

  stop() {
    clearInterval(this._timer);
    document.removeEventListener("visibilitychange", this._shown);
    this.follow([]);
  }

  /** @param {boolean} isFresh */
  async _runAll(isFresh) {
    await Promise.all([...this._repetitions.values()].map((repetition) => repetition.run(isFresh)));
  }

  _tick() {
    if (document.hidden) return;
    refreshAges(document);
    const isCalm = [...this._repetitions.keys()].every(({ state }) => state.error === null && state.startedAt === null);
    if (!isCalm) this._changed();
  }
}
