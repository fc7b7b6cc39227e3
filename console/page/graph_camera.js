// Holds which part of the graph is in view.

import { boxOf, boxOfItem, centred, fitted, heightFor, isWithin, zoomed } from "./viewport.js";

const NEAR = 0.8;

/** The view of a scene: it follows the size of its element, until the user moves it. */
export class Camera {
  /**
   * @param {SVGSVGElement} svg
   * @param {(isMoved: boolean) => void} changed is called when something else is in view; with true where it has only moved.
   */
  constructor(svg, changed) {
    this._svg = svg;
    this._changed = changed;
    /** @type {Scene} */
    this._scene = { items: [], edges: [], width: 0, height: 0 };
    this.at = { x: 0, y: 0, k: 1 };
    /** @type {SceneItem | null} what is to be shown in the middle, as soon as the view has a size */
    this._goal = null;
    this._isFitted = false;
    this._width = 0;
    this._size = new ResizeObserver(() => (this._isFitted && Math.abs(this._width - svg.clientWidth) < 2 ? changed(false) : this.fit()));
    this._size.observe(svg);
  }

  /** Stop to follow the size of the element. */
  end() {
    this._size.disconnect();
  }

  /** Return the size of the view. */
  get room() {
    return this._svg.getBoundingClientRect();
  }

  /**
   * Take another scene; the first one is shown as a whole.
   *
   * @param {Scene} scene
   */
  take(scene) {
    this._scene = scene;
    if (!this._isFitted) this.fit();
  }

  /** Show all; the view is as high as that needs, and the window allows. */
  fit() {
    const { width, top } = this.room;
    if (!width || !this._scene.items.length) return;
    const most = Math.max(340, Math.min(innerHeight * 0.8, innerHeight - top - scrollY - 28));
    const height = Math.round(Math.max(300, Math.min(most, heightFor(this._scene, width))));
    this._width = width;
    this._svg.style.height = `${height}px`;
    this._isFitted = true;
    this._move(fitted(this._scene, { width, height }));
    this._reach();
  }

  /**
   * Show an item in the middle, near enough to read it.
   *
   * @param {SceneItem | undefined} item
   */
  goTo(item) {
    this._goal = item ?? null;
    this._reach();
  }

  /**
   * Show a point of the scene in the middle.
   *
   * @param {Point} point
   */
  centre({ x, y }) {
    this._move(centred({ x, y, w: 0, h: 0 }, this.room, this.at.k));
  }

  _reach() {
    const { room } = this;
    if (!this._goal || !this._isFitted || !room.width) return;
    this._move(centred(this._goal, room, Math.max(this.at.k, NEAR)));
    this._goal = null;
  }

  /**
   * Move an item into view where it is not.
   *
   * @param {SceneItem} item
   */
  show(item) {
    const { room } = this;
    if (room.width && !isWithin(boxOfItem(item), boxOf(this.at, room))) this._move(centred(item, room, this.at.k));
  }

  /**
   * @param {number} factor
   * @param {Point} [point] that stays where it is; without one, the middle.
   */
  zoom(factor, point) {
    const { width, height } = this.room;
    this._move(zoomed(this.at, factor, point ?? { x: width / 2, y: height / 2 }));
  }

  /**
   * @param {number} dx pixels
   * @param {number} dy pixels
   */
  move(dx, dy) {
    this.at = { ...this.at, x: this.at.x + dx, y: this.at.y + dy };
    this._changed(true);
  }

  /**
   * Return the point of the scene at a point of the view.
   *
   * @param {Point} point
   */
  pointAt({ x, y }) {
    return { x: (x - this.at.x) / this.at.k, y: (y - this.at.y) / this.at.k };
  }

  /** @param {import("./viewport.js").View} view */
  _move(view) {
    this.at = view;
    this._changed(false);
  }
}
