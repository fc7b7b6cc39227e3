// Draws the graph of a stack.  Only what is visible is in the page, so that thousands of resources move smoothly.

import { button, h, put, s, spelled } from "./dom.js";
import { itemAt, itemTowards, sceneOf, shapeOf } from "./scene.js";
import { STATES, keyOf, shape, words } from "./states.js";

const FAR = 0.65;
const NEAR = 0.8;
const LEAST = 0.02;
const MOST = 2.5;
const MARGIN = 120;
const STEP = 1.3;
const TOP = 1.1;
const FONT = '12.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", "DejaVu Sans", sans-serif';
const ICON = 28;
const FOLD = 22;
const NARROW = 74;
const WIDE = 220;

const pen = document.createElement("canvas").getContext("2d");
pen.font = FONT;

/** Return the width of a text in a box. */
function measure(text) {
  return pen.measureText(text).width;
}

/** Return the width of a resource's box: its name, as far as it is shown. */
function widthOf(item) {
  return Math.round(Math.min(WIDE, Math.max(NARROW, measure(spelled(item.name)) + ICON + 12 + (item.hasChild ? FOLD : 0))));
}

/** Return a text, cut where it is wider than the room for it. */
function cut(text, room) {
  if (measure(text) <= room) return text;
  const letters = [...text];
  let [least, most] = [0, letters.length];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (measure(`${letters.slice(0, middle).join("")}…`) <= room) least = middle;
    else most = middle - 1;
  }
  return `${letters.slice(0, least).join("")}…`;
}

/** A view of a graph; `pick(id)` is called with the resource that the user chooses. */
export class GraphView {
  constructor(pick) {
    this._pick = pick;
    this._resources = new Map();
    this._open = new Set();
    this._shape = "";
    this._scene = { items: [], edges: [], width: 0, height: 0 };
    this._at = { x: 0, y: 0, k: 1 };
    this._drawn = new Map();
    this._chosen = null;
    this._goal = null;
    this._isUnfolded = false;
    this._isFitted = false;
    this._frame = 0;
    this._pointers = new Map();
    this._moved = false;
    this._build();
  }

