// The ring, for admins: who owns which share, what would move, drain and undrain.

import { ask } from "./dialog.js";
import { DataView } from "./data_view.js";
import { ago, button, h, named, prose, put, spelled } from "./dom.js";
import { Live, Source } from "./live.js";
import { field } from "./login.js";
import { glyph, hueOf } from "./states.js";
import { Table } from "./table.js";

const EVERY = 2;
const ADMIN = { outside: true };
/** @type {Record<string, StateKey>} */
const STATES = { active: "ok", draining: "held", stopped: "gone", silent: "bad" };

/**
 * Make the label of a conductor's state.
 *
 * @param {Conductor} item
 */
export function stateOf(item) {
  const key = item.alive === false && item.state !== "stopped" ? "bad" : (STATES[item.state] ?? "wait");
  const word = key === "bad" && item.state === "active" ? "not alive" : item.state;
  return h("span", { class: `badge ${key}` }, glyph(key), word);
}

/**
 * Return who asked a conductor to drain, when and why; null: nobody did.
 *
 * @param {Conductor} item
 */
export function requestOf(item) {
  if (item.wanted !== "draining" || !item.wanted_time) return null;
  return h("span", { class: "faint" }, ` ${spelled(item.wanted_by ?? "somebody")}, `, ago(item.wanted_time), item.wanted_reason ? `: ${spelled(item.wanted_reason)}` : null);
}

/**
 * Return a percentage in words.
 *
 * @param {number} share
 */
function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

/**
 * Return the value that most conductors have.
 *
 * @param {Conductor[]} members
 * @param {"ring_version" | "rpc_version" | "schema"} key
 */
