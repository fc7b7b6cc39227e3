// The stacks of the project: how many are in which state, which need somebody, and all of them to search.

import { stackPath } from "./api.js";
import { ago, button, h, named, prose, put, spelled } from "./dom.js";
import { repeat } from "./live.js";
import { STATES, badge, glyph, isPaused, keyOfStack } from "./states.js";
import { table } from "./table.js";

const PAGE = 1000;
const EVERY = 3;
const MOST_RATES = 20;
const ORDER = ["bad", "held", "run", "ok", "off"];

/** Return the address of a stack's page. */
export function stackHash(stack, tab = "") {
  return `#/${["stack", stack.stack_name, stack.id, tab].filter(Boolean).map(encodeURIComponent).join("/")}`;
}

/** Show the overview; return a function that ends it. */
export function showOverview({ api, main, say, isAdmin }) {
  let stacks = [];
  let state = null;
  let text = "";
  let isCut = false;
  const tiles = h("div", { class: "tiles", role: "group", "aria-label": "Stacks by state" });
  const stuck = h("section", { class: "stuck", hidden: true, "aria-labelledby": "stuck" });
  const search = h("input", { type: "search", placeholder: "Search by name, tag or owner", "aria-label": "Search stacks",
    on: { input: () => { text = search.value.toLowerCase(); draw(); } } });
  const shown = h("span", { class: "faint", role: "status" });
  const list = table([
    ["Name", (stack) => h("a", { href: stackHash(stack) }, named(stack.stack_name)), "grow"],
    ["State", (stack) => badge(stack.stack_status, isPaused(stack)), ""],
    ["Changed", (stack) => ago(stack.updated_time ?? stack.creation_time), "nowrap"],
    ["Created", (stack) => ago(stack.creation_time), "nowrap wide-only"],
    ["Owner", (stack) => named(stack.stack_owner ?? "–"), "wide-only"],
    ["Tags", (stack) => (stack.tags ?? []).map((tag) => h("span", { class: "tag" }, named(tag))), "wide-only"],
  ], { caption: "Stacks" });
  const problem = h("p", { class: "problem", role: "alert" });
  const rest = h("p", { class: "faint", hidden: true });
  const fleet = h("section", { class: "fleet", hidden: true, "aria-label": "The installation" });
  const allRates = h("b", {});
  const eachRate = h("ul", {});
  const rates = h("details", { class: "fleet", hidden: true, open: true }, h("summary", {}, allRates, " by conductor"), eachRate);
  put(main,
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, "Stacks"), h("span", { class: "grow" }), h("a", { class: "button main", href: "#/launch" }, "Launch a stack")),
    problem, fleet, rates, tiles, rest, stuck, h("div", { class: "bar-row" }, search, shown), list.element);

  function tile(key, count) {
    return h("button", { type: "button", class: `tile ${key}`, "aria-pressed": String(state === key), on: { click: () => { state = state === key ? null : key; draw(); } } },
      glyph(key), h("b", {}, String(count)), h("span", {}, STATES[key].word));
  }

  function draw() {
    const counts = new Map(ORDER.map((key) => [key, 0]));
    for (const stack of stacks) counts.set(keyOfStack(stack), (counts.get(keyOfStack(stack)) ?? 0) + 1);
    put(tiles, [...counts].filter(([key]) => key in STATES).map(([key, count]) => tile(key, count)));
    const found = stacks.filter((stack) => (state === null || keyOfStack(stack) === state) && matches(stack));
    shown.textContent = found.length === stacks.length ? "" : `${found.length} of ${stacks.length}`;
    list.show(found, stacks.length
      ? "No stack matches. Clear the search, or choose another state."
      : h("span", {}, "This project has no stacks yet. ", h("a", { href: "#/launch" }, "Launch one from a template"), "."));
    drawStuck();
  }

  function matches(stack) {
    return !text || [stack.stack_name, stack.stack_owner, stack.id, ...(stack.tags ?? [])].some((part) => String(part ?? "").toLowerCase().includes(text));
  }

  function drawStuck() {
    const found = stacks.filter((stack) => ["bad", "held"].includes(keyOfStack(stack))).slice(0, 6);
    stuck.hidden = found.length === 0;
    put(stuck, h("h2", { id: "stuck" }, "Needs attention"), h("ul", {}, found.map((stack) => h("li", { class: keyOfStack(stack) },
      h("a", { href: stackHash(stack, isPaused(stack) ? "" : "why") }, named(stack.stack_name)), badge(stack.stack_status, isPaused(stack)),
      h("span", { class: "reason", title: spelled(stack.stack_status_reason) }, prose(stack.stack_status_reason)),
      isPaused(stack) ? button("Continue", () => resume(stack)) : null))));
  }

  async function resume(stack) {
    try {
      await api.send("POST", stackPath(stack.stack_name, stack.id, "actions"), { continue: null });
      say(`${spelled(stack.stack_name)} continues.`);
      live.now();
    } catch (error) {
      say(error.message, "error");
    }
  }

  /** For admins: the installation, and the stacks of all projects that make no progress. */
  async function loadFleet(fresh) {
    const ask = (path) => api.get(`v1/admin/${path}`, { fresh, outside: true });
    const [{ ring }, { stack_counts: counts }, { stuck_stacks: found }] = await Promise.all([ask("ring"), ask("stack_counts"), ask("stuck_stacks?limit=20")]);
    drawRates(ring.conductors);
    const text = JSON.stringify([ring.health, ring.sums, counts, found]);
    if (text === shownFleet) return;
    shownFleet = text;
    fleet.hidden = false;
    const alive = ring.conductors.filter((item) => item.alive);
    const sum = (key) => alive.reduce((total, item) => total + (item[key] ?? 0), 0);
    const fact = (number, word) => h("span", {}, h("b", {}, String(number)), ` ${word}`);
    put(fleet, h("div", { class: "facts" }, h("a", { href: "#/ring" }, "All projects"), fact(counts.total, "stacks"), fact(counts.by_status.IN_PROGRESS ?? 0, "in progress"), fact(counts.by_status.FAILED ?? 0, "failed"),
      fact(alive.length, alive.length === 1 ? "conductor alive" : "conductors alive"), fact(`${sum("threads_busy")}/${sum("threads")}`, "threads busy"),
      h("span", { class: ring.settled ? "faint" : "problem" }, spelled(ring.health))),
    found.length ? h("details", {}, h("summary", {}, `${found.length === 20 ? "20 or more" : found.length} stuck in all projects`), h("ul", {}, found.map((stack) => h("li", {},
      h("a", { href: stackHash(stack, "why") }, named(stack.stack_name)), badge(stack.stack_status, stack.causes.includes("held")), h("span", {}, stack.causes.join(", ")), named(stack.project, { class: "name faint" }), stack.since ? ago(stack.since) : null)))) : null);
  }

  /** What each conductor does; the busiest first. */
  function drawRates(conductors) {
    const found = conductors.filter((item) => item.alive || item.events_per_second).sort((a, b) => b.tasks_per_second - a.tasks_per_second || (a.host < b.host ? -1 : 1));
    const words = (tasks, events) => `${tasks.toFixed(1)} tasks/s, ${events.toFixed(1)} events/s`;
    const sum = (key) => found.reduce((total, item) => total + item[key], 0);
    rates.hidden = found.length === 0;
    allRates.textContent = words(sum("tasks_per_second"), sum("events_per_second"));
    put(eachRate, found.slice(0, MOST_RATES).map((item) => h("li", {}, h("a", { href: `#/conductor/${encodeURIComponent(item.host)}` }, named(item.host)), h("span", {}, words(item.tasks_per_second, item.events_per_second)))),
      found.length > MOST_RATES ? h("li", { class: "faint" }, `The ${MOST_RATES} busiest of ${found.length} are shown.`) : null);
  }

  /** Say how many stacks there are beside the latest ones, which are all that is shown. */
  async function loadRest(fresh) {
    rest.hidden = !isCut;
    if (!isCut) return;
    const { stack_counts: counts } = await api.get("stack_counts", { fresh });
    rest.textContent = `The latest ${stacks.length} of ${counts.total} stacks are shown and counted here; ${counts.by_status.FAILED ?? 0} of all have failed, ${counts.by_status.IN_PROGRESS ?? 0} are in progress.`;
  }

  let shownFleet = "";
  draw();
  const live = repeat(async (fresh) => {
    if (isAdmin()) await loadFleet(fresh);
    const body = await api.get(`stacks?limit=${PAGE}`, { fresh });
    isCut = Boolean(body.links);
    if (body.stacks !== stacks) {
      stacks = body.stacks;
      draw();
    }
    await loadRest(fresh);
  }, EVERY, (error) => { problem.textContent = error ? error.message : ""; });
  const end = () => live.stop();
  end.now = live.now;
  return end;
}