  _build() {
    this._edges = s("path", { class: "edges" });
    this._lit = s("path", { class: "edges lit" });
    this._far = s("g", { class: "far" });
    this._nodes = s("g", {});
    this._world = s("g", {}, this._edges, this._lit, this._far, this._nodes);
    this.svg = s("svg", {
      class: "graph", tabindex: "0", role: "application",
      "aria-label": "Graph of the resources. Arrow keys move between resources, Enter shows one, plus and minus zoom, 0 shows all.",
    }, this._world);
    this._said = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Graph" },
      button("+", () => this.zoom(STEP), { "aria-label": "Zoom in", title: "Zoom in (+)" }),
      button("−", () => this.zoom(1 / STEP), { "aria-label": "Zoom out", title: "Zoom out (−)" }),
      button("Fit", () => this.fit(), { title: "Show all (0)" }),
      this._foldAll = button("Unfold all", () => this._toggleAll(), { hidden: true }));
    this.element = h("div", { class: "graphbox" }, this.svg, tools, this._said);
    this._listen();
  }

  _listen() {
    const { svg } = this;
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      this._pointers.set(event.pointerId, event);
      this._moved = false;
    });
    svg.addEventListener("pointermove", (event) => this._drag(event));
    for (const type of ["pointerup", "pointercancel"]) svg.addEventListener(type, (event) => this._release(event));
    svg.addEventListener("keydown", (event) => this._key(event));
    svg.addEventListener("dblclick", (event) => {
      const id = this._hit(event);
      if (id) this.toggle(id);
    });
    this._size = new ResizeObserver(() => (this._isFitted && Math.abs(this._width - svg.clientWidth) < 2 ? this._later() : this.fit()));
    this._size.observe(svg);
  }

  /** Stop to follow the size of the page. */
  end() {
    this._size.disconnect();
    cancelAnimationFrame(this._frame);
  }

  /** Show resources of {id, name, type, status, held, parent, requires, hasChild}; all nested stacks unfolded where `isUnfolded` says so. */
  show(resources, { isUnfolded = false } = {}) {
    this._resources = new Map(resources.map((item) => [item.id, item]));
    this._isUnfolded = isUnfolded;
    const open = isUnfolded ? new Set(resources.map((item) => item.parent).filter(Boolean)) : this._open;
    const shape = shapeOf(resources, open);
    if (shape !== this._shape) {
      this._shape = shape;
      this._scene = sceneOf(resources, open, widthOf);
      this._places = new Map(this._scene.items.map((item) => [item.id, item]));
      this._clear();
      if (!this._isFitted) this.fit();
    }
    const holders = resources.filter((item) => item.hasChild);
    this._foldAll.hidden = holders.length === 0 || isUnfolded;
    this._foldAll.textContent = this._open.size ? "Fold all" : "Unfold all";
    for (const [id, drawn] of this._drawn) this._paint(drawn, this._resources.get(id));
    this._later();
  }

  /** Return the resource that is chosen; null: none. */
  get chosen() {
    return this._chosen;
  }

  /** Choose a resource, and move it into view. */
  choose(id, { center = false } = {}) {
    this._chosen = id;
    for (const [other, drawn] of this._drawn) drawn.group.classList.toggle("chosen", other === id);
    const place = id && this._places?.get(id);
    if (place && center) this._reveal(place);
    this._later();
  }

  /** Choose a resource, unfold the nested stacks that it is in, and move it into view. */
  reveal(id) {
    for (let at = this._resources.get(this._resources.get(id)?.parent); at; at = this._resources.get(at.parent)) this._open.add(at.id);
    this.show([...this._resources.values()], { isUnfolded: this._isUnfolded });
    this.choose(id);
    this._goal = id;
    this._center();
  }

  /** Unfold the nested stack of a resource, or fold it. */
  toggle(id) {
    if (this._isUnfolded || !this._resources.get(id)?.hasChild) return;
    if (this._open.has(id)) this._open.delete(id);
    else this._open.add(id);
    this.show([...this._resources.values()]);
  }

  _toggleAll() {
    const holders = [...this._resources.values()].filter((item) => item.hasChild);
    if (this._open.size) this._open.clear();
    else for (const item of holders) this._open.add(item.id);
    this.show([...this._resources.values()]);
    this.fit();
  }

  /** Show all; the view is as high as that needs, and the window allows. */
  fit() {
    const scene = this._scene;
    const box = this.svg.getBoundingClientRect();
    const { width } = box;
    if (!width || !scene.items.length) return;
    const room = Math.max(340, Math.min(innerHeight * 0.8, innerHeight - box.top - scrollY - 28));
    const height = Math.round(Math.max(300, Math.min(room, scene.height * Math.min(TOP, (width - 40) / scene.width) + 96)));
    this._width = width;
    this.svg.style.height = `${height}px`;
    const k = Math.max(LEAST, Math.min(TOP, (width - 40) / scene.width, (height - 40) / scene.height));
    this._at = { k, x: (width - scene.width * k) / 2, y: (height - scene.height * k) / 2 };
    this._isFitted = true;
    this._center();
    this._later();
  }

  /** Show the resource that is to be revealed in the middle, as soon as the view has a size. */
  _center() {
    const { width, height } = this.svg.getBoundingClientRect();
    const place = this._places?.get(this._goal);
    if (!this._isFitted || !width || !place) return;
    const k = Math.max(this._at.k, NEAR);
    this._at = { k, x: width / 2 - (place.x + place.w / 2) * k, y: height / 2 - (place.y + place.h / 2) * k };
    this._goal = null;
    this._later();
  }

  /** Zoom by a factor around a point of the view; without one, its centre. */
  zoom(factor, px, py) {
    const box = this.svg.getBoundingClientRect();
    const x = px ?? box.width / 2;
    const y = py ?? box.height / 2;
    const k = Math.max(LEAST, Math.min(MOST, this._at.k * factor));
    const ratio = k / this._at.k;
    this._at = { k, x: x - (x - this._at.x) * ratio, y: y - (y - this._at.y) * ratio };
    this._later();
  }

  _drag(event) {
    const before = this._pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX;
    const dy = event.clientY - before.clientY;
    if (!this._moved && Math.hypot(dx, dy) < 4) return;
    if (!this._moved) this.svg.setPointerCapture(event.pointerId);
    this._moved = true;
    const others = [...this._pointers.values()].filter((other) => other.pointerId !== event.pointerId);
    if (others.length) {
      const [other] = others;
      const far = (a) => Math.max(1, Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY));
      const box = this.svg.getBoundingClientRect();
      this.zoom(far(event) / far(before), other.clientX - box.left, other.clientY - box.top);
    } else {
      this._at = { ...this._at, x: this._at.x + dx, y: this._at.y + dy };
      this._later(false);
    }
    this._pointers.set(event.pointerId, event);
  }

  _release(event) {
    const wasDown = this._pointers.delete(event.pointerId);
    if (!wasDown || this._moved || event.type === "pointercancel") return;
    const id = this._hit(event);
    if (id && event.target.closest?.(".fold")) this.toggle(id);
    else this._choose(id);
  }

  _choose(id) {
    this.choose(id);
    const item = this._resources.get(id);
    this._said.textContent = item ? `${spelled(item.name)}, ${words(item.status, keyOf(item.status, item.held))}` : "";
    this._pick(id);
  }

  _hit(event) {
    const box = this.svg.getBoundingClientRect();
    const x = (event.clientX - box.left - this._at.x) / this._at.k;
    const y = (event.clientY - box.top - this._at.y) / this._at.k;
    return itemAt(this._scene.items, x, y)?.id ?? null;
  }

  _key(event) {
    const moves = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const acts = { "+": () => this.zoom(STEP), "=": () => this.zoom(STEP), "-": () => this.zoom(1 / STEP), 0: () => this.fit() };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) this._walk(...moves[event.key]);
    else if (acts[event.key]) acts[event.key]();
    else if (event.key === "Enter" && this._chosen) this._pick(this._chosen, true);
    else if (event.key === " " && this._chosen) this.toggle(this._chosen);
    else if (event.key === "Escape") this._choose(null);
    else return;
    event.preventDefault();
  }

  /** Choose the next resource in a direction. */
  _walk(dx, dy) {
    const { items } = this._scene;
    if (!items.length) return;
    const from = this._places.get(this._chosen);
    if (!from) {
      this._choose(items[0].id);
      this._reveal(items[0]);
      return;
    }
    const item = itemTowards(items, from, dx, dy);
    if (item) {
      this._choose(item.id);
      this._reveal(item);
    }
  }

  _reveal(place) {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width) return;
    const { k } = this._at;
    const x = place.x * k + this._at.x;
    const y = place.y * k + this._at.y;
    const isInside = x > 0 && y > 0 && x + place.w * k < width && y + place.h * k < height;
    if (!isInside) this._at = { k, x: width / 2 - (place.x + place.w / 2) * k, y: height / 2 - (place.y + place.h / 2) * k };
    this._later();
  }

  _clear() {
    this._drawn.clear();
    this._nodes.replaceChildren();
  }

  /** Draw in the next frame; where it has only moved, what is drawn around the view may do. */
  _later(isChanged = true) {
    this._isChanged ||= isChanged;
    if (!this._frame) this._frame = requestAnimationFrame(() => this._draw());
  }

  _draw() {
    this._frame = 0;
    const { width, height } = this.svg.getBoundingClientRect();
    const { x, y, k } = this._at;
    this._world.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
    const seen = { x0: -x / k, y0: -y / k, x1: (width - x) / k, y1: (height - y) / k };
    const had = this._had;
    if (!this._isChanged && had && seen.x0 >= had.x0 && seen.y0 >= had.y0 && seen.x1 <= had.x1 && seen.y1 <= had.y1) return;
    this._isChanged = false;
    const view = { x0: (-x - MARGIN) / k, y0: (-y - MARGIN) / k, x1: (width - x + MARGIN) / k, y1: (height - y + MARGIN) / k };
    this._had = view;
    const isFar = k < FAR;
    const visible = this._scene.items.filter((i) => i.x < view.x1 && i.x + i.w > view.x0 && i.y < view.y1 && i.y + i.h > view.y0);
    this.svg.classList.toggle("is-far", isFar);
    if (isFar) {
      this._clear();
      this._drawFar(visible);
    } else {
      this._far.replaceChildren();
      this._drawNear(visible);
    }
    this._drawEdges(view);
  }

  /** Draw the resources as plain boxes, those of one state as one path. */
  _drawFar(visible) {
    const paths = new Map();
    for (const item of visible) {
      const resource = this._resources.get(item.id);
      const key = item.box ? "box" : keyOf(resource.status, resource.held);
      const part = `M${item.x} ${item.y}h${item.w}v${item.h}h${-item.w}z`;
      paths.set(key, (paths.get(key) ?? "") + part);
    }
    const chosen = this._places?.get(this._chosen);
    const mark = chosen && s("rect", { class: "ring", x: chosen.x - 8, y: chosen.y - 8, width: chosen.w + 16, height: chosen.h + 16 });
    put(this._far, [...paths].map(([key, d]) => s("path", { class: `far-${key}`, d })), mark);
  }

  _drawNear(visible) {
    const ids = new Set(visible.map((item) => item.id));
    for (const [id, drawn] of this._drawn) {
      if (ids.has(id)) continue;
      drawn.group.remove();
      this._drawn.delete(id);
    }
    for (const item of visible) {
      if (this._drawn.has(item.id)) continue;
      const drawn = this._make(item, this._resources.get(item.id));
      this._drawn.set(item.id, drawn);
      this._nodes.append(drawn.group);
    }
  }

  _make(item, resource) {
    const label = s("text", { x: 28, y: 18 });
    const icon = s("g", { class: "glyph", transform: "translate(8 7) scale(.875)" });
    const group = s("g", { class: "node", transform: `translate(${item.x} ${item.y})` },
      s("title", {}), s("rect", { width: item.w, height: item.h, rx: 5 }), icon, label);
    label.textContent = cut(spelled(resource.name), item.w - ICON - 8 - (resource.hasChild ? FOLD : 0));
    if (resource.hasChild) {
      group.append(s("g", { class: "fold", transform: `translate(${item.w - 22} 6)` },
        s("rect", { width: 16, height: 16, rx: 3 }), s("path", { d: item.box ? "M4 8h8" : "M4 8h8M8 4v8" })));
    }
    group.classList.toggle("box", item.box);
    group.classList.toggle("chosen", item.id === this._chosen);
    const drawn = { group, icon, key: null };
    this._paint(drawn, resource);
    return drawn;
  }

  _paint(drawn, resource) {
    const key = keyOf(resource.status, resource.held);
    const title = `${spelled(resource.name)}\n${spelled(resource.type)}\n${words(resource.status, key)}`;
    if (drawn.key !== key) {
      drawn.group.classList.remove(...Object.keys(STATES));
      drawn.group.classList.add(key);
      put(drawn.icon, shape(key));
      drawn.key = key;
    }
    drawn.group.firstChild.textContent = title;
  }

  _drawEdges(view) {
    let all = "";
    let lit = "";
    for (const { from, to } of this._scene.edges) {
      const a = this._places.get(from);
      const b = this._places.get(to);
      const [x0, x1] = [a.x + a.w, b.x];
      const [y0, y1] = [a.y + Math.min(a.h / 2, 14), b.y + Math.min(b.h / 2, 14)];
      const isOut = Math.max(x0, x1) < view.x0 || Math.min(x0, x1) > view.x1 || Math.max(y0, y1) < view.y0 || Math.min(y0, y1) > view.y1;
      if (isOut) continue;
      const bend = Math.max(16, Math.min(60, Math.abs(x1 - x0) / 2));
      const part = `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`;
      if (from === this._chosen || to === this._chosen) lit += part;
      else all += part;
    }
    this._edges.setAttribute("d", all);
    this._lit.setAttribute("d", lit);
  }
}
