// The events of a stack: the latest ones at first, then what has been added.

import { secondsOf } from "./attempts.js";
import { eventsOf } from "./shapes.js";

const PAGE = 1000;
const DEEP = 8;

/** Events that are read at most; of more the latest ones. */
export const MOST_EVENTS = 20_000;

/** The events of a stack and of its nested ones, in the order of time. */
export class EventLog {
  /** @param get returns a promise of the body of a path; `path` is that of the events, `rootId` the id of the stack. */
  constructor(get, path, rootId, { most = MOST_EVENTS } = {}) {
    Object.assign(this, { _get: get, _path: path, _rootId: rootId, _most: most });
    this._events = [];
    this._page = 0;
    this._isRead = false;
  }

  /** Read what is new; return all events, the same list where nothing is. */
  async read(isFresh) {
    try {
      const added = this._isRead ? await this._after(this._events, isFresh) : (await this._latest(isFresh)).reverse();
      if (added.length || !this._isRead) this._events = [...this._events, ...added].slice(-this._most);
      this._isRead = true;
    } catch (error) {
      // The last event that was read may have been purged meanwhile.
      if (error.status !== 400 || !this._isRead) throw error;
      this._isRead = false;
      this._events = [];
      return this.read(isFresh);
    }
    return this._events;
  }

  _latest(isFresh) {
    return this._pages("desc", null, isFresh);
  }

  _after(events, isFresh) {
    return this._pages("asc", events.at(-1)?.id ?? null, isFresh);
  }

  /** Read page by page; the API may have shorter pages than are asked for. */
  async _pages(direction, marker, isFresh) {
    const found = [];
    for (let last = marker, isMore = true; isMore && found.length < this._most;) {
      const after = last === null ? "" : `&marker=${encodeURIComponent(last)}`;
      const body = await this._get(`${this._path}?nested_depth=${DEEP}&sort_dir=${direction}&limit=${PAGE}${after}`, isFresh);
      const events = eventsOf(body, this._rootId);
      found.push(...events);
      last = events.at(-1)?.id ?? last;
      isMore = events.length > 0 && events.length >= this._page;
      this._page = Math.max(this._page, events.length);
    }
    return found;
  }
}

/**
 * Return why events are missing since an instant (null: since the stack began); null: none is.
 *
 * A stack keeps only its latest events, each nested one its own.
 */
export function missingWords(events, since, most = MOST_EVENTS) {
  if (events.length >= most) return `Only the latest ${most.toLocaleString("en")} events are shown.`;
  const firsts = new Map();
  for (const event of events) if (!firsts.has(event.stack)) firsts.set(event.stack, event);
  const isStart = (event) => event.isStack && /^(CREATE|ADOPT)_IN_PROGRESS$/.test(event.status);
  const isCut = [...firsts.values()].some((event) => !isStart(event) && (since === null || secondsOf(event) > since));
  return isCut ? "Older events are gone: a stack keeps only its latest ones." : null;
}
