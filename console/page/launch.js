// Creates a stack: first its template, then a form of the template's parameters.

import { filesField, parametersForm, textField } from "./form.js";
import { field } from "./login.js";
import { button, h, prose, put } from "./dom.js";

const EXAMPLE = `heat_template_version: 2018-08-31
parameters:
  length: {type: number, default: 16, description: Characters of the password}
resources:
  password:
    type: OS::Heat::RandomString
    properties: {length: {get_param: length}}
outputs:
  password: {value: {get_attr: [password, value]}}
`;

/**
 * Show the launch of a stack.
 *
 * @param {PageContext} context
 */
export function showLaunch({ api, main, say, go }) {
  const template = textField("Template", { required: true, placeholder: "heat_template_version: …" }, "HOT or a CFN template, as YAML or JSON.");
  const environment = textField("Environment", { rows: 4 }, "Optional: parameters, resource_registry and so on, as YAML or JSON.");
  const files = filesField();
  const problem = h("p", { class: "problem", role: "alert" });
  const second = h("div", {});
  const next = h("button", { type: "submit", class: "main" }, "Continue");
  put(main, h("h1", { tabindex: "-1" }, "Launch a stack"),
    h("form", { class: "form", on: { submit: (event) => { event.preventDefault(); check(); } } }, template.element,
      h("p", {}, button("Insert an example", () => { template.input.value = EXAMPLE; }, { class: "link" })),
      h("details", {}, h("summary", {}, "Environment and files"), environment.element, files.element), problem, h("div", { class: "actions" }, next)), second);

  function goal() {
    /** @type {Record<string, unknown>} */
    const body = { template: template.input.value };
    if (environment.input.value.trim()) body.environment = environment.input.value;
    const texts = files.texts();
    if (Object.keys(texts).length) body.files = texts;
    return body;
  }

  async function check() {
    problem.textContent = "";
    next.disabled = true;
    try {
      const validated = await api.send("POST", "validate", goal());
      put(second, parametersStep(validated));
      second.querySelector("h2")?.focus();
    } catch (error) {
      put(problem, prose(/** @type {Error} */ (error).message));
    } finally {
      next.disabled = false;
    }
  }

  /** @param {Validation} validated */
  function parametersStep(validated) {
    const form = parametersForm(validated);
    const name = field("Name of the stack", { required: true, pattern: "[a-zA-Z][a-zA-Z0-9_.\\-]{0,254}", title: "a letter, then letters, digits, _ . or -" });
    const minutes = field("Timeout in minutes", { type: "number", min: 1, placeholder: "that of the service" });
    const rollback = h("input", { type: "checkbox" });
    const wrong = h("p", { class: "problem", role: "alert" });
    const create = h("button", { type: "submit", class: "main" }, "Create the stack");
    return h("form", { class: "form", on: { submit: async (event) => {
      event.preventDefault();
      wrong.textContent = "";
      create.disabled = true;
      const body = {
        ...goal(), stack_name: name.input.value, parameters: form.values(), disable_rollback: !rollback.checked,
        ...(minutes.input.value && { timeout_mins: Number(minutes.input.value) }),
      };
      try {
        const { stack } = await api.send("POST", "stacks", body);
        say("The stack is being created.");
        // Whoever has left the page meanwhile stays where they are.
        if (create.isConnected) go(`#/stack/${encodeURIComponent(body.stack_name)}/${stack.id}`);
      } catch (error) {
        put(wrong, prose(/** @type {Error} */ (error).message));
      } finally {
        create.disabled = false;
      }
    } } },
    h("h2", { tabindex: "-1" }, "Name and parameters"), validated.Description && validated.Description !== "No description" ? h("p", {}, prose(validated.Description)) : null,
    name.element, form.element, h("fieldset", {}, h("legend", {}, "Options"), minutes.element, h("label", { class: "check" }, rollback, " Roll back if the creation fails")), wrong, h("div", { class: "actions" }, create));
  }
}
