// Shows data together with the truth about it: that it is being read, could not be read, is empty, or is not up to date.

import { button, h, put, prose } from "./dom.js";
import { sentenceOf, viewOf } from "./view_state.js";

/** A part of the page that shows what some sources have brought. */
export class DataView {
  /**
   * @param subject what it shows, with its article: "the stacks".
   * @param sources the reads that it needs.
   * @param body the element of the data; it is hidden while there is none.
   * @param draw fills the body; it is called with the values of the sources, when one of them has changed.
   * @param isEmpty returns whether the values leave nothing to show.
   * @param empty returns what is said then.
   * @param isMoving returns whether it looks different a moment later though nothing has changed.
   * @param retry reads again.
   */
  constructor({ subject, sources, body, draw, isEmpty = () => false, empty = () => "", isMoving = () => false, retry }) {
    Object.assign(this, { subject, sources, body, _draw: draw, _isEmpty: isEmpty, _empty: empty, _isMoving: isMoving, _retry: retry });
    this._note = h("div", { class: "note", hidden: true });
    this._nothing = h("div", { class: "empty", hidden: true });
    this.element = h("div", { class: "view" }, this._note, this._nothing, body);
    this._drawn = null;
    this._said = null;
    this.phase = null;
    this.update();
  }

  get values() {
    return this.sources.map((source) => source.value);
  }

  /**
   * Show what the sources say now.
   *
   * @param isForced draw the values though none has changed.
   * @param isSilent somebody else says already that the data is stale.
   */
  update({ isForced = false, isSilent = false } = {}) {
    const now = Date.now();
    const { values } = this;
    const isKnown = values.every((value) => value !== undefined);
    const isEmpty = isKnown && this._isEmpty(...values);
    const view = viewOf(this.sources.map((source) => source.state), () => isEmpty, now);
    const { phase } = view;
    this.phase = phase;
    this.element.dataset.phase = phase;
    this.element.setAttribute("aria-busy", String(phase === "loading"));
    this._say(phase === "stale" && isSilent ? null : sentenceOf(view, this.subject, now), phase);
    this.body.hidden = !isKnown || isEmpty;
    this._nothing.hidden = !isEmpty;
    if (isEmpty) put(this._nothing, this._empty());
    if (this.body.hidden) return;
    if (!isForced && !this._isMoving() && this._drawn?.every((value, index) => value === values[index])) return;
    this._drawn = values;
    this._draw(...values);
  }

  _say(sentence, phase) {
    if (sentence === this._said) return;
    // An alert is read aloud once, not each time that its seconds have changed.
    const isNew = this._note.dataset.phase !== phase || this._note.hidden;
    this._said = sentence;
    this._note.hidden = sentence === null;
    if (sentence === null) return put(this._note);
    if (isNew) {
      this._note.dataset.phase = phase;
      this._text = h("span", {});
      put(this._note, h("p", { role: phase === "loading" ? "status" : "alert" }, this._text), phase === "loading" ? null : button("Try again", () => this._retry()));
    }
    return put(this._text, prose(sentence));
  }
}
