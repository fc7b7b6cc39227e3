// The address behind #: the parts of a page's path, and what is chosen on it.  Pure.

/**
 * Return the parts and the choices of an address such as #/stack/shop/4cf6/graph?resource=web; one that cannot be decoded leads to the start.
 *
 * @param {string} hash
 */
export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  try {
    return { parts: path.split("/").map(decodeURIComponent), query: new URLSearchParams(query) };
  } catch {
    return { parts: [""], query: new URLSearchParams() };
  }
}

/**
 * Return the address of a page; choices that are null or "" are left out.
 *
 * @param {(string | undefined)[]} parts
 * @param {Choices} [choices]
 */
export function hashOf(parts, choices = {}) {
  const query = new URLSearchParams(Object.entries(choices).flatMap(([name, value]) => (value ? [[name, value]] : []))).toString();
  const path = parts.filter((part, index) => part || index < parts.length - 1).map((part) => encodeURIComponent(part ?? "")).join("/");
  return `#/${path}${query ? `?${query}` : ""}`;
}
