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

const VIEWS = {
  "": showOverview, stacks: showOverview, stack: showStack, launch: showLaunch, ring: showRing, conductor: showConductor,
};
const THEMES = { auto: "◐ Auto", light: "○ Light", dark: "● Dark" };

const main = document.getElementById("main");
const top = document.getElementById("top");
const notice = document.getElementById("notice");
let settings = null;
let session = null;
let api = null;
let leave = null;
let admin = null;

/** Show a message for a while; an error stays until the next one. */
function say(text, kind = "done") {
  put(notice, text ? h("div", { class: `toast ${kind}` }, h("span", {}, text), button("×", () => put(notice), { "aria-label": "Close" })) : null);
  if (kind === "done") setTimeout(() => notice.textContent.startsWith(text) && put(notice), 6000);
}

/** Put what is chosen on the page into its address, without a step back for the browser. */
function remember(choices) {
  const { parts, query } = routeOf(location.hash);
  const hash = hashOf(parts, { ...Object.fromEntries(query), ...choices });
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** Ask whether the user is an admin, until the API has said so or not. */
async function askWhetherAdmin(asking) {
  try {
    await asking.get("v1/admin/ring", { outside: true });
  } catch (error) {
    if (api === asking && (error.status === 0 || error.status >= 500)) setTimeout(() => askWhetherAdmin(asking), 5000);
    return;
  }
  if (api !== asking) return;
  admin = true;
  header();
  leave?.now?.();
}

function header() {
  const [here] = routeOf(location.hash).parts;
  const link = (href, text, names) => h("a", { href, "aria-current": names.includes(here) ? "page" : null }, text);
  const themes = h("button", { type: "button", class: "quiet", "aria-label": `Theme: ${theme()}`, title: "Theme", on: { click: () => {
    const names = Object.keys(THEMES);
    setTheme(names[(names.indexOf(theme()) + 1) % names.length]);
    themes.textContent = THEMES[theme()];
    themes.setAttribute("aria-label", `Theme: ${theme()}`);
  } } }, THEMES[theme()]);
  put(top,
    h("a", { class: "brand", href: "#/" }, h("img", { src: "icon.svg", alt: "", width: 20, height: 20 }), "Stoker"),
    session ? h("nav", { "aria-label": "Views" }, link("#/", "Stacks", ["", "stacks", "stack"]), link("#/launch", "Launch", ["launch"]),
      admin ? link("#/ring", "Ring", ["ring", "conductor"]) : null) : null,
    h("span", { class: "grow" }), themes, session ? who() : null);
}

function who() {
  const { project, projects, user } = session;
  const current = h("span", { class: "who" }, user ? [named(user), h("span", { class: "faint" }, " in ")] : h("span", { class: "faint wide-only" }, "project "));
  if (projects.length > 1) {
    const select = h("select", { "aria-label": "Project", on: { change: () => change(select.value) } },
      projects.map(({ id, name }) => h("option", { value: id, selected: id === project.id }, name)));
    current.append(select);
  } else current.append(named(project.name));
  return [current, button(user ? "Log out" : "Change", () => exit(), { class: "quiet" })];
}

async function change(id) {
  try {
    enter(await switchProject(session, id));
    location.hash = "#/";
  } catch (error) {
    say(error.message, "error");
    header();
  }
}

function enter(found) {
  session = found;
  save(session);
  api = new Api(session, () => exit("Your login has expired. Log in again; this page stays where it is."));
  admin = null;
  show();
  askWhetherAdmin(api);
}

function exit(why = null) {
  clear();
  session = null;
  api = null;
  if (leave) leave();
  leave = null;
  header();
  showLogin(main, settings, enter, why);
}

function show() {
  if (leave) leave();
  leave = null;
  put(notice);
  if (!session) {
    header();
    showLogin(main, settings, enter);
    return;
  }
  header();
  const { parts: [name, ...parts], query } = routeOf(location.hash);
  const view = VIEWS[name];
  document.title = "Stoker";
  put(main);
  if (!view) {
    put(main, h("h1", { tabindex: "-1" }, "There is no such page"), h("p", {}, h("a", { href: "#/" }, "Show the stacks")));
    return;
  }
  leave = view({ api, main, parts, query, remember, say, session, settings, isAdmin: () => admin !== null, go: (hash) => { location.hash = hash; } }) ?? null;
  main.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

let last = null;

function changed() {
  const { parts: [name, ...parts], query } = routeOf(location.hash);
  // Another tab of the same stack is not another page.
  const here = name === "stack" ? `stack/${parts[0]}/${parts[1]}` : location.hash;
  if (name === "stack" && here === last && leave?.tab) leave.tab(parts[2], query);
  else show();
  last = here;
  header();
}

async function start() {
  applyTheme();
  put(main, h("p", { class: "note", role: "status" }, "Reading the settings of the console …"));
  try {
    settings = await plain("settings");
  } catch (error) {
    put(main, h("h1", { tabindex: "-1" }, "The service does not answer"), h("p", {}, error.message), button("Try again", start));
    return;
  }
  addEventListener("hashchange", changed);
  const kept = load();
  if (kept && (settings.auth === "none") === (kept.token === null)) enter(kept);
  else show();
  const { parts: [name, ...parts] } = routeOf(location.hash);
  last = name === "stack" ? `stack/${parts[0]}/${parts[1]}` : location.hash;
}

start();
