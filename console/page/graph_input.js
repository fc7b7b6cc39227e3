// What a user does with the graph: pointers, the wheel and the keyboard, in the words of the graph's view.

const CLICK = 4;
const WHEEL = 0.0015;
const STEP = 1.3;

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/**
 * What the view of a graph can be told; points are pixels of the view.
 *
 * @typedef {object} Target
 * @property {SVGSVGElement} svg
 * @property {(factor: number, point?: Point) => void} zoom
 * @property {(dx: number, dy: number) => void} move
 * @property {() => void} fit
 * @property {(point: Point, isFold: boolean) => void} click
 * @property {(point: Point) => void} doubleClick
 * @property {(dx: number, dy: number) => void} walk
 * @property {() => void} enter
 * @property {() => void} unfold
 * @property {() => void} escape
 */

/** Listens to the user for a view. */
export class GraphInput {
  /** @param {Target} target */
  constructor(target) {
    this._target = target;
    /** @type {Map<number, PointerEvent>} the pointers that are down, by their ids, as they were seen last */
    this._pointers = new Map();
    this._hasMoved = false;
    const { svg } = target;
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      target.zoom(Math.exp(-event.deltaY * WHEEL), this._pointOf(event));
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      this._pointers.set(event.pointerId, event);
      this._hasMoved = false;
    });
    svg.addEventListener("pointermove", (event) => this._drag(event));
    svg.addEventListener("pointerup", (event) => this._release(event));
    svg.addEventListener("pointercancel", (event) => this._pointers.delete(event.pointerId));
    svg.addEventListener("keydown", (event) => this._key(event));
    svg.addEventListener("dblclick", (event) => target.doubleClick(this._pointOf(event)));
  }

  /**
   * @param {MouseEvent} event
   * @returns {Point}
   */
  _pointOf(event) {
    const box = this._target.svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** @param {PointerEvent} event */
  _drag(event) {
    const before = this._pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX;
    const dy = event.clientY - before.clientY;
    if (!this._hasMoved && Math.hypot(dx, dy) < CLICK) return;
    if (!this._hasMoved) this._target.svg.setPointerCapture(event.pointerId);
    this._hasMoved = true;
    const other = [...this._pointers.values()].find((pointer) => pointer.pointerId !== event.pointerId);
    if (other) this._pinch(before, event, other);
    else this._target.move(dx, dy);
    this._pointers.set(event.pointerId, event);
  }

  /**
   * Zoom as two pointers move apart or together.
   *
   * @param {PointerEvent} before
   * @param {PointerEvent} event
   * @param {PointerEvent} other
   */
  _pinch(before, event, other) {
    const distance = (/** @type {PointerEvent} */ pointer) => Math.max(1, Math.hypot(pointer.clientX - other.clientX, pointer.clientY - other.clientY));
    this._target.zoom(distance(event) / distance(before), this._pointOf(other));
  }

  /** @param {PointerEvent} event */
  _release(event) {
    const wasDown = this._pointers.delete(event.pointerId);
    if (!wasDown || this._hasMoved) return;
    const isFold = event.target instanceof Element && event.target.closest(".fold") !== null;
    this._target.click(this._pointOf(event), isFold);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = this._target;
    /** @type {Record<string, () => void>} */
    const acts = {
      "+": () => target.zoom(STEP), "=": () => target.zoom(STEP), "-": () => target.zoom(1 / STEP), 0: () => target.fit(),
      Enter: () => target.enter(), " ": () => target.unfold(), Escape: () => target.escape(),
    };
    if (event.key in ARROWS) target.walk(...ARROWS[event.key]);
    else if (event.key in acts) acts[event.key]();
    else return;
    event.preventDefault();
  }
}
