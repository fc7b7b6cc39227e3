// Shows what an update would do before it is sent.

import { parametersForm, textField } from "./form.js";
import { DataView } from "./data_view.js";
import { button, h, named, prose, put, spelledJson } from "./dom.js";
import { Source } from "./live.js";
import { yamlOf } from "./yaml.js";

const KINDS = [["added", "+", "created"], ["updated", "~", "updated"], ["replaced", "±", "replaced"], ["deleted", "−", "deleted"], ["unchanged", "=", "unchanged"]];
const MOST = 200;

/** The tab "Update". */
export class ComparePanel {
  /** @param {PanelContext} context */
  constructor(context) {
    const { api, data, refresh } = context;
    const template = new Source((fresh) => api.get(data.path("template"), { fresh }), { isOnce: true });
    const stack = new Source(async (fresh) => (await api.get(data.path(), { fresh })).stack, { isOnce: true });
    const body = h("div", {});
    this.view = new DataView({
      subject: "the template", sources: [template, stack], body, retry: refresh,
      draw: (present, { parameters }) => showCompare(context, body, present, parameters ?? {}),
    });
  }
}

/**
 * @param {PanelContext} context
 * @param {Element} place
 * @param {unknown} presentTemplate
 * @param {Record<string, unknown>} presentParameters
 */
function showCompare({ api, data, say, open, refresh }, place, presentTemplate, presentParameters) {
  const template = textField("Template", { rows: 18 }, "The present one, without the comments of its author, which are not stored. Change it, or replace it by another: HOT or CFN, YAML or JSON.");
  const environment = textField("Environment", { rows: 4 }, "Optional: merged over the present one. Files of nested templates stay as they are.");
  const parameters = h("div", {});
  const problem = h("p", { class: "problem", role: "alert" });
  const result = h("div", { role: "region", "aria-label": "What the update would do", tabindex: "-1" });
  const compare = h("button", { type: "submit", class: "main" }, "Compare");
  /** @type {ReturnType<typeof parametersForm> | null} */
  let form = null;
  let descriptions = 0;
  const present = yamlOf(presentTemplate);
  const values = Object.fromEntries(Object.entries(presentParameters).filter(([name, value]) => !name.startsWith("OS::") && !/^\*+$/.test(String(value))));
  template.input.value = present;
  put(place, h("form", { class: "form", on: { input: outdate, submit: (event) => { event.preventDefault(); preview(); } } }, template.element,
    h("details", {}, h("summary", {}, "Environment"), environment.element), parameters, problem, h("div", { class: "actions" }, compare, button("Read the parameters again", () => describe()))), result);

  /** Say that what was compared is not what the form has now: only what has been compared is sent. */
  function outdate() {
    if (result.hasChildNodes()) put(result, h("p", { class: "faint", role: "status" }, "The form has changed. Compare again before you send the update."));
  }

  async function describe() {
    descriptions += 1;
    const number = descriptions;
    problem.textContent = "";
    if (!form) put(parameters, h("p", { class: "faint", role: "status" }, "Reading the parameters …"));
    try {
      const files = await api.get(data.path("files"));
      const validated = await api.send("POST", "validate", { template: template.input.value, files, ...environmentOf() });
      if (number !== descriptions) return;
      form = parametersForm(validated, { ...values, ...(form?.values() ?? {}) });
      put(parameters, form.element);
      for (const input of parameters.querySelectorAll("input[type=password]")) Object.assign(input, { required: false, placeholder: "unchanged" });
    } catch (error) {
      if (number !== descriptions) return;
      if (!form) put(parameters);
      put(problem, prose(/** @type {Error} */ (error).message));
    }
  }

  function environmentOf() {
    return environment.input.value.trim() ? { environment: environment.input.value } : {};
  }

  /** An update of the existing stack: what is not sent stays as it is. */
  function body() {
    const changed = template.input.value === present ? {} : { template: template.input.value };
    return { ...changed, ...environmentOf(), parameters: form?.values() ?? {}, existing: true };
  }

  async function preview() {
    problem.textContent = "";
    compare.disabled = true;
    put(result, h("p", { class: "faint", role: "status" }, "Comparing with the stack and the cloud …"));
    try {
      const sent = body();
      const answer = await api.send("PATCH", `${data.path("preview")}?show_nested=true&check_cloud=true`, sent);
      put(result, changesView(answer.resource_changes, answer.findings ?? [], sent));
      if (JSON.stringify(body()) !== JSON.stringify(sent)) outdate();
      result.focus();
      result.scrollIntoView({ block: "start" });
    } catch (error) {
      put(result);
      put(problem, prose(/** @type {Error} */ (error).message));
    } finally {
      compare.disabled = false;
    }
  }

  /**
   * @param {Record<string, Change[]>} changes
   * @param {Finding[]} findings
   * @param {object} sent
   */
  function changesView(changes, findings, sent) {
    const count = (/** @type {string} */ kind) => changes[kind]?.length ?? 0;
    const moves = KINDS.slice(0, 4).reduce((sum, [kind]) => sum + count(kind), 0);
    /** @type {HTMLButtonElement} */
    const send = button(moves ? "Send the update" : "Send it nevertheless", async () => {
      send.disabled = true;
      try {
        await api.send("PATCH", data.path(), sent);
        say("The update has begun.");
        refresh();
        if (send.isConnected) open("graph");
      } catch (error) {
        say(/** @type {Error} */ (error).message, "error");
        send.disabled = false;
      }
    }, { class: "main" });
    return [
      h("h2", {}, "What the update would do"),
      h("p", { class: "counts" }, KINDS.map(([kind, sign, word]) => h("span", { class: `change ${kind}` }, h("b", {}, `${sign} ${count(kind)}`), ` ${word}`))),
      moves ? null : h("p", {}, "No resource would change."),
      h("ul", { class: "changes" }, KINDS.slice(0, 4).flatMap(([kind, sign, word]) => (changes[kind] ?? []).slice(0, MOST).map((item) => line(kind, sign, word, item)))),
      moves > MOST ? h("p", { class: "faint" }, "Long lists are cut.") : null, findingsView(findings), h("div", { class: "actions" }, send),
    ];
  }

  describe();
}

