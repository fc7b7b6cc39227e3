// Draws the graph of a stack.  Only what is visible is in the page, so that thousands of resources move smoothly.

import { button, h, s, spelled } from "./dom.js";
import { Camera } from "./graph_camera.js";
import { GraphInput } from "./graph_input.js";
import { FAR, Painter, itemsIn, widthOf } from "./graph_paint.js";
import { Minimap } from "./minimap.js";
import { itemAt, itemTowards, sceneOf, shapeOf } from "./scene.js";
import { keyOf, words } from "./states.js";
import { boxOf, isWithin } from "./viewport.js";

const MARGIN = 120;
const STEP = 1.3;

/** A view of a graph. */
export class GraphView {
  /** @param {(id: string | null, isEntered?: boolean) => void} pick is called with the resource that the user chooses. */
  constructor(pick) {
    this._pick = pick;
    /** @type {Map<string, Resource>} */
    this._resources = new Map();
    /** @type {Set<string>} the resources whose nested stacks the user has unfolded */
    this._open = new Set();
    this._isUnfolded = false;
    this._shape = "";
    /** @type {Scene} */
    this._scene = { items: [], edges: [], width: 0, height: 0 };
    /** @type {Map<string, SceneItem>} */
    this._places = new Map();
    /** @type {string | null} */
    this._chosen = null;
    this._isChanged = true;
    /** @type {import("./viewport.js").Box | null} the part of the scene that is painted */
    this._painted = null;
    this._frame = 0;
    this._painter = new Painter();
    this.svg = s("svg", {
      class: "graph", tabindex: "0", role: "application",
      "aria-label": "Graph of the resources. Arrow keys move between resources, Enter shows one, plus and minus zoom, 0 shows all.",
    }, this._painter.element);
    this._spoken = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this._foldAll = button("Unfold all", () => this._toggleAll(), { hidden: true });
    this._map = new Minimap((point) => this._camera.centre(point));
    this.element = h("div", { class: "graphbox" }, this.svg, this._map.element, this._tools(), this._spoken);
    this._camera = new Camera(this.svg, (isMoved) => this._later(!isMoved));
    this._listen();
  }

  _tools() {
    return h("div", { class: "tools", role: "toolbar", "aria-label": "Graph" },
      button("+", () => this._camera.zoom(STEP), { "aria-label": "Zoom in", title: "Zoom in (+)" }),
      button("−", () => this._camera.zoom(1 / STEP), { "aria-label": "Zoom out", title: "Zoom out (−)" }),
      button("Fit", () => this.fit(), { title: "Show all (0)" }), this._foldAll);
  }

  _listen() {
    return new GraphInput({
      svg: this.svg, zoom: (factor, point) => this._camera.zoom(factor, point), fit: () => this.fit(), walk: (dx, dy) => this._walk(dx, dy),
      move: (dx, dy) => this._camera.move(dx, dy),
      click: (point, isFold) => (isFold ? this.toggle(this._idAt(point)) : this._choose(this._idAt(point))),
      doubleClick: (point) => this.toggle(this._idAt(point)), unfold: () => this.toggle(this._chosen), escape: () => this._choose(null),
      enter: () => {
        if (this._chosen) this._pick(this._chosen, true);
      },
    });
  }

  /** Stop to follow the size of the page. */
  end() {
    this._camera.end();
    cancelAnimationFrame(this._frame);
  }

  /**
   * Show resources.
   *
   * @param {Resource[]} resources
   * @param {{isUnfolded?: boolean}} [options] isUnfolded: all nested stacks are unfolded, though not groups.
   */
  show(resources, { isUnfolded = false } = {}) {
    this._resources = new Map(resources.map((item) => [item.id, item]));
    this._isUnfolded = isUnfolded;
    const open = isUnfolded ? new Set([...this._open, ...resources.filter((item) => item.hasChild && !item.members).map((item) => item.id)]) : this._open;
    const shape = shapeOf(resources, open);
    if (shape !== this._shape) {
      this._shape = shape;
      this._scene = sceneOf(resources, open, widthOf);
      this._places = new Map(this._scene.items.map((item) => [item.id, item]));
      this._painter.clear();
      this._camera.take(this._scene);
    }
    this._map.take(this._scene, this._resources);
    this._foldAll.hidden = isUnfolded || !resources.some((item) => item.hasChild);
    this._foldAll.textContent = this._open.size ? "Fold all" : "Unfold all";
    this._painter.repaint(this._resources);
    this._later();
  }

