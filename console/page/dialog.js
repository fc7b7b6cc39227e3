// Asks before something is done.

import { button, h } from "./dom.js";

/** Ask a question; return a promise of the value of the chosen answer, or null. `answers` are [value, label, class]. */
export function ask(title, text, answers) {
  return new Promise((resolve) => {
    const close = (value) => {
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    const dialog = h("dialog", { "aria-label": title, on: { cancel: () => close(null) } },
      h("h2", {}, title), h("p", {}, text),
      h("div", { class: "actions" }, answers.map(([value, label, kind]) => button(label, () => close(value), { class: kind })), button("Back", () => close(null))));
    document.body.append(dialog);
    dialog.showModal();
  });
}
