// Draws a bar for each attempt.  Only the rows in view are in the page.

import { button, h, named, put, span, spelled } from "./dom.js";
import { criticalPath, rowsOf, sharesOf, withPresentWaits } from "./attempts.js";
import { hueOf } from "./states.js";

const ROW = 24;
const SPARE = 8;
/** Rows of one page; the last ones are shown first. */
const PAGE = 500;
const MOST_SHARES = 3;
/** Pixels at the end of the axis in which the words of a tick would not fit to its right. */
const LAST_TICK = 36;
const DAY = 86_400;
const TICKS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, DAY];
/** @type {[string, number][]} */
const UNITS = [["d", DAY], ["h", 3600], ["min", 60], ["s", 1]];

/**
 * Return the instants of the ticks of an axis, from 0.
 *
 * @param {number} length of the axis, in seconds.
 * @param {number} width of the axis, in pixels.
 */
export function ticksOf(length, width) {
  const room = Math.max(2, width / 90);
  const step = TICKS.find((tick) => length / tick <= room) ?? DAY * Math.ceil(length / DAY / room);
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, index) => index * step);
}

/**
 * Return the words of a tick, exactly: "1 h 30 min".
 *
 * @param {number} at seconds
 */
export function tickWords(at) {
  if (at < 60) return `${Number(at.toFixed(2))} s`;
  let rest = Math.round(at);
  const parts = [];
  for (const [unit, seconds] of UNITS) {
    const count = Math.floor(rest / seconds);
    if (count) parts.push(`${count} ${unit}`);
    rest -= count * seconds;
  }
  return parts.join(" ");
}

/**
 * Return the words of a bar.
 *
 * @param {Bar} bar
 * @param {number} now end of a bar that has not ended, in seconds.
 */
export function barWords(bar, now) {
  return [
    `${bar.action.toLowerCase()}${bar.kind === "hold" ? " held at a breakpoint" : ""}`,
    bar.attempt ? `attempt ${bar.attempt}` : null, bar.conductor, span((bar.to ?? now) - bar.from),
    ...bar.waits.map((wait) => waitWords(wait, bar.to ?? now)), bar.failed ? `failed: ${bar.reason}` : null, bar.taken ? `taken over by ${bar.taken}` : null, bar.to === null ? "not ended" : null,
  ].filter(Boolean).join(", ");
}

/**
 * Return the words of a wait: how long it took, and its reason.
 *
 * @param {Wait} wait
 * @param {number} now end of a wait that has not ended, in seconds.
 */
export function waitWords(wait, now) {
  return `waited ${span(Math.min(wait.to ?? now, now) - wait.from)}: ${wait.reason}`;
}

/**
 * Return the rows of a page, from the end.
 *
 * @template T
 * @param {T[]} rows
 * @param {number} page 0: the last one.
 */
export function pageOf(rows, page, size = PAGE) {
  const last = Math.max(0, Math.ceil(rows.length / size) - 1);
  const at = Math.min(page, last);
  const [from, to] = [Math.max(0, rows.length - size * (at + 1)), rows.length - size * at];
  return { page: at, last, from, to, rows: rows.slice(from, to) };
}

/**
 * Return the words of a critical path: how long it took, and what took most of that.
 *
 * @param {ReturnType<typeof sharesOf>} shares
 */
export function pathWords(shares) {
  if (!shares.length) return "";
  const total = shares.reduce((sum, { seconds }) => sum + seconds, 0);
  const most = shares.slice(0, MOST_SHARES).filter(({ seconds }) => seconds >= total / 10);
  return `Critical path of ${shares.length === 1 ? "one resource" : `${shares.length} resources`}: ${span(total)}`
    + `${shares.length > 1 && most.length ? `, of which ${most.map(({ row, seconds }) => `${spelled(row.name)} ${span(seconds)}`).join(", ")}` : ""}.`;
}

