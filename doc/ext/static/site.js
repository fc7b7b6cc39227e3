// The search of Sphinx leaves numbers out of a query; `SearchWithNumbers` puts them into the index.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const parse = Search._parseQuery;
  Search._parseQuery = (query) => {
    const parsed = parse(query);
    const [, searched, , highlighted] = parsed;
    for (const word of splitQuery(query).filter((part) => /^\d+$/.test(part))) {
      searched.add(word);
      highlighted.add(word);
    }
    return parsed;
  };
});
