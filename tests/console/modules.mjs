// Imports modules of the console, as a browser does.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** The folder of the console's files. */
export const STATIC = new URL("../../api/pages/static/", import.meta.url);

// Node takes a .js file for CommonJS where no package.json says otherwise.  The console has none, for each file of its folder is
// served; so a copy beside one is imported.  Hooks and options that would do without differ between the releases of Node.
const copy = fs.mkdtempSync(path.join(os.tmpdir(), "stoker-console-"));
process.on("exit", () => fs.rmSync(copy, { recursive: true }));
fs.writeFileSync(path.join(copy, "package.json"), '{"type": "module"}');
for (const name of fs.readdirSync(STATIC)) {
  if (name.endsWith(".js")) fs.copyFileSync(new URL(name, STATIC), path.join(copy, name));
}

/** Return what a module exports. */
export function load(name) {
  return import(pathToFileURL(path.join(copy, name)).href);
}
