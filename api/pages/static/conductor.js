// One conductor, for admins: what it reports, and the tasks that it has in hand.

import { ago, h, named, put, span, spelled } from "./dom.js";
import { repeat } from "./live.js";
import { stateOf } from "./ring.js";
import { glyph } from "./states.js";
import { table } from "./table.js";

const EVERY = 2;

function doing(item) {
  const key = item.hung ? "bad" : item.cancelled || item.orphan ? "held" : "run";
  const word = item.hung ? "hangs" : item.orphan ? "orphan" : item.cancelled ? "cancelled" : item.polled ? "polled" : "running";
  return h("span", { class: `badge ${key}` }, glyph(key), word);
}

/** Show a conductor; return a function that ends it. */
export function showConductor({ api, main, parts }) {
  const [host] = parts;
  const problem = h("p", { class: "problem", role: "alert" });
  const state = h("span", {});
  const facts = h("p", { class: "facts" });
  const more = h("p", { class: "faint", hidden: true }, "There are more tasks than are shown.");
  const list = table([
    ["Resource", (item) => named(item.resource), "grow"],
    ["Stack", (item) => h("a", { href: `#/stack/${encodeURIComponent(item.stack_name)}/${encodeURIComponent(item.stack)}/why` }, named(item.stack_name)), "grow"],
    ["Now", (item) => doing(item), ""],
    ["Action", (item) => item.action, ""],
    ["Type", (item) => named(item.type), "wide-only"],
    ["Attempt", (item) => String(item.attempt), "num wide-only"],
    ["For", (item) => span(item.seconds ?? 0), "num"],
    ["Project", (item) => named(item.project), "wide-only"],
  ], { caption: "Tasks in hand", key: (item) => `${item.stack}/${item.resource}/${item.action}/${item.attempt}` });
  put(main, h("p", { class: "crumbs" }, h("a", { href: "#/ring" }, "Ring"), " /"), h("div", { class: "title" }, h("h1", { tabindex: "-1" }, named(host)), state),
    problem, facts, h("h2", {}, "Tasks in hand"), list.element, more);

  const live = repeat(async (fresh) => {
    const found = (await api.get(`v1/admin/conductors/${encodeURIComponent(host)}`, { fresh, outside: true })).conductor;
    put(state, stateOf(found));
    const fact = (label, value) => h("span", {}, h("span", { class: "k" }, `${label} `), value);
    put(facts, fact("share", `${(100 * found.share).toFixed(1)} %, ${found.shards} shards`), fact("weight", String(found.weight)),
      fact("threads", `${found.threads_busy ?? "–"} of ${found.threads ?? "–"} busy`),
      found.threads_hung ? h("span", { class: "problem" }, `${found.threads_hung} hung`) : null,
      fact("rates", `${found.tasks_per_second.toFixed(1)} tasks/s, ${found.events_per_second.toFixed(1)} events/s`),
      fact("started", ago(found.started_time)), fact("reported", ago(found.reported_time)),
      fact("ring", h("code", {}, spelled(found.ring_version ?? "–"))), fact("messages", spelled(found.rpc_version ?? "–")), fact("schema", String(found.schema ?? "–")));
    more.hidden = !found.more_tasks;
    list.show(found.tasks, "It has no task in hand.");
  }, EVERY, (error) => {
    problem.textContent = error ? error.message : "";
    if (error?.status === 404) live.stop();
  });
  return () => live.stop();
}
