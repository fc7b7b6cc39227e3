// Makes elements.  Texts become text nodes, never markup: names are whatever users have chosen.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {HTMLElement | SVGElement} T
 * @param {T} element
 * @param {Props | null | undefined} props
 * @param {Child[]} children
 * @returns {T}
 */
function fill(element, props, children) {
  const { on = {}, style = {}, ...attributes } = props ?? {};
  for (const [type, listener] of Object.entries(on)) element.addEventListener(type, listener);
  for (const [name, text] of Object.entries(style)) element.style.setProperty(name, text);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "value" || key === "checked" || key === "disabled") Object.assign(element, { [key]: value });
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/**
 * @param {Element} element
 * @param {readonly Child[]} children
 */
function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Make an HTML element.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/**
 * Make an SVG element.
 *
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/**
 * Replace what an element holds.
 *
 * @template {Element} T
 * @param {T} element
 * @param {...Child} children
 * @returns {T}
 */
export function put(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/**
 * Replace the controls that an element holds, each with a data-key: the one that has the focus gives it to its successor.
 *
 * @param {Element} element
 * @param {Element[]} controls
 */
export function putFocused(element, controls) {
  const { activeElement } = document;
  const key = activeElement && element.contains(activeElement) ? activeElement.getAttribute("data-key") : null;
  put(element, controls);
  const next = controls.find((control) => key !== null && control.getAttribute("data-key") === key);
  if (next instanceof HTMLElement) next.focus();
}

// Controls, and characters that change the direction of the text around them.
// eslint-disable-next-line no-control-regex -- they are what is searched for
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Return a text with its invisible characters spelled out: none of them may disguise a name.
 *
 * @param {unknown} text
 */
export function spelled(text) {
  const code = (/** @type {string} */ c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  return String(text ?? "").replace(INVISIBLE, code);
}

/**
 * Return JSON as a text to read.
 *
 * @param {unknown} value
 */
export function spelledJson(value) {
  return JSON.stringify(value, null, 2).split("\n").map((line) => spelled(line)).join("\n");
}

/**
 * Make the element of a name: one line, cut where it is too long, with its own direction.
 *
 * @param {unknown} text
 * @param {Props} [props]
 */
export function named(text, props) {
  const visible = spelled(text);
  return h("bdi", { class: "name", title: visible, ...props }, visible);
}

/**
 * Make a text of several lines, of which only the line ends are kept.
 *
 * @param {unknown} text
 * @returns {Child}
 */
export function prose(text) {
  return String(text ?? "").split("\n").map((line, index) => [index ? h("br") : null, spelled(line)]);
}

/**
 * Return how long a span of seconds is, in the unit that a reader can grasp.
 *
 * @param {number} seconds
 */
export function span(seconds) {
  const at = Math.max(0, seconds);
  if (at < 10) return `${Number.isInteger(at) ? at : at.toFixed(at < 1 ? 2 : 1)} s`;
  if (at < 120) return `${Math.round(at)} s`;
  if (at < 7200) return `${Math.round(at / 60)} min`;
  if (at < 172800) return `${Math.round(at / 3600)} h`;
  return `${Math.round(at / 86400)} days`;
}

/**
 * Return the element of an instant: how long ago it was, with the date as its title.
 *
 * @param {string | null | undefined} text
 */
export function ago(text) {
  if (!text) return h("span", { class: "faint" }, "–");
  return h("time", { class: "age", datetime: text, title: new Date(text).toLocaleString() }, ageWords(text));
}

/** @param {string} text */
function ageWords(text) {
  const age = (Date.now() - Date.parse(text)) / 1000;
  return age < 5 ? "now" : `${span(Math.round(age))} ago`;
}

/**
 * Return the element of an instant to come: in how long that is.
 *
 * @param {string} text
 */
export function until(text) {
  return h("time", { class: "until", datetime: text, title: new Date(text).toLocaleString() }, untilWords(text));
}

/** @param {string} text */
function untilWords(text) {
  return span(Math.round((Date.parse(text) - Date.now()) / 1000));
}

/**
 * Let the elements of instants say how far away they are by now.
 *
 * @param {ParentNode} root
 */
export function refreshAges(root) {
  for (const element of root.querySelectorAll("time.age, time.until")) {
    const at = element.getAttribute("datetime") ?? "";
    const words = element.classList.contains("age") ? ageWords(at) : untilWords(at);
    if (element.textContent !== words) element.textContent = words;
  }
}

let numbers = 0;

/** Return an id that no other element has; it begins with `prefix`. */
export function freshId(prefix = "e") {
  numbers += 1;
  return `${prefix}${numbers}`;
}

/**
 * Make a button.  While what it does takes time, neither it nor another button of its group (an element with data-acts) does anything.
 *
 * @param {Child} label
 * @param {(event: any) => unknown} act returns a promise where it takes time.
 * @param {Props} [props]
 */
export function button(label, act, props) {
  /** @type {HTMLButtonElement} */
  const element = h("button", { type: "button", ...props, on: { click: (event) => once(element.closest("[data-acts]") ?? element, () => act(event)) } }, label);
  return element;
}

/**
 * Act, unless the element is busy with what was begun before; it is busy until the promise of the act has settled.
 *
 * @param {Pick<Element, "getAttribute" | "setAttribute" | "removeAttribute">} element
 * @param {() => unknown} act
 */
export async function once(element, act) {
  if (element.getAttribute("aria-busy") === "true") return;
  const acting = act();
  if (!(acting instanceof Promise)) return;
  element.setAttribute("aria-busy", "true");
  try {
    await acting;
  } finally {
    element.removeAttribute("aria-busy");
  }
}
