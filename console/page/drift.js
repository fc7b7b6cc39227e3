// What of a stack is gone from the cloud, or differs from its template: the tab "Drift".

import { DataView } from "./data_view.js";
import { ago, h, named, prose, put } from "./dom.js";
import { Source } from "./live.js";
import { Table } from "./table.js";

/** @type {Record<string, string>} */
const WORDS = { IN_SYNC: "in sync", DRIFTED: "drifted", UNKNOWN: "not known", NOT_CHECKED: "not checked" };

/**
 * Return the words for a stack's drift; "": it was not observed.
 *
 * @param {Pick<StackAnswer, "drift_status" | "drifted_resources">} stack
 */
export function driftWords(stack) {
  if (!stack.drift_status) return "";
  return stack.drift_status === "DRIFTED" ? `drifted: ${stack.drifted_resources ?? 0}` : WORDS[stack.drift_status];
}

/**
 * Return a row for each property that differs, and for each resource that is gone.  Pure.
 *
 * @param {Drift} drift
 * @returns {DriftRow[]}
 */
export function rowsOf(drift) {
  return drift.resources.flatMap((resource) => {
    const { resource_path: path, resource_type: type, since } = resource;
    if (resource.difference === "GONE") return [{ path, type, since, property: "", template: "", cloud: "gone" }];
    return resource.properties.map(({ name, template, cloud }) => ({
      path, type, since, property: name, template: JSON.stringify(template), cloud: JSON.stringify(cloud),
    }));
  });
}

/** A table of the differences. */
export class DriftPanel {
  /** @param {PanelContext} context */
  constructor({ api, data, refresh, hash }) {
    this._facts = h("p", { class: "facts faint" });
    this._unknown = h("ul", {});
    /** @type {Table<DriftRow>} */
    this._table = new Table([
      { title: "Resource", cell: (row) => h("a", { href: hash("graph", { resource: row.path }) }, named(row.path)), kind: "grow", order: (row) => row.path },
      { title: "Type", cell: (row) => named(row.type), order: (row) => row.type },
      { title: "Property", cell: (row) => named(row.property), order: (row) => row.property },
      { title: "Template", cell: (row) => prose(row.template), kind: "wide" },
      { title: "Cloud", cell: (row) => prose(row.cloud), kind: "wide" },
      { title: "Since", cell: (row) => ago(row.since), kind: "nowrap", order: (row) => Date.parse(row.since) },
    ], { caption: "Differences between the template and the cloud", key: (row) => `${row.path} ${row.property}` });
    this.view = new DataView({
      subject: "the drift", sources: [new Source(async (fresh) => (await api.get(data.path("drift"), { fresh })).drift)],
      body: h("div", {}, this._facts, this._unknown, this._table.element), retry: refresh, draw: (/** @type {Drift} */ drift) => this._draw(drift),
    });
  }

  /** @param {Drift} drift */
  _draw(drift) {
    const observed = drift.observed_time ? ["observed ", ago(drift.observed_time)] : ["never observed"];
    put(this._facts, h("b", {}, WORDS[drift.drift_status]), " ", ...observed);
    put(this._unknown, drift.unknown.map((reason) => h("li", {}, prose(reason))));
    this._table.show(rowsOf(drift), drift.drift_status === "IN_SYNC" ? "All that was observed is as in the template." : "Nothing is known to differ.");
  }
}
