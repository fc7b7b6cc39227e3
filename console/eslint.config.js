// The style of the console's modules: `make check` runs ESLint with it.

import { createRequire } from "node:module";

// What is installed is in .venv/node, not next to this file.
const js = createRequire(new URL("../.venv/node/", import.meta.url))("@eslint/js");

const BROWSER = [
  "AbortSignal", "DOMException", "Element", "HTMLElement", "Node", "ResizeObserver", "URL", "URLSearchParams", "addEventListener", "removeEventListener", "cancelAnimationFrame", "clearInterval", "clearTimeout", "document",
  "fetch", "history", "innerHeight", "localStorage", "location", "requestAnimationFrame", "scrollTo", "scrollY", "sessionStorage", "setInterval", "setTimeout",
];
const NODE = ["URL", "setImmediate", "structuredClone"];

const readonly = (names) => Object.fromEntries(names.map((name) => [name, "readonly"]));

export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    languageOptions: { ecmaVersion: 2023, sourceType: "module" },
    rules: {
      // Each ?. and ?? counts as a branch, though it is none for a reader.
      "complexity": ["error", 14],
      "eqeqeq": "error",
      "max-depth": ["error", 4],
      "max-lines": ["error", 300],
      "max-params": ["error", 5],
      "no-else-return": "error",
      "no-implicit-coercion": "error",
      "no-implied-eval": "error",
      "no-param-reassign": "error",
      "no-restricted-properties": ["error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "write"].map((property) => ({ property, message: "Texts of users become text nodes: see dom.js." }))],
      "no-shadow": "error",
      "no-unused-expressions": ["error", { allowShortCircuit: true }],
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
  { files: ["**/page/**"], languageOptions: { globals: readonly(BROWSER) } },
  { files: ["**/tests/**", "**/*.config.js"], languageOptions: { globals: readonly(NODE) } },
];
