// The fields of a template: its text, its environment, and a form of its parameters.

import { field } from "./login.js";
import { button, h, prose, put, spelled } from "./dom.js";

const MOST_FILE = 4 * 1024 * 1024;

/** Make a large text field that also takes a file from the user's computer. */
export function textField(label, props, help) {
  const area = h("textarea", { rows: 14, spellcheck: "false", autocomplete: "off", wrap: "off", ...props });
  const made = field(label, { element: area }, help);
  const problem = h("small", { class: "problem", role: "alert" });
  const file = h("input", { type: "file", class: "sr", tabindex: "-1", "aria-hidden": "true", on: { change: async () => {
    const [chosen] = file.files;
    problem.textContent = "";
    if (!chosen) return;
    if (chosen.size > MOST_FILE) problem.textContent = "This file is larger than 4 MiB, which no template may be.";
    else area.value = await chosen.text();
    file.value = "";
  } } });
  made.element.append(h("div", { class: "actions" }, button("Read a file …", () => file.click()), file, problem));
  return made;
}

/** Read files that a template names; return the field, and a function that returns their texts by name. */
export function filesField() {
  const texts = new Map();
  const list = h("ul", { class: "files" });
  const input = h("input", { type: "file", multiple: true, class: "sr", tabindex: "-1", "aria-hidden": "true", on: { change: async () => {
    for (const file of input.files) if (file.size <= MOST_FILE) texts.set(file.name, await file.text());
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

function choicesOf(parameter) {
  const allowed = (parameter.CustomConstraint ? null : parameter.AllowedValues) ?? null;
  return Array.isArray(allowed) ? allowed.map(String) : null;
}

function inputOf(name, parameter, given) {
  const type = parameter.Type ?? "String";
  const start = given ?? parameter.Value ?? parameter.Default;
  const text = start === undefined || start === null ? "" : typeof start === "object" ? JSON.stringify(start) : String(start);
  const isHidden = String(parameter.NoEcho).toLowerCase() === "true";
  const choices = choicesOf(parameter) ?? (type === "Boolean" ? ["true", "false"] : null);
  if (choices) {
    const isKnown = choices.some((choice) => choice.toLowerCase() === text.toLowerCase());
    return h("select", { required: true }, isKnown ? null : h("option", { value: "" }, "choose"),
      choices.map((choice) => h("option", { value: choice, selected: choice.toLowerCase() === text.toLowerCase() }, spelled(choice))));
  }
  if (type === "Json") return h("textarea", { rows: 3, value: text, spellcheck: "false" });
  if (isHidden) return h("input", { type: "password", autocomplete: "new-password", value: given ?? "", placeholder: parameter.Default === undefined ? "" : "the default" });
  return h("input", { type: type === "Number" ? "number" : "text", step: "any", value: text, autocomplete: "off", spellcheck: "false" });
}

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
 * @param given values that are shown in place of the defaults.
 * @returns {element, values()}: the values that differ from the defaults.
 */
export function parametersForm(validated, given = {}) {
  const inputs = new Map();
  const entries = Object.entries(validated.Parameters ?? {});
  const made = new Map(entries.map(([name, parameter]) => {
    const input = inputOf(name, parameter, given[name]);
    if (parameter.Default === undefined && parameter.Value === undefined) input.required = true;
    inputs.set(name, { input, parameter });
    return [name, field(spelled(parameter.Label || name), { element: input }, helpOf(parameter)).element];
  }));
  const groups = (validated.ParameterGroups ?? []).map((group) => ({ label: group.label, description: group.description, names: group.parameters.filter((name) => made.has(name)) }));
  const grouped = new Set(groups.flatMap((group) => group.names));
  const rest = [...made.keys()].filter((name) => !grouped.has(name));
  if (rest.length) groups.push({ label: groups.length ? "Other parameters" : "Parameters", names: rest });
  const element = h("div", {}, groups.map((group) => h("fieldset", {}, h("legend", {}, spelled(group.label ?? "Parameters")), group.description ? h("p", { class: "faint" }, prose(group.description)) : null, group.names.map((name) => made.get(name)))),
    entries.length ? null : h("p", { class: "faint" }, "This template has no parameters."));
  const values = () => {
    const found = {};
    for (const [name, { input, parameter }] of inputs) {
      const start = parameter.Default === undefined ? undefined : typeof parameter.Default === "object" ? JSON.stringify(parameter.Default) : String(parameter.Default);
      if (input.type === "password" ? input.value : input.value !== start && (input.value !== "" || start !== undefined)) found[name] = input.value;
    }
    return found;
  };
  return { element, values };
}