/** A timeline of bars. */
export class TimelineView {
  /** @param {(row: Row) => void} pick is called with the row that the user chooses. */
  constructor(pick) {
    this._pick = pick;
    /** @type {Row[]} */
    this._rows = [];
    /** @type {string[] | null} the conductors, once there is something to show */
    this._hosts = null;
    /** @type {Set<string>} the keys of the rows that decided the duration */
    this._path = new Set();
    this._from = 0;
    this._to = 0;
    this._frame = 0;
    /** @type {Map<number, HTMLElement>} the rows in view, by their numbers */
    this._drawn = new Map();
    this._axis = h("div", { class: "axis", "aria-hidden": "true" });
    this._body = h("div", { class: "rows", role: "list", "aria-label": "Attempts in the order in which they began" });
    this._scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline", on: { scroll: () => this._later() } }, this._body);
    this._legend = h("div", { class: "legend" });
    this._summary = h("p", { class: "summary" });
    this._page = 0;
    this._pager = h("div", { class: "pager", role: "group", "aria-label": "Pages of the timeline", hidden: true });
    this.element = h("div", { class: "timeline" }, this._legend, this._summary, this._pager, this._axis, this._scroll);
    this._size = new ResizeObserver(() => {
      this._drawn.clear();
      this._later();
    });
    this._size.observe(this._scroll);
  }

  /** Stop to follow the size of the page. */
  end() {
    this._size.disconnect();
    cancelAnimationFrame(this._frame);
  }

  /**
   * Show events.
   *
   * @param {StackEvent[]} events
   * @param {object} options
   * @param {Resource[]} options.resources have the tasks that wait now.
   * @param {number | null} options.since leaves out events before this instant; null: none.
   * @param {Map<string, string[]>} options.requires are the keys of the rows that each one needs.
   * @param {boolean} options.isLive lets bars that have not ended grow.
   */
  show(events, options) {
    const { resources, since, requires, isLive } = options;
    const used = since === null ? events : events.filter((event) => Date.parse(event.at) / 1000 >= since - 0.0005);
    const all = withPresentWaits(rowsOf(used).filter((row) => row.bars.length), resources);
    this._path = criticalPath(all, requires);
    this._summary.textContent = pathWords(sharesOf(all, this._path));
    this._rows = this._paged(all, () => this.show(events, options));
    const hosts = [...new Set(used.flatMap((event) => event.conductor ?? []))].sort();
    this._hosts = hosts;
    const starts = this._rows.flatMap((row) => row.bars.map((bar) => bar.from));
    const ends = this._rows.flatMap((row) => row.bars.map((bar) => bar.to ?? bar.from));
    const isOpen = isLive && this._rows.some((row) => row.bars.some((bar) => bar.to === null));
    this._from = starts.reduce((a, b) => Math.min(a, b), Infinity);
    this._to = Math.max(ends.reduce((a, b) => Math.max(a, b), -Infinity), isOpen ? Date.now() / 1000 : 0);
    this._drawn.clear();
    if (this._to - this._from < 0.1) this._to = this._from + 0.1;
    put(this._legend, hosts.map((host) => h("span", { class: `key ${hueOf(host, hosts)}` }, named(host))),
      h("span", { class: "key failed" }, "failed"), h("span", { class: "key hold" }, "held"), h("span", { class: "key pause" }, "waits"),
      h("span", { class: "key decisive" }, "decided the duration"));
    this._later();
  }

  /**
   * Return the rows of the chosen page, and offer the others.
   *
   * @param {Row[]} all
   * @param {() => void} again shows the events anew.
   */
  _paged(all, again) {
    const { page, last, from, to, rows } = pageOf(all, this._page);
    const turn = (/** @type {number} */ next) => () => {
      this._page = next;
      this._scroll.scrollTop = 0;
      again();
    };
    this._page = page;
    this._pager.hidden = last === 0;
    put(this._pager, h("span", { role: "status" }, `Rows ${(from + 1).toLocaleString("en")} to ${to.toLocaleString("en")} of ${all.length.toLocaleString("en")}`),
      button("Earlier", turn(page + 1), { disabled: page === last }), button("Later", turn(page - 1), { disabled: page === 0 }));
    return rows;
  }

  _later() {
    if (!this._frame) this._frame = requestAnimationFrame(() => this._draw());
  }

