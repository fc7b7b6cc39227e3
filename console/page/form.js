// The fields of a template: its text, its environment, and a form of its parameters.

import { fieldOf } from "./login.js";
import { button, h, prose, put, spelled } from "./dom.js";

const MOST_FILE = 4 * 1024 * 1024;

/**
 * Make a large text field that also takes a file from the user's computer.
 *
 * @param {string} label
 * @param {Props} props
 * @param {Child} help
 */
export function textField(label, props, help) {
  const area = h("textarea", { rows: 14, spellcheck: "false", autocomplete: "off", wrap: "off", ...props });
  const { element } = fieldOf(label, area, help);
  const problem = h("small", { class: "problem", role: "alert" });
  /** @type {HTMLInputElement} */
  const file = h("input", { type: "file", class: "sr", tabindex: "-1", "aria-hidden": "true", on: { change: async () => {
    const [chosen] = file.files ?? [];
    problem.textContent = "";
    if (!chosen) return;
    if (chosen.size > MOST_FILE) problem.textContent = "This file is larger than 4 MiB, which no template may be.";
    else area.value = await chosen.text();
    file.value = "";
  } } });
  element.append(h("div", { class: "actions" }, button("Read a file …", () => file.click()), file, problem));
  return { element, input: area };
}

/** Read files that a template names; return the field, and a function that returns their texts by name. */
export function filesField() {
  /** @type {Map<string, string>} */
  const texts = new Map();
  const list = h("ul", { class: "files" });
  /** @type {HTMLInputElement} */
  const input = h("input", { type: "file", multiple: true, class: "sr", tabindex: "-1", "aria-hidden": "true", on: { change: async () => {
    for (const file of input.files ?? []) if (file.size <= MOST_FILE) texts.set(file.name, await file.text());
    input.value = "";
    draw();
  } } });
  function draw() {
    put(list, [...texts.keys()].map((name) => h("li", {}, spelled(name), " ", button("Remove", () => { texts.delete(name); draw(); }, { class: "link", "aria-label": `Remove ${spelled(name)}` }))));
  }
  const element = h("div", { class: "field" }, h("span", { class: "label" }, "Files"), h("small", {}, "Nested templates and scripts, by the names that the template uses."),
    list, h("div", { class: "actions" }, button("Add files …", () => input.click()), input));
  return { element, texts: () => Object.fromEntries(texts) };
}

/** @param {Parameter} parameter */
function choicesOf({ CustomConstraint: constraint, AllowedValues: allowed, Type: type }) {
  if (Array.isArray(allowed) && !constraint) return allowed.map(String);
  return type === "Boolean" ? ["true", "false"] : null;
}

/** @param {unknown} value */
function textOf(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * @param {string[]} choices
 * @param {string} text
 */
function selectOf(choices, text) {
  const isIt = (/** @type {string} */ choice) => choice.toLowerCase() === text.toLowerCase();
  return h("select", { required: true }, choices.some(isIt) ? null : h("option", { value: "" }, "choose"),
    choices.map((choice) => h("option", { value: choice, selected: isIt(choice) }, spelled(choice))));
}

/**
 * @param {Parameter} parameter
 * @param {unknown} value is shown in place of the default.
 */
function inputOf(parameter, value) {
  const { Type: type = "String", NoEcho: isHidden } = parameter;
  const text = textOf(value ?? parameter.Value ?? parameter.Default);
  const choices = choicesOf(parameter);
  if (choices) return selectOf(choices, text);
  if (type === "Json") return h("textarea", { rows: 3, value: text, spellcheck: "false" });
  if (String(isHidden).toLowerCase() === "true") return h("input", { type: "password", autocomplete: "new-password", value: value ?? "", placeholder: parameter.Default === undefined ? "" : "the default" });
  return h("input", { type: type === "Number" ? "number" : "text", step: "any", value: text, autocomplete: "off", spellcheck: "false" });
}

/** @param {Parameter} parameter */
function helpOf(parameter) {
  const parts = [parameter.Description, parameter.ConstraintDescription];
  const limits = [["MinLength", "at least", "characters"], ["MaxLength", "at most", "characters"], ["MinValue", "at least", ""], ["MaxValue", "at most", ""]];
  for (const [key, word, unit] of limits) if (parameter[key] !== undefined) parts.push(`${word} ${parameter[key]} ${unit}`.trim());
  if (parameter.AllowedPattern) parts.push(`pattern ${parameter.AllowedPattern}`);
  if (parameter.CustomConstraint) parts.push(`must be a ${parameter.CustomConstraint}`);
  if (parameter.Type === "CommaDelimitedList") parts.push("values separated by commas");
  const text = parts.filter(Boolean).join("; ");
  return text ? prose(text) : null;
}

/**
 * Make a form of parameters as POST /validate describes them.
 *
 * @param {Validation} validated
 * @param {Record<string, unknown>} present values that are shown in place of the defaults.
 * @returns {{element: HTMLElement, values: () => Record<string, string>}} `values` returns those that differ from the defaults.
 */
export function parametersForm(validated, present = {}) {
  /** @type {Map<string, {input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement, parameter: Parameter}>} */
  const inputs = new Map();
  const entries = Object.entries(validated.Parameters ?? {});
  const fields = new Map(entries.map(([name, parameter]) => {
    const input = inputOf(parameter, present[name]);
    if (parameter.Default === undefined && parameter.Value === undefined) input.required = true;
    inputs.set(name, { input, parameter });
    return [name, fieldOf(spelled(parameter.Label || name), input, helpOf(parameter)).element];
  }));
  /** @type {{label?: string, description?: string, names: string[]}[]} */
  const groups = (validated.ParameterGroups ?? []).map((group) => ({ label: group.label, description: group.description, names: group.parameters.filter((name) => fields.has(name)) }));
  const grouped = new Set(groups.flatMap((group) => group.names));
  const rest = [...fields.keys()].filter((name) => !grouped.has(name));
  if (rest.length) groups.push({ label: groups.length ? "Other parameters" : "Parameters", names: rest });
  const element = h("div", {}, groups.map((group) => h("fieldset", {}, h("legend", {}, spelled(group.label ?? "Parameters")), group.description ? h("p", { class: "faint" }, prose(group.description)) : null, group.names.map((name) => fields.get(name)))),
    entries.length ? null : h("p", { class: "faint" }, "This template has no parameters."));
  const values = () => {
    /** @type {Record<string, string>} */
    const changed = {};
    for (const [name, { input, parameter }] of inputs) {
      const start = parameter.Default === undefined ? undefined : textOf(parameter.Default);
      if (input.type === "password" ? input.value : input.value !== start && (input.value !== "" || start !== undefined)) changed[name] = input.value;
    }
    return changed;
  };
  return { element, values };
}
