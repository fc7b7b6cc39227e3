// What can be done with a stack, and with what is held in it.

import { ask } from "./dialog.js";
import { button, h, named, put, spelled } from "./dom.js";
import { glyph } from "./states.js";

/** @type {import("./dialog.js").Choice} */
const STOP = ["cancel_without_rollback", "Stop here", "danger"];
/** @type {import("./dialog.js").Choice} */
const ROLL_BACK = ["cancel_update", "Roll back", "danger"];

/** @type {Record<string, string>} */
const ROLLED_BACK = {
  CREATE: "Roll back deletes the resources that were created, and leaves the stack without any.",
  UPDATE: "Roll back returns the resources to what they were before the update.",
};

/**
 * Return the question that a cancel asks, and its answers: what can be rolled back may be.
 *
 * @param {string} status
 */
export function cancelChoices(status) {
  const back = ROLLED_BACK[status.split("_")[0]];
  const stop = "Stop here lets steps in progress end, starts nothing more, and leaves the stack failed.";
  return back ? { text: `${back} ${stop}`, answers: [ROLL_BACK, STOP] } : { text: stop, answers: [STOP] };
}

/** @typedef {{cleared: {resource_path: string}[]}} Cleared the answer of a continue or a step */

/**
 * Return the actions of a stack: `draw` and `drawHeld` fill their places with buttons.
 *
 * @param {PanelContext} context
 */
export function actionsOf({ data, api, say, go, refresh, open }) {
  let drawnStatus = "";
  let drawnHeld = "";

  /** @param {() => Promise<string>} send sends a request; it returns what is said of its success. */
  async function attempt(send) {
    try {
      say(await send());
    } catch (error) {
      say(/** @type {Error} */ (error).message, "error");
    }
    // The buttons of the state before wait for the new one.
    await refresh();
  }

  /**
   * @param {object} body
   * @param {(answer: Cleared) => string} done
   */
  function act(body, done) {
    return attempt(async () => done(await api.send("POST", data.path("actions"), body)));
  }

  async function cancel() {
    const { text, answers } = cancelChoices(data.stack?.stack_status ?? "");
    const chosen = await ask(`Cancel ${spelled(data.name)}?`, text, answers);
    if (chosen) await act({ [chosen]: null }, () => (chosen === "cancel_update" ? "The stack is being rolled back." : "The stack is being cancelled."));
  }

  async function remove() {
    const text = "All of its resources are deleted, unless their deletion policy keeps them. This cannot be undone.";
    if (await ask(`Delete ${spelled(data.name)}?`, text, [["yes", "Delete the stack", "danger"]])) {
      await attempt(async () => {
        await api.send("DELETE", data.path());
        return "The stack is being deleted.";
      });
    }
  }

  /**
   * @param {Element} place
   * @param {StackAnswer} stack
   */
  function draw(place, stack) {
    const status = stack.stack_status;
    if (status === drawnStatus) return;
    drawnStatus = status;
    const isBusy = status.endsWith("IN_PROGRESS");
    const simple = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ done) => button(label, () => act({ [name]: null }, () => done));
    put(place,
      isBusy && !status.startsWith("DELETE") ? button("Cancel …", cancel) : null,
      !isBusy && status !== "DELETE_COMPLETE" ? [
        button("Update …", () => open("update")),
        simple("check", "Check", "The resources are being checked."),
        status === "SUSPEND_COMPLETE" ? simple("resume", "Resume", "The stack is being resumed.") : simple("suspend", "Suspend", "The stack is being suspended."),
      ] : null,
      status === "DELETE_COMPLETE" ? button("Show the stacks", () => go("#/")) : button("Delete …", remove, { class: "danger" }));
  }

  /** @param {Cleared} answer */
  function cleared(answer) {
    const names = answer.cleared.map((item) => item.resource_path);
    return names.length ? `Continued: ${names.slice(0, 5).map((name) => spelled(name)).join(", ")}${names.length > 5 ? " …" : ""}` : "Nothing was held any more.";
  }

  /**
   * @param {HTMLElement} place
   * @param {StackAnswer} stack
   */
  function drawHeld(place, stack) {
    const held = stack.breakpoints ?? [];
    const text = JSON.stringify(held);
    place.hidden = held.length === 0;
    if (text === drawnHeld) return;
    drawnHeld = text;
    put(place,
      h("div", { class: "title" }, glyph("held"), h("h2", {}, `Held at ${held.length === 1 ? "a breakpoint" : `${held.length} breakpoints`}`), h("span", { class: "grow" }),
        button("Continue all", () => act({ continue: null }, cleared), { class: "main" }), button("Step", () => act({ step: null }, cleared), { title: "Continue, and hold the next resources again" })),
      h("ul", {}, held.slice(0, 50).map((item) => h("li", {}, named(item.resource_path), h("span", { class: "faint" }, item.hook), named(item.resource_type, { class: "name faint" }),
        button("Continue", () => act({ continue: { resources: [item.resource_path], hook: item.hook } }, cleared), { "aria-label": `Continue ${spelled(item.resource_path)}` })))),
      held.length > 50 ? h("p", { class: "faint" }, `and ${held.length - 50} more`) : null);
  }

  return { draw, drawHeld };
}
