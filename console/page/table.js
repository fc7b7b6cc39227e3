// A table of many rows: its first ones, and more on demand; in the order of the column that the user chooses.

import { h, put, button } from "./dom.js";
import { sorted } from "./filters.js";

/**
 * A column: `cell` returns what a row shows, `order` the key by which the column sorts (null comes last; without it the column does not
 * sort), `kind` is a CSS class.
 *
 * @template T
 * @typedef {{title: string | Element, cell: (item: T) => Child, kind?: string, order?: (item: T) => string | number | null}} Column
 */

/**
 * A table of items.
 *
 * @template T
 */
export class Table {
  /**
   * @param {Column<T>[]} columns
   * @param {{caption: string, key: (item: T) => string, page?: number}} options `key` names an item among all, `page` is the number of
   *   rows at first.
   */
  constructor(columns, { caption, key, page = 100 }) {
    this._columns = columns;
    this._page = page;
    this._key = key;
    this._most = page;
    /** @type {T[]} */
    this._items = [];
    /** @type {Child} */
    this._none = "None.";
    /** @type {Map<string, {text: string, row: HTMLElement}>} */
    this._drawn = new Map();
    /** @type {{column: Column<T>, isDescending: boolean} | null} */
    this._order = null;
    this._rows = h("tbody");
    this._foot = h("div", { class: "more" });
    this._heads = columns.map((column) => this._head(column));
    this.element = h("div", { class: "tablebox" },
      h("table", {}, h("caption", { class: "sr" }, caption), h("thead", {}, h("tr", {}, this._heads)), this._rows), this._foot);
  }

  /**
   * Show items; without any, say what `none` says.
   *
   * @param {T[]} items
   * @param {Child} none
   */
  show(items, none) {
    this._items = items;
    this._none = none;
    this._draw();
  }

  /** Draw all rows anew: what their cells show has changed, though the items have not. */
  redraw() {
    this._drawn.clear();
    this._draw();
  }

  /** @param {Column<T>} column */
  _head(column) {
    if (!column.order) return h("th", { scope: "col", class: column.kind }, column.title);
    return h("th", { scope: "col", class: column.kind, "aria-sort": "none" },
      button([column.title, h("span", { class: "arrow", "aria-hidden": "true" })], () => this._sort(column), { class: "sort", title: `Sort by ${String(column.title).toLowerCase()}` }));
  }

  /**
   * Sort by a column: upwards, downwards, and then as the items came.
   *
   * @param {Column<T>} column
   */
  _sort(column) {
    const isSame = this._order?.column === column;
    this._order = isSame && this._order?.isDescending ? null : { column, isDescending: isSame };
    const [word, arrow] = this._order?.isDescending ? ["descending", " ▼"] : ["ascending", " ▲"];
    for (const [index, head] of this._heads.entries()) {
      const isIt = this._order?.column === this._columns[index];
      if (this._columns[index].order) head.setAttribute("aria-sort", isIt ? word : "none");
      head.querySelector(".arrow")?.replaceChildren(isIt ? arrow : "");
    }
    this._draw();
  }

  _draw() {
    const next = new Map();
    const order = this._order?.column.order;
    const ordered = order ? sorted(this._items, order, this._order?.isDescending) : this._items;
    for (const item of ordered.slice(0, this._most)) {
      const text = JSON.stringify(item);
      const before = this._drawn.get(this._key(item));
      next.set(this._key(item), before?.text === text ? before : { text, row: this._row(item) });
    }
    this._put(next);
    const left = this._items.length - this._most;
    put(this._foot, left > 0 ? button(`Show more (${left})`, () => { this._most += 5 * this._page; this._draw(); }) : null);
  }

  /** @param {T} item */
  _row(item) {
    return h("tr", {}, this._columns.map(({ title, cell, kind }) => h("td", { class: kind, "data-title": typeof title === "string" ? title : null }, cell(item))));
  }

  /**
   * Put rows into the table; one that has the focus keeps it.
   *
   * @param {Map<string, {text: string, row: HTMLElement}>} next
   */
  _put(next) {
    const { activeElement } = document;
    const row = activeElement?.closest?.("tr");
    const focused = row ? [...this._drawn].find(([, drawn]) => drawn.row === row)?.[0] : undefined;
    this._drawn = next;
    put(this._rows, [...next.values()].map((drawn) => drawn.row), next.size ? null : h("tr", { class: "none" }, h("td", { colspan: this._columns.length }, this._none)));
    if (focused === undefined || activeElement === document.activeElement) return;
    /** @type {HTMLElement | null | undefined} */
    const control = next.get(focused)?.row.querySelector("a,button,input");
    control?.focus({ preventScroll: true });
  }
}
