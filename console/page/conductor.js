// One conductor, for admins: what it reports, and the tasks that it has in hand.

import { DataView } from "./data_view.js";
import { ago, h, named, put, span, spelled } from "./dom.js";
import { Live, Source } from "./live.js";
import { requestOf, stateOf } from "./ring.js";
import { hashOf } from "./route.js";
import { glyph } from "./states.js";
import { Table } from "./table.js";

const EVERY = 2;

/** @param {HeldTask} item */
function doing(item) {
  const key = item.hung ? "bad" : item.cancelled || item.orphan ? "held" : "run";
  const word = item.hung ? "hangs" : item.orphan ? "orphan" : item.cancelled ? "cancelled" : item.polled ? "polled" : "running";
  return h("span", { class: `badge ${key}` }, glyph(key), word);
}

/** @typedef {Conductor & {tasks: HeldTask[], more_tasks: boolean}} ConductorAnswer */

/**
 * Show a conductor; return a function that ends it.
 *
 * @param {PageContext} context
 * @returns {Leave}
 */
export function showConductor({ api, main, parts }) {
  const [host] = parts;
  const state = h("span", {});
  const facts = h("p", { class: "facts" });
  const more = h("p", { class: "faint", hidden: true }, "There are more tasks than are shown.");
  /** @type {Table<HeldTask>} */
  const list = new Table([
    { title: "Resource", cell: (item) => named(item.resource), kind: "grow", order: (item) => item.resource },
    { title: "Stack", cell: (item) => h("a", { href: hashOf(["stack", item.stack_name, item.stack, "why"]) }, named(item.stack_name)), kind: "grow", order: (item) => item.stack_name },
    { title: "Now", cell: (item) => doing(item) },
    { title: "Action", cell: (item) => item.action, order: (item) => item.action },
    { title: "Type", cell: (item) => named(item.type), kind: "wide-only", order: (item) => item.type },
    { title: "Attempt", cell: (item) => String(item.attempt), kind: "num wide-only", order: (item) => item.attempt },
    { title: "For", cell: (item) => span(item.seconds ?? 0), kind: "num", order: (item) => item.seconds ?? null },
    { title: "Project", cell: (item) => named(item.project), kind: "wide-only", order: (item) => item.project },
  ], { caption: "Tasks in hand", key: (item) => `${item.stack}/${item.resource}/${item.action}/${item.attempt}` });
  /** @type {Source<ConductorAnswer>} */
  const source = new Source(async (fresh) => (await api.get(`v1/admin/conductors/${encodeURIComponent(host)}`, { fresh, outside: true })).conductor);
  const view = new DataView({
    subject: "the conductor", sources: [source], body: h("div", {}, facts, h("h2", {}, "Tasks in hand"), list.element, more), retry: () => live.now(), draw,
  });
  put(main, h("p", { class: "crumbs" }, h("a", { href: "#/ring" }, "Ring"), " /"), h("div", { class: "title" }, h("h1", { tabindex: "-1" }, named(host)), state),
    view.element);

  /** @param {ConductorAnswer} conductor */
  function draw(conductor) {
    put(state, stateOf(conductor), requestOf(conductor));
    const fact = (/** @type {string} */ label, /** @type {Child} */ value) => h("span", {}, h("span", { class: "k" }, `${label} `), value);
    put(facts, fact("share", `${(100 * conductor.share).toFixed(1)} %, ${conductor.shards} shards`), fact("weight", String(conductor.weight)),
      fact("threads", `${conductor.threads_busy ?? "–"} of ${conductor.threads ?? "–"} busy`),
      conductor.threads_hung ? h("span", { class: "problem" }, `${conductor.threads_hung} hung`) : null,
      fact("rates", `${conductor.tasks_per_second.toFixed(1)} tasks/s, ${conductor.events_per_second.toFixed(1)} events/s`),
      fact("started", ago(conductor.started_time)), fact("reported", ago(conductor.reported_time)),
      fact("ring", h("code", {}, spelled(conductor.ring_version ?? "–"))), fact("messages", spelled(conductor.rpc_version ?? "–")), fact("schema", String(conductor.schema ?? "–")));
    more.hidden = !conductor.more_tasks;
    list.show(conductor.tasks, "It has no task in hand.");
  }

  const live = new Live(EVERY, () => {
    if (source.state.error?.status === 404) live.stop();
    view.update();
  });
  live.follow([source]);
  return () => live.stop();
}
