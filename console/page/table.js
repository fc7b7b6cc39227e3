// A table of many rows: its first ones, and more on demand; in the order of the column that the user chooses.

import { h, put, button } from "./dom.js";
import { sorted } from "./filters.js";

/**
 * A table.
 *
 * Columns are {title, cell, kind, order}: cell(item) returns what a row shows, order(item) the key by which the column sorts (null comes
 * last; without it the column does not sort), kind is a CSS class.  A title may be an element.
 */
export class Table {
  constructor(columns, { page = 100, caption, key = (item) => item.id } = {}) {
    Object.assign(this, { _columns: columns, _page: page, _key: key, _most: page });
    this._items = [];
    this._none = "None.";
    this._drawn = new Map();
    this._order = null;
    this._rows = h("tbody");
    this._foot = h("div", { class: "more" });
    this._heads = columns.map((column) => this._head(column));
    this.element = h("div", { class: "tablebox" },
      h("table", {}, h("caption", { class: "sr" }, caption), h("thead", {}, h("tr", {}, this._heads)), this._rows), this._foot);
  }

  /** Show items; without any, say what `none` says. */
  show(items, none = "None.") {
    this._items = items;
    this._none = none;
    this._draw();
  }

  /** Draw all rows anew: what their cells show has changed, though the items have not. */
  redraw() {
    this._drawn.clear();
    this._draw();
  }

  _head(column) {
    if (!column.order) return h("th", { scope: "col", class: column.kind }, column.title);
    return h("th", { scope: "col", class: column.kind, "aria-sort": "none" },
      button([column.title, h("span", { class: "arrow", "aria-hidden": "true" })], () => this._sort(column), { class: "sort", title: `Sort by ${String(column.title).toLowerCase()}` }));
  }

  /** Sort by a column: upwards, downwards, and then as the items came. */
  _sort(column) {
    const isSame = this._order?.column === column;
    if (isSame && this._order.isDescending) this._order = null;
    else this._order = { column, isDescending: isSame };
    for (const [index, head] of this._heads.entries()) {
      if (!this._columns[index].order) continue;
      const isIt = this._order?.column === this._columns[index];
      head.setAttribute("aria-sort", isIt ? (this._order.isDescending ? "descending" : "ascending") : "none");
      head.querySelector(".arrow").textContent = isIt ? (this._order.isDescending ? " ▼" : " ▲") : "";
    }
    this._draw();
  }

  _draw() {
    const next = new Map();
    const ordered = this._order ? sorted(this._items, this._order.column.order, this._order.isDescending) : this._items;
    for (const item of ordered.slice(0, this._most)) {
      const text = JSON.stringify(item);
      const before = this._drawn.get(this._key(item));
      next.set(this._key(item), before?.text === text ? before : { text, row: this._row(item) });
    }
    this._put(next);
    const left = this._items.length - this._most;
    put(this._foot, left > 0 ? button(`Show more (${left})`, () => { this._most += 5 * this._page; this._draw(); }) : null);
  }

  _row(item) {
    return h("tr", {}, this._columns.map(({ title, cell, kind }) => h("td", { class: kind, "data-title": typeof title === "string" ? title : null }, cell(item))));
  }

  /** Put rows into the table; one that has the focus keeps it. */
  _put(next) {
    const { activeElement } = document;
    const row = activeElement?.closest?.("tr");
    const focused = row && [...this._drawn].find(([, drawn]) => drawn.row === row)?.[0];
    this._drawn = next;
    put(this._rows, [...next.values()].map((drawn) => drawn.row), next.size ? null : h("tr", { class: "none" }, h("td", { colspan: this._columns.length }, this._none)));
    if (focused !== undefined && activeElement !== document.activeElement && next.has(focused)) {
      next.get(focused).row.querySelector("a,button,input")?.focus({ preventScroll: true });
    }
  }
}
