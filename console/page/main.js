// Starts the console, and brings each address (the part behind #) to its view.

import { Api, plain } from "./api.js";
import { button, h, named, put } from "./dom.js";
import { showLogin, switchProject } from "./login.js";
import { showConductor } from "./conductor.js";
import { showLaunch } from "./launch.js";
import { showOverview } from "./overview.js";
import { showRing } from "./ring.js";
import { hashOf, routeOf } from "./route.js";
import { applyTheme, clear, load, save, setTheme, theme } from "./session.js";
import { showStack } from "./stack.js";

/** @type {Map<string, (context: PageContext) => Leave | void>} */
const VIEWS = new Map(Object.entries({
  "": showOverview, stacks: showOverview, stack: showStack, launch: showLaunch, ring: showRing, conductor: showConductor,
}));
/** @type {[import("./session.js").Theme, string][]} */
const THEMES = [["auto", "◐ Auto"], ["light", "○ Light"], ["dark", "● Dark"]];
const ASK_AGAIN = 5000;
const SHOWN = 6000;

/**
 * Return an element of index.html.
 *
 * @param {string} id
 */
function place(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** The console: its header, and the view of the present address. */
class App {
  /** @param {Settings} settings */
  constructor(settings) {
    this._settings = settings;
    this._main = place("main");
    this._top = place("top");
    this._notice = place("notice");
    /** @type {Session | null} */
    this._session = null;
    /** @type {Api | null} */
    this._api = null;
    /** @type {Leave | null} ends the present view */
    this._leave = null;
    this._isAdmin = false;
    /** @type {string | null} the page that is shown: another tab of the same stack is none of its own */
    this._page = null;
    addEventListener("hashchange", () => this._changed());
    const session = load();
    if (session && (settings.auth === "none") === (session.token === null)) this._enter(session);
    else this._show();
  }

  /**
   * Show a message for a while; an error stays until the next one.
   *
   * @param {string} text
   * @param {"done" | "error"} kind
   */
  _say(text, kind = "done") {
    put(this._notice, h("div", { class: `toast ${kind}` }, h("span", {}, text), button("×", () => put(this._notice), { "aria-label": "Close" })));
    if (kind === "done") setTimeout(() => this._notice.textContent?.startsWith(text) && put(this._notice), SHOWN);
  }

  _drawHeader() {
    const [page] = routeOf(location.hash).parts;
    const link = (/** @type {string} */ href, /** @type {string} */ text, /** @type {string[]} */ pages) => h("a", { href, "aria-current": pages.includes(page) ? "page" : null }, text);
    put(this._top,
      h("a", { class: "brand", href: "#/" }, h("img", { src: "icon.svg", alt: "", width: 20, height: 20 }), "Stoker"),
      this._session ? h("nav", { "aria-label": "Views" }, link("#/", "Stacks", ["", "stacks", "stack"]), link("#/launch", "Launch", ["launch"]),
        this._isAdmin ? link("#/ring", "Ring", ["ring", "conductor"]) : null) : null,
      h("span", { class: "grow" }), themeSwitch(), this._session ? this._who(this._session) : null);
  }

  /** @param {Session} session */
  _who({ project, projects, user }) {
    const current = h("span", { class: "who" }, user ? [named(user), h("span", { class: "faint" }, " in ")] : h("span", { class: "faint wide-only" }, "project "));
    if (projects.length > 1) {
      /** @type {HTMLSelectElement} */
      const select = h("select", { "aria-label": "Project", on: { change: () => { select.disabled = true; this._switch(select.value); } } },
        projects.map(({ id, name }) => h("option", { value: id, selected: id === project.id }, name)));
      current.append(select);
    } else current.append(named(project.name));
    return [current, button(user ? "Log out" : "Change", () => this._exit(), { class: "quiet" })];
  }

  /** @param {string} id of a project of the user. */
  async _switch(id) {
    if (!this._session) return;
    try {
      this._enter(await switchProject(this._session, id));
      location.hash = "#/";
    } catch (error) {
      this._say(/** @type {Error} */ (error).message, "error");
      this._drawHeader();
    }
  }

  /** @param {Session} session */
  _enter(session) {
    save(session);
    const api = new Api(session, () => this._exit("Your login has expired. Log in again; this page stays where it is."));
    this._session = session;
    this._api = api;
    this._isAdmin = session.isAdmin ?? false;
    this._show();
    this._askWhetherAdmin(api);
  }

  /** @param {string | null} why the user has to log in again. */
  _exit(why = null) {
    clear();
    this._session = null;
    this._api = null;
    this._show(why);
  }

  /**
   * Ask whether the user is an admin, until the API has said so or not.
   *
   * @param {Api} api
   */
  async _askWhetherAdmin(api) {
    try {
      await api.get("v1/admin/ring", { outside: true });
    } catch (error) {
      const { status } = /** @type {import("./api.js").ApiError} */ (error);
      if (this._api !== api) return;
      if (status === 0 || status >= 500) setTimeout(() => this._askWhetherAdmin(api), ASK_AGAIN);
      else this._noteAdmin(api.session, false);
      return;
    }
    if (this._api === api) this._noteAdmin(api.session, true);
  }

  /**
   * Keep in the session whether the user is an admin: a page that is loaded again has its links from the start.
   *
   * @param {Session} session
   * @param {boolean} isAdmin
   */
  _noteAdmin(session, isAdmin) {
    if (this._isAdmin === isAdmin) return;
    this._isAdmin = isAdmin;
    save({ ...session, isAdmin });
    this._drawHeader();
    this._leave?.now?.();
  }

  /** @param {string | null} why the user has to log in again. */
  _show(why = null) {
    this._leave?.();
    this._leave = null;
    put(this._notice);
    this._drawHeader();
    const { parts: [name, ...parts], query } = routeOf(location.hash);
    this._page = pageOf(name, parts);
    if (!this._session || !this._api) {
      showLogin(this._main, this._settings, (session) => this._enter(session), why);
      return;
    }
    document.title = "Stoker";
    put(this._main);
    const view = VIEWS.get(name);
    if (!view) {
      put(this._main, h("h1", { tabindex: "-1" }, "There is no such page"), h("p", {}, h("a", { href: "#/" }, "Show the stacks")));
      return;
    }
    this._leave = view({
      api: this._api, main: this._main, parts, query, remember, settings: this._settings, isAdmin: () => this._isAdmin,
      say: (text, kind) => this._say(text, kind), go: (hash) => { location.hash = hash; },
    }) ?? null;
    this._main.querySelector("h1")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  _changed() {
    const { parts: [name, ...parts], query } = routeOf(location.hash);
    if (this._leave?.tab && pageOf(name, parts) === this._page) {
      this._leave.tab(parts[2], query);
      this._drawHeader();
    } else this._show();
  }
}

/**
 * Return the name of a page: another tab of the same stack is not another page.
 *
 * @param {string} name
 * @param {string[]} parts
 */
function pageOf(name, parts) {
  return name === "stack" ? hashOf([name, parts[0], parts[1]]) : hashOf([name, ...parts]);
}

/**
 * Put what is chosen on the page into its address, without a step back for the browser.
 *
 * @param {Choices} choices
 */
function remember(choices) {
  const { parts, query } = routeOf(location.hash);
  const hash = hashOf(parts, { ...Object.fromEntries(query), ...choices });
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

function themeSwitch() {
  const label = () => THEMES.find(([name]) => name === theme())?.[1] ?? "";
  /** @type {HTMLButtonElement} */
  const control = h("button", { type: "button", class: "quiet", "aria-label": `Theme: ${theme()}`, title: "Theme", on: { click: () => {
    const index = THEMES.findIndex(([name]) => name === theme());
    setTheme(THEMES[(index + 1) % THEMES.length][0]);
    control.textContent = label();
    control.setAttribute("aria-label", `Theme: ${theme()}`);
  } } }, label());
  return control;
}

async function start() {
  applyTheme();
  const main = place("main");
  put(main, h("p", { class: "note", role: "status" }, "Reading the settings of the console …"));
  try {
    return new App(await plain("settings"));
  } catch (error) {
    put(main, h("h1", { tabindex: "-1" }, "The service does not answer"), h("p", {}, /** @type {Error} */ (error).message), button("Try again", start));
    return null;
  }
}

start();
