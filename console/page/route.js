// The address behind #: the parts of a page's path, and what is chosen on it.  Pure.

/** Return {parts, query} of an address such as #/stack/shop/4cf6/graph?resource=web; one that cannot be decoded leads to the start. */
export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  try {
    return { parts: path.split("/").map(decodeURIComponent), query: new URLSearchParams(query) };
  } catch {
    return { parts: [""], query: new URLSearchParams() };
  }
}

/** Return the address of a page; choices that are null or "" are left out. */
export function hashOf(parts, choices = {}) {
  const query = new URLSearchParams(Object.entries(choices).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  const path = parts.filter((part, index) => part || index < parts.length - 1).map(encodeURIComponent).join("/");
  return `#/${path}${query.size ? `?${query}` : ""}`;
}
