// Asks who the user is: by password or token of Keystone's, or for a project where nobody is authenticated.

import { plain } from "./api.js";
import { button, freshId, h, named, put } from "./dom.js";

/**
 * Make a labelled text field.
 *
 * @param {string} label
 * @param {Props} [props]
 * @param {Child} [help]
 */
export function field(label, props = {}, help = null) {
  return fieldOf(label, h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...props }), help);
}

/**
 * Give an input its label.
 *
 * @template {HTMLElement} T
 * @param {string} label
 * @param {T} input
 * @param {Child} [help]
 */
export function fieldOf(label, input, help = null) {
  const id = freshId("field");
  input.id = id;
  const note = help ? h("small", { id: `${id}-help` }, help) : null;
  if (note) input.setAttribute("aria-describedby", note.id);
  return { input, element: h("div", { class: "field" }, h("label", { for: id }, label), input, note) };
}

/**
 * @param {any} answer of a login.
 * @returns {Session}
 */
function sessionOf(answer) {
  return {
    token: answer.token, expires: answer.expires_at, user: answer.user, roles: answer.roles,
    project: answer.project, projects: answer.projects,
  };
}

/** @typedef {(session: Session) => void} Enter takes the session of a user who has logged in */

/**
 * Return a session for another project of the same user.
 *
 * @param {Session} session
 * @param {string} id
 */
export async function switchProject(session, id) {
  return sessionOf(await plain("login", { token: session.token, project_id: id }));
}

/**
 * Show the login.
 *
 * @param {Element} place
 * @param {Settings} settings
 * @param {Enter} enter
 * @param {string | null} why the user is asked again.
 */
export function showLogin(place, settings, enter, why = null) {
  const problem = h("p", { class: "problem", role: "alert" }, why);
  const card = h("section", { class: "card login" }, h("h1", { tabindex: "-1" }, "Stoker"));
  put(place, card);
  if (settings.auth === "none") byProject(card, settings, enter, problem);
  else byKeystone(card, enter, problem);
  card.querySelector("input")?.focus();
}

/**
 * @param {Element} card
 * @param {Settings} settings
 * @param {Enter} enter
 * @param {Element} problem
 */
function byProject(card, settings, enter, problem) {
  const project = field("Project", { value: settings.project, required: true }, "This service does not ask who you are.");
  const form = h("form", { on: { submit: (event) => {
    event.preventDefault();
    const id = project.input.value.trim();
    if (id) enter({ token: null, user: null, roles: [], project: { id, name: id }, projects: [] });
  } } }, project.element, problem, h("button", { type: "submit", class: "main" }, "Open"));
  card.append(form);
}

/**
 * @param {Element} card
 * @param {Enter} enter
 * @param {Element} problem
 */
function byKeystone(card, enter, problem) {
  const name = field("User", { autocomplete: "username", name: "username", required: true });
  const password = field("Password", { type: "password", autocomplete: "current-password", name: "password", required: true });
  const domain = field("Domain of the user", { placeholder: "default" });
  const project = field("Project", { placeholder: "your default project" }, "Without one, you choose among yours.");
  const token = field("Token", { type: "password", required: true }, "For example from: openstack token issue -f value -c id");
  const byPassword = h("div", {}, name.element, password.element, project.element, domain.element);
  const byToken = h("div", { hidden: true }, token.element);
  let isToken = false;
  const submit = h("button", { type: "submit", class: "main" }, "Log in");
  /** @type {HTMLButtonElement} */
  const other = button("Use a token instead", () => {
    isToken = !isToken;
    byPassword.hidden = isToken;
    byToken.hidden = !isToken;
    for (const { input } of [name, password]) input.required = !isToken;
    token.input.required = isToken;
    other.textContent = isToken ? "Use a password instead" : "Use a token instead";
    (isToken ? token : name).input.focus();
  }, { class: "link" });
  token.input.required = false;

  /** @param {object} body */
  async function send(body) {
    submit.disabled = true;
    problem.textContent = "";
    try {
      const session = sessionOf(await plain("login", body));
      if (session.project) enter(session);
      else if (session.projects.length === 1) enter(await switchProject(session, session.projects[0].id));
      else choose(card, session, enter, problem);
    } catch (error) {
      problem.textContent = /** @type {Error} */ (error).message;
    } finally {
      submit.disabled = false;
    }
  }

  card.append(h("form", { on: { submit: (event) => {
    event.preventDefault();
    if (isToken) send({ token: token.input.value.trim() });
    else {
      send({
        username: name.input.value, password: password.input.value,
        ...(domain.input.value && { user_domain: domain.input.value, project_domain: domain.input.value }),
        ...(project.input.value && { project: project.input.value }),
      });
    }
  } } }, byPassword, byToken, problem, h("div", { class: "actions" }, submit, other)));
}

/**
 * @param {Element} card
 * @param {Session} session
 * @param {Enter} enter
 * @param {Element} problem
 */
function choose(card, session, enter, problem) {
  put(card, h("h1", { tabindex: "-1" }, "Choose a project"));
  if (!session.projects.length) card.append(h("p", {}, "You have a role in no project. Ask an admin of your cloud for one."));
  card.append(h("ul", { class: "choices" }, session.projects.map((project) => h("li", {}, button(named(project.name), async () => {
    try {
      enter(await switchProject(session, project.id));
    } catch (error) {
      problem.textContent = /** @type {Error} */ (error).message;
    }
  })))), problem);
  card.querySelector("button")?.focus();
}
