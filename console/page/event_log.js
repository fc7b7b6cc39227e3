// The events of a stack: the latest ones at first, then what has been added.

import { secondsOf } from "./attempts.js";
import { eventsOf } from "./shapes.js";

const PAGE = 1000;
const DEEP = 8;

/** Events that are read at most; of more the latest ones. */
export const MOST_EVENTS = 20_000;

/** The events of a stack and of its nested ones, in the order of time. */
export class EventLog {
  /**
   * @param {(path: string, isFresh: boolean) => Promise<{events: EventAnswer[]}>} get returns the body of a path.
   * @param {string} path of the events.
   * @param {string} rootId id of the stack.
   * @param {{most?: number}} [options]
   */
  constructor(get, path, rootId, { most = MOST_EVENTS } = {}) {
    this._get = get;
    this._path = path;
    this._rootId = rootId;
    this._most = most;
    /** @type {StackEvent[]} */
    this._events = [];
    this._page = 0;
    this._isRead = false;
  }

  /**
   * Read what is new; return all events, the same list where nothing is.
   *
   * @param {boolean} isFresh
   * @returns {Promise<StackEvent[]>}
   */
  async read(isFresh) {
    try {
      const added = this._isRead ? await this._pages("asc", this._events.at(-1)?.id ?? null, isFresh) : (await this._pages("desc", null, isFresh)).reverse();
      if (added.length || !this._isRead) this._events = [...this._events, ...added].slice(-this._most);
      this._isRead = true;
    } catch (error) {
      // The last event that was read may have been purged meanwhile.
      if (/** @type {{status?: number}} */ (error).status !== 400 || !this._isRead) throw error;
      this._isRead = false;
      this._events = [];
      return this.read(isFresh);
    }
    return this._events;
  }

  /**
   * Read page by page; the API may have shorter pages than are asked for.
   *
   * @param {"asc" | "desc"} direction
   * @param {string | null} marker
   * @param {boolean} isFresh
   */
  async _pages(direction, marker, isFresh) {
    /** @type {StackEvent[]} */
    const events = [];
    for (let last = marker, isMore = true; isMore && events.length < this._most;) {
      const after = last === null ? "" : `&marker=${encodeURIComponent(last)}`;
      const page = eventsOf(await this._get(`${this._path}?nested_depth=${DEEP}&sort_dir=${direction}&limit=${PAGE}${after}`, isFresh), this._rootId);
      events.push(...page);
      last = page.at(-1)?.id ?? last;
      isMore = page.length > 0 && page.length >= this._page;
      this._page = Math.max(this._page, page.length);
    }
    return events;
  }
}

/**
 * Return why events are missing since an instant (null: since the stack began); null: none is.
 *
 * A stack keeps only its latest events, each nested one its own.
 *
 * @param {StackEvent[]} events
 * @param {number | null} since
 */
export function missingWords(events, since, most = MOST_EVENTS) {
  if (events.length >= most) return `Only the latest ${most.toLocaleString("en")} events are shown.`;
  const firsts = new Map();
  for (const event of events) if (!firsts.has(event.stack)) firsts.set(event.stack, event);
  const isStart = (/** @type {StackEvent} */ event) => event.isStack && /^(CREATE|ADOPT)_IN_PROGRESS$/.test(event.status);
  const isCut = [...firsts.values()].some((event) => !isStart(event) && (since === null || secondsOf(event) > since));
  return isCut ? "Older events are gone: a stack keeps only its latest ones." : null;
}