function usual(members, key) {
  const counts = new Map();
  for (const item of members.filter((one) => one.alive)) counts.set(item[key], (counts.get(item[key]) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

/**
 * Show the ring; return a function that ends it.
 *
 * @param {PageContext} context
 * @returns {Leave}
 */
export function showRing({ api, main, say }) {
  /** @type {Ring} */
  let ring = { conductors: [], settled: true, health: "", sums: "" };
  /** @type {Set<string>} the conductors that are being drained or undrained: their rows are drawn anew meanwhile */
  const acting = new Set();
  let plans = 0;
  const health = h("p", { class: "facts", role: "status" });
  const bar = h("div", { class: "ringbar", role: "img" });
  const planned = h("section", { class: "card plan", hidden: true, tabindex: "-1", role: "region", "aria-label": "Plan" });
  const hosts = () => ring.conductors.map((item) => item.host).sort();
  const hue = (/** @type {string} */ host) => hueOf(host, [...hosts(), ...(hosts().includes(host) ? [] : [host])]);
  /** @type {Table<Conductor>} */
  const list = new Table([
    { title: "Conductor", cell: (item) => h("a", { href: `#/conductor/${encodeURIComponent(item.host)}` }, h("span", { class: `swatch ${hue(item.host)}` }), named(item.host)), kind: "grow", order: (item) => item.host },
    { title: "State", cell: (item) => [stateOf(item), requestOf(item)], order: (item) => item.state },
    { title: "Share", cell: (item) => percent(item.share), kind: "num wide-only", order: (item) => item.share },
    { title: "Shards", cell: (item) => String(item.shards), kind: "num wide-only", order: (item) => item.shards },
    { title: "Weight", cell: (item) => String(item.weight), kind: "num wide-only", order: (item) => item.weight },
    { title: "Stacks", cell: (item) => String(item.stacks_in_progress ?? "–"), kind: "num wide-only", order: (item) => item.stacks_in_progress ?? null },
    { title: "Threads", cell: (item) => [`${item.threads_busy ?? "–"}/${item.threads ?? "–"}`, item.threads_hung ? h("span", { class: "badge bad" }, glyph("bad"), `${item.threads_hung} hung`) : null], kind: "num wide-only", order: (item) => item.threads_busy ?? null },
    { title: "Versions", cell: (item) => versions(item), kind: "wraps wide-only" },
    { title: "Reported", cell: (item) => ago(item.reported_time), kind: "nowrap wide-only", order: (item) => Date.parse(item.reported_time) || null },
    { title: "", cell: (item) => acts(item), kind: "nowrap" },
  ], { caption: "Conductors", key: (item) => item.host });
  const joining = field("Name of a conductor that joins", { required: true, maxlength: 255 });
  const weight = field("Weight", { type: "number", min: 0.1, step: "any", value: "1" });
  /** @type {Source<Ring>} */
  const source = new Source(async (fresh) => (await api.get("v1/admin/ring", { fresh, ...ADMIN })).ring);
  const view = new DataView({
    subject: "the ring", sources: [source], body: h("div", {}, health, bar, list.element, joinForm()), retry: () => live.now(),
    draw: (value) => {
      ring = value;
      draw();
    },
  });
  put(main, h("div", { class: "title" }, h("h1", { tabindex: "-1" }, "Ring"), h("span", { class: "grow" })), view.element, planned);

  function joinForm() {
    return h("form", { class: "inline", on: { submit: (event) => { event.preventDefault(); return plan({ join: { [joining.input.value]: Number(weight.input.value) || 1 } }, `If ${joining.input.value} joined`); } } },
      joining.element, weight.element, h("button", { type: "submit" }, "Plan the join"));
  }

  /** @param {Conductor} item */
  function versions(item) {
    /** @type {["ring_version" | "rpc_version" | "schema", string][]} */
    const keys = [["ring_version", "ring"], ["rpc_version", "messages"], ["schema", "schema"]];
    const differ = keys.filter(([key]) => item.alive && item[key] !== usual(ring.conductors, key));
    return differ.length
      ? h("span", { class: "badge held" }, glyph("held"), differ.map(([key, word]) => `${word} ${spelled(item[key])}`).join(", "))
      : h("span", { class: "faint" }, `messages ${spelled(item.rpc_version ?? "–")}, schema ${item.schema ?? "–"}`);
  }

  /** @param {Conductor} item */
  function acts(item) {
    const name = spelled(item.host);
    return h("span", { class: "actions" },
      item.shards ? button("Plan a leave", () => plan({ leave: [item.host] }, `If ${item.host} left`), { "aria-label": `Plan that ${name} leaves` }) : null,
      item.wanted === "draining" ? button("Undrain", () => drain(item, "undrain"), { "aria-label": `Undrain ${name}`, disabled: acting.has(item.host) })
        : item.state === "stopped" ? null : button("Drain …", () => drain(item, "drain"), { class: "danger", "aria-label": `Drain ${name}`, disabled: acting.has(item.host) }));
  }

  /**
   * @param {object} body
   * @param {string} title
   */
  async function plan(body, title) {
    plans += 1;
    const number = plans;
    planned.hidden = false;
    put(planned, h("p", { class: "faint", role: "status" }, `${spelled(title)} …`));
    try {
      const answer = await api.send("POST", "v1/admin/ring/plan", body, ADMIN);
      // Of two plans the one that was asked for last is shown.
      if (number === plans) drawPlan(answer.plan, title);
    } catch (error) {
      if (number === plans) planned.hidden = true;
      say(/** @type {Error} */ (error).message, "error");
    }
  }

  /**
   * Ask whether a conductor is to drain; return the body of the request, or null.
   *
   * @param {Conductor} item
   */
  async function askToDrain(item) {
    const reason = field("Reason", { maxlength: 255 });
    const { plan: leave } = await api.send("POST", "v1/admin/ring/plan", { leave: [item.host] }, ADMIN).catch(() => ({ plan: null }));
    const text = [`${spelled(item.host)} takes no new work, and its shards move to the others. `, leave ? `${leave.summary}. ` : null, leave?.warnings.map((/** @type {string} */ warning) => h("strong", {}, spelled(warning))), reason.element];
    return (await ask(`Drain ${spelled(item.host)}?`, text, [["yes", "Drain it", "danger"]])) ? { reason: reason.input.value } : null;
  }

  /**
   * @param {Conductor} item
   * @param {"drain" | "undrain"} verb
   */
  async function drain(item, verb) {
    if (acting.has(item.host)) return;
    acting.add(item.host);
    const body = verb === "drain" ? await askToDrain(item) : undefined;
    if (body !== null) await send(item, verb, body);
    acting.delete(item.host);
    list.redraw();
  }

  /**
   * @param {Conductor} item
   * @param {"drain" | "undrain"} verb
   * @param {object} [body]
   */
  async function send(item, verb, body) {
    try {
      await api.send("POST", `v1/admin/ring/${encodeURIComponent(item.host)}/${verb}`, body, ADMIN);
      say(verb === "drain" ? `${spelled(item.host)} is asked to drain.` : `${spelled(item.host)} is asked to take work again.`);
    } catch (error) {
      say(/** @type {Error} */ (error).message, "error");
    }
    await live.now();
  }

  /**
   * Draw the shares after a plan: what moves has the colour of its owner before, over which that of the next one runs.
   *
   * @param {RingPlan} next
   * @param {string} title
   */
  function drawPlan(next, title) {
    const moved = (/** @type {string} */ host) => next.moves.filter((move) => move.to === host);
    const segments = Object.entries(next.after).sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([host, count]) => {
      const incoming = moved(host).reduce((sum, move) => sum + move.shards, 0);
      const staying = h("span", { class: hue(host), style: { "flex-grow": String(count - incoming) }, title: `${spelled(host)} keeps ${count - incoming} shards` }, named(host), ` ${percent(count / next.shard_count)}`);
      return [count > incoming ? staying : null, ...moved(host).map((move) => h("span", { class: `moving ${hue(move.from)}`, style: { "flex-grow": String(move.shards) }, title: `${move.shards} shards move from ${spelled(move.from)} to ${spelled(move.to)}` },
        h("span", { class: `over ${hue(move.to)}` }), h("span", { class: "on" }, count === incoming ? `${spelled(host)} ${percent(count / next.shard_count)}` : `+ ${percent(move.shards / next.shard_count)}`)))];
    });
    planned.hidden = false;
    put(planned, h("div", { class: "title" }, h("h2", {}, spelled(title)), h("span", { class: "grow" }), button("×", () => { planned.hidden = true; }, { class: "quiet", "aria-label": "Close the plan" })),
      h("p", {}, prose(next.summary), "."), next.warnings.map((one) => h("p", { class: "problem" }, prose(one))),
      h("div", { class: "ringbar", role: "img", "aria-label": `Shares then: ${Object.entries(next.after).map(([host, count]) => `${spelled(host)} ${percent(count / next.shard_count)}`).join(", ")}` }, segments),
      h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From"), h("th", { scope: "col" }, "To"), h("th", { scope: "col", class: "num" }, "Shards"))),
        h("tbody", {}, next.moves.slice(0, 60).map((move) => h("tr", {}, h("td", { class: "grow" }, named(move.from)), h("td", { class: "grow" }, named(move.to)), h("td", { class: "num" }, String(move.shards)))))),
      next.moves.length ? null : h("p", { class: "faint" }, "Nothing would move."));
    planned.focus();
    planned.scrollIntoView({ block: "nearest" });
  }

  function draw() {
    put(health, h("span", { class: ring.settled ? "" : "problem" }, spelled(ring.health)), h("span", {}, spelled(ring.sums)));
    const owning = ring.conductors.filter((item) => item.shards).sort((a, b) => (a.host < b.host ? -1 : 1));
    put(bar, owning.map((item) => h("span", { class: hue(item.host), style: { "flex-grow": String(item.shards) }, title: `${spelled(item.host)}: ${item.shards} shards` }, named(item.host), ` ${percent(item.share)}`)));
    bar.setAttribute("aria-label", `Shares of the ring: ${owning.map((item) => `${spelled(item.host)} ${percent(item.share)}`).join(", ")}`);
    bar.hidden = owning.length === 0;
    list.show(ring.conductors, "No conductor has ever reported. Start stoker-conductor.");
  }

  const live = new Live(EVERY, () => view.update());
  live.follow([source]);
  return () => live.stop();
}
