// The part of the graph that is in view: a place and a scale, and how they change.  Pure.

const LEAST = 0.02;
const MOST = 2.5;
const TOP = 1.1;
const EDGE = 40;

/** @typedef {{x: number, y: number, k: number}} View the place of the scene's origin in the view, in pixels, and the scale */

/** @typedef {{width: number, height: number}} Room */

/** @typedef {{x0: number, y0: number, x1: number, y1: number}} Box a part of the scene */

/**
 * Return the height that a view of some width needs to show all of a scene, without its scale being above that of a text.
 *
 * @param {Room} scene
 * @param {number} width
 */
export function heightFor(scene, width) {
  return scene.height * Math.min(TOP, (width - EDGE) / scene.width) + 96;
}

/**
 * Return the view that shows all of a scene.
 *
 * @param {Room} scene
 * @param {Room} room
 * @returns {View}
 */
export function fitted(scene, { width, height }) {
  const k = Math.max(LEAST, Math.min(TOP, (width - EDGE) / scene.width, (height - EDGE) / scene.height));
  return { k, x: (width - scene.width * k) / 2, y: (height - scene.height * k) / 2 };
}

/**
 * Return a view that is zoomed around a point of it.
 *
 * @param {View} view
 * @param {number} factor
 * @param {Point} point
 * @returns {View}
 */
export function zoomed(view, factor, point) {
  const k = Math.max(LEAST, Math.min(MOST, view.k * factor));
  const ratio = k / view.k;
  return { k, x: point.x - (point.x - view.x) * ratio, y: point.y - (point.y - view.y) * ratio };
}

/**
 * Return a view of some scale that has an item in its middle.
 *
 * @param {Point & {w: number, h: number}} item
 * @param {Room} room
 * @param {number} k
 * @returns {View}
 */
export function centred(item, { width, height }, k) {
  return { k, x: width / 2 - (item.x + item.w / 2) * k, y: height / 2 - (item.y + item.h / 2) * k };
}

/**
 * Return the part of the scene that a view shows, and `margin` pixels around it.
 *
 * @param {View} view
 * @param {Room} room
 * @param {number} margin
 * @returns {Box}
 */
export function boxOf({ x, y, k }, { width, height }, margin = 0) {
  return { x0: (-x - margin) / k, y0: (-y - margin) / k, x1: (width - x + margin) / k, y1: (height - y + margin) / k };
}

/**
 * Return whether a part of the scene is within another.
 *
 * @param {Box} inner
 * @param {Box} outer
 */
export function isWithin(inner, outer) {
  return inner.x0 >= outer.x0 && inner.y0 >= outer.y0 && inner.x1 <= outer.x1 && inner.y1 <= outer.y1;
}

/**
 * Return whether two parts of the scene have something in common.
 *
 * @param {Box} one
 * @param {Box} other
 */
export function doMeet(one, other) {
  return one.x0 < other.x1 && one.x1 > other.x0 && one.y0 < other.y1 && one.y1 > other.y0;
}

/**
 * Return the part of the scene that an item takes.
 *
 * @param {Point & {w: number, h: number}} item
 * @returns {Box}
 */
export function boxOfItem(item) {
  return { x0: item.x, y0: item.y, x1: item.x + item.w, y1: item.y + item.h };
}
