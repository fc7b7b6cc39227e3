// For admins: the installation, the rates of its conductors, and the stacks of all projects that make no progress.

import { DataView } from "./data_view.js";
import { ago, h, named, put, spelled } from "./dom.js";
import { Source } from "./live.js";
import { hashOf } from "./route.js";
import { badge, noneWords } from "./states.js";

const MOST_RATES = 20;
const MOST_STUCK = 20;

/** The part of the overview that admins see. */
export class Fleet {
  /**
   * @param {import("./api.js").Api} api
   * @param {() => void} retry
   */
  constructor(api, retry) {
    const read = (/** @type {string} */ path) => new Source((fresh) => api.get(`v1/admin/${path}`, { fresh, outside: true }));
    this._facts = h("section", { class: "fleet", "aria-label": "The installation" });
    this._allRates = h("b", {});
    this._eachRate = h("ul", {});
    this._rates = h("details", { class: "fleet", open: true }, h("summary", {}, this._allRates, " by conductor"), this._eachRate);
    this._idle = h("p", { class: "fleet faint" }, "No conductor has anything to do.");
    this.sources = [read("ring"), read("stack_counts"), read(`stuck_stacks?limit=${MOST_STUCK}`)];
    this.view = new DataView({
      subject: "the installation", sources: this.sources, body: h("div", {}, this._facts, this._rates, this._idle), retry,
      draw: (/** @type {{ring: Ring}} */ { ring }, { stack_counts: counts }, { stuck_stacks: stuck }) => {
        this._drawFacts(ring, counts, stuck);
        this._drawRates(ring.conductors);
      },
    });
  }

  /**
   * @param {Ring} ring
   * @param {StackCounts} counts
   * @param {StuckStack[]} stuck
   */
  _drawFacts(ring, counts, stuck) {
    const alive = ring.conductors.filter((item) => item.alive);
    const sum = (/** @type {"threads" | "threads_busy"} */ key) => alive.reduce((total, item) => total + (item[key] ?? 0), 0);
    const fact = (/** @type {number | string} */ number, /** @type {string} */ word) => h("span", {}, h("b", {}, String(number)), ` ${word}`);
    /** @type {[number, string][]} */
    const numbers = counts.total ? [[counts.by_status.IN_PROGRESS ?? 0, "in progress"], [counts.by_status.FAILED ?? 0, "failed"]] : [];
    const [some, none] = [numbers.filter(([number]) => number), numbers.filter(([number]) => !number)];
    const isOpen = this._facts.querySelector("details")?.open ?? false;
    put(this._facts, h("div", { class: "facts" }, h("a", { href: "#/ring" }, "All projects"), fact(counts.total, counts.total === 1 ? "stack" : "stacks"), some.map(([number, word]) => fact(number, word)),
      none.length ? h("span", { class: "faint" }, noneWords(none.map(([, word]) => word))) : null,
      fact(alive.length, alive.length === 1 ? "conductor alive" : "conductors alive"), fact(`${sum("threads_busy")}/${sum("threads")}`, "threads busy"),
      h("span", { class: ring.settled ? "faint" : "problem" }, spelled(ring.health))),
    stuck.length ? h("details", { open: isOpen }, h("summary", {}, `${stuck.length === MOST_STUCK ? `${MOST_STUCK} or more` : stuck.length} stuck in all projects`), h("ul", {}, stuck.map(stuckLine))) : null);
  }

  /**
   * Draw the rates of each conductor; the busiest first.
   *
   * @param {Conductor[]} conductors
   */
  _drawRates(conductors) {
    const busy = conductors.filter((item) => item.alive || item.events_per_second).sort((a, b) => b.tasks_per_second - a.tasks_per_second || (a.host < b.host ? -1 : 1));
    const words = (/** @type {number} */ tasks, /** @type {number} */ events) => `${tasks.toFixed(1)} tasks/s, ${events.toFixed(1)} events/s`;
    const sum = (/** @type {"tasks_per_second" | "events_per_second"} */ key) => busy.reduce((total, item) => total + item[key], 0);
    const isIdle = busy.every((item) => item.tasks_per_second === 0 && item.events_per_second === 0);
    this._rates.hidden = isIdle;
    this._idle.hidden = !isIdle || busy.length === 0;
    this._allRates.textContent = words(sum("tasks_per_second"), sum("events_per_second"));
    put(this._eachRate, busy.slice(0, MOST_RATES).map((item) => h("li", {}, h("a", { href: hashOf(["conductor", item.host]) }, named(item.host)), h("span", {}, words(item.tasks_per_second, item.events_per_second)))),
      busy.length > MOST_RATES ? h("li", { class: "faint" }, `The ${MOST_RATES} busiest of ${busy.length} are shown.`) : null);
  }
}

/** @param {StuckStack} stack */
function stuckLine(stack) {
  return h("li", {}, h("a", { href: hashOf(["stack", stack.stack_name, stack.id, "why"]) }, named(stack.stack_name)), badge(stack.stack_status, stack.causes.includes("held")),
    h("span", {}, stack.causes.join(", ")), named(stack.project, { class: "name faint" }), stack.since ? ago(stack.since) : null);
}
