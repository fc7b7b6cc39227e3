// What can be done with a stack, and with what is held in it.

import { ask } from "./dialog.js";
import { button, h, named, put, spelled } from "./dom.js";
import { glyph } from "./states.js";

const STOP = ["cancel_without_rollback", "Stop here", "danger"];
const ROLL_BACK = ["cancel_update", "Roll back", "danger"];

/** Return the question that a cancel asks, and its answers: what can be rolled back may be. */
export function cancelChoices(status) {
  const action = status.split("_")[0];
  const back = {
    CREATE: "Roll back deletes the resources that were created, and leaves the stack without any.",
    UPDATE: "Roll back returns the resources to what they were before the update.",
  }[action];
  const stop = "Stop here lets steps in progress end, starts nothing more, and leaves the stack failed.";
  return back ? { text: `${back} ${stop}`, answers: [ROLL_BACK, STOP] } : { text: stop, answers: [STOP] };
}

/** Return the actions of a stack: `draw` and `drawHeld` fill their places with buttons. */
export function actionsOf({ data, api, say, go, refresh, open }) {
  let shown = "";
  let shownHeld = "";

  async function act(body, done) {
    try {
      const answer = await api.send("POST", data.path("actions"), body);
      say(done(answer));
    } catch (error) {
      say(error.message, "error");
    }
    refresh();
  }

  async function cancel() {
    const { text, answers } = cancelChoices(data.stack.stack_status);
    const chosen = await ask(`Cancel ${spelled(data.name)}?`, text, answers);
    if (chosen) await act({ [chosen]: null }, () => (chosen === "cancel_update" ? "The stack is being rolled back." : "The stack is being cancelled."));
  }

  async function remove() {
    const text = "All of its resources are deleted, unless their deletion policy keeps them. This cannot be undone.";
    if (await ask(`Delete ${spelled(data.name)}?`, text, [["yes", "Delete the stack", "danger"]])) {
      try {
        await api.send("DELETE", data.path());
        say("The stack is being deleted.");
      } catch (error) {
        say(error.message, "error");
      }
      refresh();
    }
  }

  function draw(place, stack) {
    const status = stack.stack_status;
    if (status === shown) return;
    shown = status;
    const isBusy = status.endsWith("IN_PROGRESS");
    const simple = (name, label, done) => button(label, () => act({ [name]: null }, () => done));
    put(place,
      isBusy && !status.startsWith("DELETE") ? button("Cancel …", cancel) : null,
      !isBusy && status !== "DELETE_COMPLETE" ? [
        button("Update …", () => open("update")),
        simple("check", "Check", "The resources are being checked."),
        status === "SUSPEND_COMPLETE" ? simple("resume", "Resume", "The stack is being resumed.") : simple("suspend", "Suspend", "The stack is being suspended."),
      ] : null,
      status === "DELETE_COMPLETE" ? button("Show the stacks", () => go("#/")) : button("Delete …", remove, { class: "danger" }));
  }

  function cleared(answer) {
    const names = answer.cleared.map((item) => item.resource_path);
    return names.length ? `Continued: ${names.slice(0, 5).map(spelled).join(", ")}${names.length > 5 ? " …" : ""}` : "Nothing was held any more.";
  }

  function drawHeld(place, stack) {
    const found = stack.breakpoints ?? [];
    const text = JSON.stringify(found);
    place.hidden = found.length === 0;
    if (text === shownHeld) return;
    shownHeld = text;
    put(place,
      h("div", { class: "title" }, glyph("held"), h("h2", {}, `Held at ${found.length === 1 ? "a breakpoint" : `${found.length} breakpoints`}`), h("span", { class: "grow" }),
        button("Continue all", () => act({ continue: null }, cleared), { class: "main" }), button("Step", () => act({ step: null }, cleared), { title: "Continue, and hold the next resources again" })),
      h("ul", {}, found.slice(0, 50).map((item) => h("li", {}, named(item.resource_path), h("span", { class: "faint" }, item.hook), named(item.resource_type, { class: "name faint" }),
        button("Continue", () => act({ continue: { resources: [item.resource_path], hook: item.hook } }, cleared), { "aria-label": `Continue ${spelled(item.resource_path)}` })))),
      found.length > 50 ? h("p", { class: "faint" }, `and ${found.length - 50} more`) : null);
  }

  return { draw, drawHeld, act, cleared };
}