  /** Show the same resources, folded or unfolded in another way. */
  _reshow() {
    this.show([...this._resources.values()], { isUnfolded: this._isUnfolded });
  }

  /** Return the resource that is chosen; null: none. */
  get chosen() {
    return this._chosen;
  }

  /**
   * Choose a resource; null: none.
   *
   * @param {string | null} id
   */
  choose(id) {
    this._chosen = id;
    this._painter.mark(id);
    this._later();
  }

  /**
   * Choose a resource, unfold the nested stacks that it is in, and move it into view.
   *
   * @param {string} id
   */
  reveal(id) {
    const holderOf = (/** @type {string} */ inner) => this._resources.get(this._resources.get(inner)?.parent ?? "");
    for (let holder = holderOf(id); holder; holder = holderOf(holder.id)) this._open.add(holder.id);
    this._reshow();
    this.choose(id);
    this._camera.goTo(this._places.get(id));
  }

  /**
   * Unfold the nested stack of a resource, or a group, or fold it.
   *
   * @param {string | null} id
   */
  toggle(id) {
    const item = this._resources.get(id ?? "");
    if (id === null || !item?.hasChild || (this._isUnfolded && !item.members)) return;
    if (!this._open.delete(id)) this._open.add(id);
    this._reshow();
  }

  _toggleAll() {
    const holders = [...this._resources.values()].filter((item) => item.hasChild).map((item) => item.id);
    this._open = new Set(this._open.size ? [] : holders);
    this._reshow();
    this.fit();
  }

  /** Show all. */
  fit() {
    this._camera.fit();
  }

  /** @param {string | null} id */
  _choose(id) {
    this.choose(id);
    const item = this._resources.get(id ?? "");
    this._spoken.textContent = item ? `${spelled(item.name)}, ${words(item.status, keyOf(item.status, item.held))}` : "";
    this._pick(id);
  }

  /** @param {Point} point of the view. */
  _idAt(point) {
    const { x, y } = this._camera.pointAt(point);
    return itemAt(this._scene.items, x, y)?.id ?? null;
  }

  /**
   * Choose the next resource in a direction.
   *
   * @param {number} dx
   * @param {number} dy
   */
  _walk(dx, dy) {
    const { items } = this._scene;
    const from = this._places.get(this._chosen ?? "");
    const item = from ? itemTowards(items, from, dx, dy) : items[0];
    if (!item) return;
    this._choose(item.id);
    this._camera.show(item);
  }

  /** Draw in the next frame; where it has only moved, what is painted around the view may do. */
  _later(isChanged = true) {
    this._isChanged ||= isChanged;
    this._frame ||= requestAnimationFrame(() => this._draw());
  }

  _draw() {
    this._frame = 0;
    const { at, room } = this._camera;
    const { x, y, k } = at;
    this._painter.element.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
    this._map.frame(boxOf(at, room));
    if (!this._isChanged && this._painted && isWithin(boxOf(at, room), this._painted)) return;
    this._isChanged = false;
    const box = boxOf(at, room, MARGIN);
    this._painted = box;
    const isFar = k < FAR;
    this.svg.classList.toggle("is-far", isFar);
    this._painter.paintItems(itemsIn(this._scene.items, box), this._resources, { isFar, chosen: this._places.get(this._chosen ?? "") });
    this._painter.paintEdges(this._scene.edges, this._places, box, this._chosen);
  }
}
