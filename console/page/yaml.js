// Writes a template as YAML, in which people write them; comments are not stored.  Pure.

/** The sections of a template in the order in which people write them; the others follow. */
const SECTIONS = [
  "heat_template_version", "AWSTemplateFormatVersion", "HeatTemplateFormatVersion", "description", "Description", "parameter_groups", "parameters",
  "Parameters", "Mappings", "conditions", "Conditions", "resources", "Resources", "outputs", "Outputs",
];
// No text of these is a number, a date or a key: it begins with a letter, and a colon or a space stands inside.
const PLAIN = /^[A-Za-z_](?:[\w./%-]|:(?=[\w./%:-])| (?=[\w./%-]))*$/;
const RESERVED = /^(?:y|n|yes|no|true|false|on|off|null)$/i;
// eslint-disable-next-line no-control-regex -- they are what a literal block cannot have
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]/;
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/**
 * Return a template as YAML.
 *
 * @param {unknown} template
 */
export function yamlOf(template) {
  if (!isFilled(template) || Array.isArray(template)) return `${block(template, "").trimStart()}\n`;
  const place = (/** @type {string} */ name) => (SECTIONS.includes(name) ? SECTIONS.indexOf(name) : SECTIONS.length);
  const sections = Object.entries(/** @type {object} */ (template)).sort(([one], [other]) => place(one) - place(other));
  return `${block(Object.fromEntries(sections), "").slice(1)}\n`;
}

/** @param {unknown} value */
function isFilled(value) {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

/**
 * Return what stands behind a key's colon or an item's dash.
 *
 * @param {unknown} value
 * @param {string} pad indents the lines of a value that has some.
 * @returns {string}
 */
function block(value, pad) {
  if (!isFilled(value)) return ` ${typeof value === "string" ? text(value, pad) : number(value)}`;
  if (Array.isArray(value)) return value.map((item) => `\n${pad}-${entry(item, `${pad}  `)}`).join("");
  return Object.entries(/** @type {object} */ (value)).map(([key, inner]) => `\n${pad}${text(key, null)}:${block(inner, `${pad}  `)}`).join("");
}

/**
 * Return an item of a list; the first key of a map, or item of a list, stands on the line of the dash.
 *
 * @param {unknown} value
 * @param {string} pad
 */
function entry(value, pad) {
  return isFilled(value) ? ` ${block(value, pad).slice(1 + pad.length)}` : block(value, pad);
}

/**
 * @param {string} value
 * @param {string | null} pad of a literal block; null: it has to stand on one line.
 */
function text(value, pad) {
  if (PLAIN.test(value) && !RESERVED.test(value)) return value;
  const lines = value.split("\n");
  if (pad !== null && lines.length > 1 && /^[^\s]/.test(value) && !CONTROLS.test(value)) {
    const kept = value.endsWith("\n\n") ? "+" : value.endsWith("\n") ? "" : "-";
    const body = value.endsWith("\n") ? lines.slice(0, -1) : lines;
    return `|${kept}\n${body.map((line) => (line ? pad + line : "")).join("\n")}`;
  }
  return JSON.stringify(value).replace(UNPRINTABLE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Return a value that is neither a text nor filled; an exponent is one in YAML only behind a point.
 *
 * @param {unknown} value
 */
function number(value) {
  const json = JSON.stringify(value);
  return typeof value === "number" && json.includes("e") && !json.includes(".") ? json.replace("e", ".0e") : json;
}
