// The states of stacks, resources and conductors: a word, a shape and a colour for each.

import { h, s } from "./dom.js";

/** @typedef {{word: string, path: string, round?: boolean, open?: boolean, diamond?: boolean, dotted?: boolean}} StateShape */

/**
 * Shape and words by key; the colour is the CSS class of the key.
 *
 * @type {Record<StateKey, StateShape>}
 */
export const STATES = {
  ok: { word: "complete", path: "M4 8.5l2.8 2.8L12 5.2", round: true },
  run: { word: "in progress", path: "M8 3.2a4.8 4.8 0 1 1-4.5 3.1", open: true },
  bad: { word: "failed", path: "M5.2 5.2l5.6 5.6M10.8 5.2l-5.6 5.6", round: true },
  held: { word: "held", path: "M6.3 5.7v4.6M9.7 5.7v4.6", diamond: true },
  wait: { word: "waiting", path: "", dotted: true },
  gone: { word: "deleted", path: "M4.5 8h7", round: true },
  off: { word: "suspended", path: "M5.4 5.4h5.2v5.2H5.4z", round: true },
};

/** The keys in the order in which they are shown. */
export const STATE_KEYS = /** @type {StateKey[]} */ (Object.keys(STATES));

/**
 * Return the key of a status such as CREATE_COMPLETE.
 *
 * @param {string | null | undefined} status
 * @param {unknown} [isHeld]
 * @returns {StateKey}
 */
export function keyOf(status, isHeld = false) {
  const text = String(status ?? "");
  if (isHeld) return "held";
  if (text.endsWith("FAILED")) return "bad";
  if (text.endsWith("IN_PROGRESS")) return "run";
  if (text.startsWith("INIT")) return "wait";
  if (text === "DELETE_COMPLETE") return "gone";
  if (text === "SUSPEND_COMPLETE") return "off";
  return "ok";
}

/**
 * Return whether a stack's only unfinished work is held at breakpoints.
 *
 * @param {Pick<StackAnswer, "stack_status" | "stack_status_reason">} stack
 */
export function isPaused(stack) {
  return /IN_PROGRESS$/.test(stack.stack_status) && /paused at breakpoint/i.test(stack.stack_status_reason ?? "");
}

/**
 * Return the key of a stack's state.
 *
 * @param {Pick<StackAnswer, "stack_status" | "stack_status_reason">} stack
 */
export function keyOfStack(stack) {
  return keyOf(stack.stack_status, isPaused(stack));
}

/**
 * Return the words of a status: CREATE_IN_PROGRESS becomes "create in progress".
 *
 * @param {string | null | undefined} status
 * @param {StateKey} key
 */
export function words(status, key) {
  const text = String(status ?? "").toLowerCase().replaceAll("_", " ");
  if (key === "held") return text.startsWith("init") ? "held" : `${text.split(" ")[0]} held`;
  return text.startsWith("init") ? "waiting" : text;
}

/**
 * Return the words for states in which no stack is: "none failed, held or suspended".
 *
 * @param {string[]} states
 */
export function noneWords(states) {
  return `none ${new Intl.ListFormat("en-GB", { type: "disjunction" }).format(states)}`;
}

/** @type {Record<string, string>} */
const CAUSES = { signal: "a signal", stack: "its nested stack", retry: "the next try", step: "the cloud" };

/**
 * Return the action and state of the task at a resource, in words; null: it has no task.
 *
 * @param {Task | null} task
 */
export function taskWords(task) {
  if (!task) return null;
  const action = String(task.action).toLowerCase();
  if (task.state === "parked") return `${action}: waits for ${CAUSES[task.waits_for ?? ""] ?? task.waits_for}`;
  const conductor = task.conductor ? ` on ${task.conductor}` : "";
  const attempt = task.attempt && task.attempt > 1 ? `, attempt ${task.attempt}` : "";
  return `${action}: ${task.state}${conductor}${attempt}`;
}

/**
 * Make the parts of the shape of a state, 16 by 16.
 *
 * @param {StateKey} key
 */
export function shape(key) {
  const state = STATES[key];
  /** @type {SVGElement[]} */
  const parts = [];
  if (state.round) parts.push(s("circle", { cx: 8, cy: 8, r: 7, class: "g-fill" }));
  if (state.diamond) parts.push(s("path", { d: "M8 .6L15.4 8 8 15.4.6 8z", class: "g-fill" }));
  if (state.dotted) parts.push(s("circle", { cx: 8, cy: 8, r: 5.5, class: "g-dot" }));
  if (state.open) parts.push(s("circle", { cx: 8, cy: 8, r: 5.8, class: "g-track" }));
  if (state.path) parts.push(s("path", { d: state.path, class: state.open ? "g-turn" : "g-mark" }));
  return parts;
}

/**
 * Make the shape of a state next to a text.
 *
 * @param {StateKey} key
 */
export function glyph(key) {
  return s("svg", { viewBox: "0 0 16 16", width: 14, height: 14, class: `glyph ${key}`, "aria-hidden": "true" }, shape(key));
}

/**
 * Make the label of a state: shape, words, colour.
 *
 * @param {string} status
 * @param {unknown} [isHeld]
 */
export function badge(status, isHeld = false) {
  const key = keyOf(status, isHeld);
  return h("span", { class: `badge ${key}`, title: status }, glyph(key), h("span", {}, words(status, key)));
}

// Colours of conductors, which say something beside the name that is always there.
const HUES = [212, 265, 172, 24, 330, 96, 190, 48, 292, 140];

/**
 * Return the class of a conductor's colour; the same for the same place among the sorted hosts.
 *
 * @param {string | null} host
 * @param {string[]} hosts
 */
export function hueOf(host, hosts) {
  const place = host === null ? -1 : hosts.indexOf(host);
  return place < 0 ? "hue-none" : `hue-${place % HUES.length}`;
}
