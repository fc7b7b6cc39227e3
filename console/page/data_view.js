// Shows data together with the truth about it: that it is being read, could not be read, is empty, or is not up to date.

import { button, h, put, prose } from "./dom.js";
import { sentenceOf, viewOf } from "./view_state.js";

/** A part of the page that shows what some sources have brought. */
export class DataView {
  /**
   * @param {object} parts
   * @param {string} parts.subject names what it shows, with its article: "the stacks".
   * @param {import("./live.js").Source<any>[]} parts.sources are the reads that it needs.
   * @param {HTMLElement} parts.body is the element of the data; it is hidden while there is none.
   * @param {(...values: any[]) => void} parts.draw fills the body; it gets the values of the sources, when one of them has changed.
   * @param {(...values: any[]) => boolean} [parts.isEmpty] returns whether the values leave nothing to show.
   * @param {() => Child} [parts.empty] returns what is said then.
   * @param {() => boolean} [parts.isMoving] returns whether it looks different a moment later though nothing has changed.
   * @param {() => void} parts.retry reads again.
   */
  constructor({ subject, sources, body, draw, isEmpty = () => false, empty = () => "", isMoving = () => false, retry }) {
    this.subject = subject;
    this.sources = sources;
    this.body = body;
    this._draw = draw;
    this._isEmpty = isEmpty;
    this._empty = empty;
    this._isMoving = isMoving;
    this._retry = retry;
    this._note = h("div", { class: "note", hidden: true });
    this._nothing = h("div", { class: "empty", hidden: true });
    this.element = h("div", { class: "view" }, this._note, this._nothing, body);
    this._text = h("span", {});
    /** @type {unknown[] | null} */
    this._drawn = null;
    /** @type {string | null} */
    this._said = null;
    /** @type {import("./view_state.js").ViewState["phase"]} */
    this.phase = "loading";
    this.update();
  }

  get values() {
    return this.sources.map((source) => source.value);
  }

  /**
   * Show what the sources say now.
   *
   * @param {object} [options]
   * @param {boolean} [options.isForced] draws the values though none has changed.
   * @param {boolean} [options.isSilent] leaves it to another view to say that the data is stale.
   */
  update({ isForced = false, isSilent = false } = {}) {
    const { values } = this;
    const isRead = values.every((value) => value !== undefined);
    const isEmpty = isRead && this._isEmpty(...values);
    this._tell(isEmpty, isSilent);
    this.body.hidden = !isRead || isEmpty;
    this._nothing.hidden = !isEmpty;
    if (isEmpty) put(this._nothing, this._empty());
    if (this.body.hidden) return;
    if (!isForced && !this._isMoving() && this._drawn?.every((value, index) => value === values[index])) return;
    this._drawn = values;
    this._draw(...values);
  }

  /**
   * @param {boolean} isEmpty
   * @param {boolean} isSilent
   */
  _tell(isEmpty, isSilent) {
    const now = Date.now();
    const view = viewOf(this.sources.map((source) => source.state), () => isEmpty, now);
    this.phase = view.phase;
    this.element.dataset.phase = view.phase;
    this.element.setAttribute("aria-busy", String(view.phase === "loading"));
    this._say(view.phase === "stale" && isSilent ? null : sentenceOf(view, this.subject, now), view.phase);
  }

  /**
   * @param {string | null} sentence
   * @param {string} phase
   */
  _say(sentence, phase) {
    if (sentence === this._said) return;
    // An alert is read aloud once, not each time that its seconds have changed.
    const isNew = this._note.dataset.phase !== phase || this._note.hidden;
    this._said = sentence;
    this._note.hidden = sentence === null;
    if (isNew && sentence !== null) {
      this._note.dataset.phase = phase;
      this._text = h("span", {});
      put(this._note, h("p", { role: phase === "loading" ? "status" : "alert" }, this._text), phase === "loading" ? null : button("Try again", () => this._retry()));
    }
    put(this._text, prose(sentence));
  }
}
