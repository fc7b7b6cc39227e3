// Asks before something is done.

import { button, h } from "./dom.js";

/**
 * An answer to choose: its value, its label and its CSS class.
 *
 * @typedef {[string, string, string]} Choice
 */

/**
 * Ask a question; return the value of the chosen answer, or null.
 *
 * @param {string} title
 * @param {Child} text
 * @param {Choice[]} answers
 * @returns {Promise<string | null>}
 */
export function ask(title, text, answers) {
  return new Promise((resolve) => {
    const close = (/** @type {string | null} */ value) => {
      removeEventListener("hashchange", leave);
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    // Another page has no answer to the question of this one.
    const leave = () => close(null);
    addEventListener("hashchange", leave);
    const dialog = h("dialog", { "aria-label": title, on: { cancel: () => close(null) } },
      h("h2", {}, title), h("p", {}, text),
      h("div", { class: "actions" }, answers.map(([value, label, kind]) => button(label, () => close(value), { class: kind })), button("Back", () => close(null))));
    document.body.append(dialog);
    dialog.showModal();
  });
}
