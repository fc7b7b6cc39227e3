// A small picture of the whole graph, with the part that is in view: a click or a drag there moves it.

import { put, s } from "./dom.js";
import { statePaths } from "./graph_paint.js";
import { isWithin } from "./viewport.js";

/** The map of a scene; it is there while a part of the scene is out of view. */
export class Minimap {
  /** @param {(point: Point) => void} goTo is called with the point of the scene that is to be in the middle. */
  constructor(goTo) {
    this._window = s("rect", { class: "window" });
    this._items = s("g", {});
    this._scene = { width: 0, height: 0 };
    this.element = s("svg", { class: "minimap", "aria-hidden": "true" }, this._items, this._window);
    const go = (/** @type {PointerEvent} */ event) => {
      const inverse = this.element.getScreenCTM()?.inverse();
      if (!event.buttons || !inverse) return;
      event.preventDefault();
      goTo({ x: inverse.a * event.clientX + inverse.e, y: inverse.d * event.clientY + inverse.f });
    };
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      go(event);
    });
    this.element.addEventListener("pointermove", go);
  }

  /**
   * Draw the resources of a scene.
   *
   * @param {Scene} scene
   * @param {Map<string, Resource>} resources
   */
  take({ items, width, height }, resources) {
    this._scene = { width, height };
    this.element.setAttribute("viewBox", `0 0 ${Math.max(1, width)} ${Math.max(1, height)}`);
    put(this._items, [...statePaths(items, resources)].map(([key, d]) => s("path", { class: `far-${key}`, d })));
  }

  /**
   * Show which part of the scene is in view.
   *
   * @param {import("./viewport.js").Box} box
   */
  frame(box) {
    const { width, height } = this._scene;
    this.element.classList.toggle("whole", isWithin({ x0: 0, y0: 0, x1: width, y1: height }, box));
    const [x0, y0, x1, y1] = [Math.max(0, box.x0), Math.max(0, box.y0), Math.min(width, box.x1), Math.min(height, box.y1)];
    for (const [name, value] of Object.entries({ x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0) })) {
      this._window.setAttribute(name, value.toFixed(0));
    }
  }
}
