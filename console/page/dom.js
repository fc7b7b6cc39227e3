// Makes elements.  Texts become text nodes, never markup: names are whatever users have chosen.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    else if (key === "style") for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
    else if (key === "value" || key === "checked" || key === "disabled") element[key] = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Make an HTML element.  `on` holds listeners, `style` CSS properties; other keys are attributes. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Make an SVG element. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Replace what an element holds. */
export function put(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// Controls, and characters that change the direction of the text around them.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Return a text with its invisible characters spelled out: none of them may disguise a name. */
export function spelled(text) {
  const code = (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  return String(text ?? "").replace(INVISIBLE, code);
}

/** Return JSON as a text to read. */
export function spelledJson(value) {
  return JSON.stringify(value, null, 2).split("\n").map(spelled).join("\n");
}

/** Make the element of a name: one line, cut where it is too long, with its own direction. */
export function named(text, props) {
  const shown = spelled(text);
  return h("bdi", { class: "name", title: shown, ...props }, shown);
}

/** Make a text of several lines, of which only the line ends are kept. */
export function prose(text) {
  return String(text ?? "").split("\n").map((line, index) => [index ? h("br") : null, spelled(line)]);
}

/** Return how long ago an instant was, or how long a span of seconds is. */
export function span(seconds) {
  const at = Math.max(0, seconds);
  if (at < 10) return `${Number.isInteger(at) ? at : at.toFixed(at < 1 ? 2 : 1)} s`;
  if (at < 120) return `${Math.round(at)} s`;
  if (at < 7200) return `${Math.round(at / 60)} min`;
  if (at < 172800) return `${Math.round(at / 3600)} h`;
  return `${Math.round(at / 86400)} days`;
}

/** Return the element of an instant: how long ago it was, with the date as its title. */
export function ago(text) {
  if (!text) return h("span", { class: "faint" }, "–");
  return h("time", { class: "age", datetime: text, title: new Date(text).toLocaleString() }, ageWords(text));
}

function ageWords(text) {
  const age = (Date.now() - Date.parse(text)) / 1000;
  return age < 5 ? "now" : `${span(Math.round(age))} ago`;
}

/** Return the element of an instant to come: in how long that is. */
export function until(text) {
  return h("time", { class: "until", datetime: text, title: new Date(text).toLocaleString() }, untilWords(text));
}

function untilWords(text) {
  return span(Math.round((Date.parse(text) - Date.now()) / 1000));
}

/** Let the elements of instants say how far away they are by now. */
export function refreshAges(root) {
  for (const element of root.querySelectorAll("time.age, time.until")) {
    const at = element.getAttribute("datetime");
    const words = element.classList.contains("age") ? ageWords(at) : untilWords(at);
    if (element.textContent !== words) element.textContent = words;
  }
}

let numbers = 0;

/** Return an id that no other element has. */
export function freshId(prefix = "e") {
  numbers += 1;
  return `${prefix}${numbers}`;
}

/** Make a button. */
export function button(label, act, props) {
  return h("button", { type: "button", ...props, on: { click: act } }, label);
}