/**
 * @param {string} kind
 * @param {string} sign
 * @param {string} word
 * @param {Change} item
 */
function line(kind, sign, word, item) {
  const path = item.parent_resource ? `${item.parent_resource}/${item.resource_name}` : item.resource_name;
  const reason = kind === "added" ? "" : reasonOf(item);
  return h("li", { class: `change ${kind}` }, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", { class: "sr" }, word), named(path), named(item.resource_type, { class: "name faint" }),
    reason ? h("span", { class: "reason" }, prose(reason)) : null, valuesView(item));
}

/**
 * The findings of the comparison with the cloud, as rows: those that hinder the update come first.
 *
 * @param {Finding[]} findings
 */
export function findingRows(findings) {
  const rows = findings.map(({ kind, path, message, certainty, advice }) => {
    const hinders = (kind === "quota" || kind === "fit") && certainty !== "not known";
    return { hinders, path, text: `${message} (${certainty}). ${advice}`.trim() };
  });
  return [...rows.filter((row) => row.hinders), ...rows.filter((row) => !row.hinders)];
}

/** @param {Finding[]} findings */
function findingsView(findings) {
  if (!findings.length) return null;
  return h("section", {}, h("h3", {}, "Compared with the cloud"), h("ul", { class: "changes" }, findingRows(findings).slice(0, MOST).map(({ hinders, path, text }) => (
    h("li", { class: `change ${hinders ? "deleted" : "unchanged"}` }, h("span", { class: "sign", "aria-hidden": "true" }, hinders ? "!" : "?"), path ? named(path) : null, h("span", { class: "reason" }, prose(text)))
  ))));
}

/** @param {Change} item */
function reasonOf(item) {
  return String(item.resource_status_reason ?? "").replace(/^state changed(; )?/, "");
}

/**
 * Show old and new values of properties, where the API gives them.
 *
 * @param {Change} item
 */
function valuesView({ property_changes: changes }) {
  if (!changes) return null;
  return h("dl", { class: "values" }, Object.entries(changes).map(([name, change]) => [h("dt", {}, named(name)), h("dd", {}, h("del", {}, valueText(change.old)), " → ", h("ins", {}, valueText(change.new)))]));
}

/** @param {unknown} value */
function valueText(value) {
  if (value === undefined || value === null) return "none";
  return typeof value === "string" ? prose(value) : spelledJson(value);
}
