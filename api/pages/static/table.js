// A table of many rows: its first ones, and more on demand.

import { button, h, put } from "./dom.js";

/** Make a table. `columns` are [title, cell(item), class]; call its `show(items, empty)` with what it holds. */
export function table(columns, { page = 100, caption, key = (item) => item.id } = {}) {
  let most = page;
  let items = [];
  let empty = null;
  const rows = h("tbody");
  const foot = h("div", { class: "more" });
  const element = h("div", { class: "tablebox" },
    h("table", {}, h("caption", { class: "sr" }, caption),
      h("thead", {}, h("tr", {}, columns.map(([title, , kind]) => h("th", { scope: "col", class: kind }, title)))), rows), foot);
  let drawn = new Map();

  function draw() {
    const next = new Map();
    const active = document.activeElement?.closest?.("tr");
    const kept = active && [...drawn.entries()].find(([, row]) => row.row === active)?.[0];
    for (const item of items.slice(0, most)) {
      const text = JSON.stringify(item);
      const before = drawn.get(key(item));
      const isSame = before && (before.text === text) && !before.live;
      next.set(key(item), isSame ? before : { text, row: h("tr", {}, columns.map(([title, cell, kind]) => h("td", { class: kind, "data-title": title }, cell(item)))) });
    }
    drawn = next;
    const focused = kept !== undefined && document.activeElement;
    put(rows, [...next.values()].map(({ row }) => row), next.size ? null : h("tr", { class: "none" }, h("td", { colspan: columns.length }, empty)));
    if (focused && focused !== document.activeElement && next.has(kept)) next.get(kept).row.querySelector("a,button")?.focus({ preventScroll: true });
    put(foot, items.length > most ? button(`Show more (${items.length - most})`, () => { most += 5 * page; draw(); }) : null);
  }

  return {
    element,
    show(found, none) {
      items = found;
      empty = none ?? "None.";
      draw();
    },
  };
}
