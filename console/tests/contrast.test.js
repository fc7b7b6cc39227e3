// Each text can be read: WCAG's contrast of 4.5:1, in both themes.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";



const CSS = fs.readFileSync(new URL("../page/console.css", import.meta.url), "utf8");
const STATES = ["ok", "run", "bad", "held", "wait", "gone", "off"];

/** Return the colours of a theme: the hexadecimal variables of the block that begins with the selector. */
function colours(selector) {
  const start = CSS.indexOf(`${selector} {`);
  assert.ok(start >= 0, selector);
  return new Map([...CSS.slice(start, CSS.indexOf("}", start)).matchAll(/--([\w-]+): (#[\da-f]+);/g)].map(([, name, value]) => [name, value]));
}

/** Return the relative luminance of a colour, as WCAG 2.2 defines it. */
function luminance(colour) {
  const digits = colour.length === 4 ? [...colour.slice(1)].map((digit) => digit + digit).join("") : colour.slice(1);
  const [red, green, blue] = digits.match(/../g).map((pair) => Number.parseInt(pair, 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const PAIRS = [
  ...STATES.flatMap((key) => [[key, `${key}-bg`], [key, "panel"], ["ink", `${key}-bg`], ["soft", `${key}-bg`]]),
  ...["ink", "soft", "link"].flatMap((name) => [[name, "panel"], [name, "bg"]]),
  ["ink", "sel"], ["accent-ink", "accent"],
];

for (const [theme, selector] of [["light", ":root"], ["dark", ':root[data-theme="dark"]'], ["dark by the system", ':root:not([data-theme="light"])']]) {
  test(`texts of the ${theme} theme have a contrast of 4.5:1`, () => {
    const values = colours(selector);
    const weak = PAIRS.map(([text, ground]) => [text, ground, contrast(values.get(text), values.get(ground))]).filter(([, , ratio]) => ratio < 4.5);
    assert.deepEqual(weak.map(([text, ground, ratio]) => `${text} on ${ground}: ${ratio.toFixed(2)}`), []);
  });
}