  /** @param {number} at an instant, in seconds */
  _percent(at) {
    return ((at - this._from) / (this._to - this._from)) * 100;
  }

  _draw() {
    this._frame = 0;
    if (!this._rows.length) {
      put(this._axis);
      put(this._body, this._hosts ? h("p", { class: "empty" }, "This action has tried no resource.") : null);
      return;
    }
    if (!this._drawn.size) {
      this._drawAxis();
      put(this._body);
    }
    this._body.style.height = `${this._rows.length * ROW}px`;
    const first = Math.max(0, Math.floor(this._scroll.scrollTop / ROW) - SPARE);
    const last = Math.min(this._rows.length, Math.ceil((this._scroll.scrollTop + this._scroll.clientHeight) / ROW) + SPARE);
    for (const [index, element] of this._drawn) {
      if (index >= first && index < last) continue;
      element.remove();
      this._drawn.delete(index);
    }
    for (let index = first; index < last; index += 1) {
      if (this._drawn.has(index)) continue;
      const element = this._row(this._rows[index], index);
      this._drawn.set(index, element);
      this._body.append(element);
    }
  }

  _drawAxis() {
    const length = this._to - this._from;
    const ticks = ticksOf(length, this._axis.clientWidth);
    const room = 1 - LAST_TICK / this._axis.clientWidth;
    put(this._axis, h("div", {}, ticks.map((at) => h("span", { class: at / length > room ? "last" : "", style: { left: `${(at / length) * 100}%` } }, at === 0 ? "0" : tickWords(at)))));
  }

  /**
   * @param {Row} row
   * @param {number} index
   */
  _row(row, index) {
    const label = h("button", { type: "button", class: "label", on: { click: () => this._pick(row) } },
      row.path ? h("span", { class: "faint" }, named(row.path), "/") : null, named(row.name));
    return h("div", { class: `row ${row.isStack ? "stack" : ""} ${this._path.has(row.key) ? "decisive" : ""}`, role: "listitem", style: { top: `${index * ROW}px` } },
      label, h("div", { class: "track" }, row.bars.map((bar) => [this._queue(bar), this._bar(row, bar)])));
  }

  /**
   * Make the mark of the time for which an attempt was ready and no conductor had claimed it.
   *
   * @param {Bar} bar
   */
  _queue(bar) {
    if (bar.ready === null || bar.kind === "hold") return null;
    const left = Math.max(0, this._percent(bar.ready));
    return h("span", { class: "queue", title: `ready for ${span(bar.from - bar.ready)} before it began`, style: { left: `${left}%`, width: `${Math.max(0, this._percent(bar.from) - left)}%` } });
  }

  /**
   * @param {Row} row
   * @param {Bar} bar
   */
  _bar(row, bar) {
    const to = bar.to ?? this._to;
    const left = this._percent(bar.from);
    const text = barWords(bar, this._to);
    const part = (/** @type {number} */ at) => ((at - bar.from) / Math.max(1e-6, to - bar.from)) * 100;
    const kind = bar.kind === "hold" ? "hold" : bar.failed ? "failed" : row.isStack ? "whole" : hueOf(bar.conductor, this._hosts ?? []);
    const label = bar.kind === "hold" ? "held" : `${bar.failed ? "✕ " : ""}${(bar.attempt ?? 0) > 1 ? `#${bar.attempt} ` : ""}${bar.conductor ?? ""}`;
    return h("span", { class: `bar ${kind} ${bar.to === null ? "open" : ""}`, title: text, style: { left: `${left}%`, width: `${Math.max(0, this._percent(to) - left)}%` } },
      bar.waits.map((wait) => h("i", { class: "pause", title: waitWords(wait, to),
        style: { left: `${part(wait.from)}%`, width: `${Math.max(0, part(Math.min(wait.to ?? to, to)) - part(wait.from))}%` } })),
      bar.again === null ? null : h("i", { style: { left: `${part(bar.again)}%` } }),
      h("span", {}, row.isStack ? bar.action.toLowerCase() : label), h("span", { class: "sr" }, text));
  }
}
