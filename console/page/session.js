// Who uses the console: kept for this tab only, and forgotten with it.

const KEY = "stoker.session";
const THEME = "stoker.theme";

/**
 * Return the session of this tab; null: nobody has logged in.
 *
 * @returns {Session | null}
 */
export function load() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  } catch {
    return null;
  }
}

/**
 * Keep a session.
 *
 * @param {Session} session
 */
export function save(session) {
  sessionStorage.setItem(KEY, JSON.stringify(session));
}

/** Forget the session. */
export function clear() {
  sessionStorage.removeItem(KEY);
}

/** @typedef {"auto" | "light" | "dark"} Theme */

/**
 * Return the chosen theme: light, dark, or auto as the system has it.
 *
 * @returns {Theme}
 */
export function theme() {
  const chosen = localStorage.getItem(THEME);
  return chosen === "light" || chosen === "dark" ? chosen : "auto";
}

/**
 * Choose a theme, and apply it.
 *
 * @param {Theme} name
 */
export function setTheme(name) {
  localStorage.setItem(THEME, name);
  applyTheme();
}

/** Apply the chosen theme to the page. */
export function applyTheme() {
  if (theme() === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme();
}
