// Reads the API's answers into the shapes that the views draw.  Pure.

const NESTED = /\/stacks\/[^/]+\/([^/]+)$/;

function linkOf(item, rel) {
  return item.links?.find((link) => link.rel === rel)?.href ?? null;
}

function idIn(href) {
  const found = href && NESTED.exec(new URL(href).pathname);
  return found ? decodeURIComponent(found[1]) : null;
}

/** Return the resources of an answer of `…/graph?nested_depth=`, as the graph takes them. */
export function resourcesOf(graph) {
  const root = graph.stack.id;
  const names = new Map(graph.nested_stacks.map((one) => [one.id, one.name]));
  const found = graph.resources.map((item) => ({
    id: `${item.stack}/${item.name}`,
    name: item.name,
    type: item.type,
    status: item.state,
    reason: item.reason,
    held: item.breakpoint,
    task: item.task,
    stack: item.stack,
    stackName: item.stack === root ? graph.stack.name : (names.get(item.stack) ?? null),
    child: item.nested,
    physical: item.physical_resource_id ?? null,
    updated: item.updated_time,
    requiredBy: item.required_by,
    requires: [],
    parent: null,
  }));
  const byId = new Map(found.map((item) => [item.id, item]));
  const holders = new Map(found.filter((item) => item.child).map((item) => [item.child, item.id]));
  for (const item of found) {
    for (const name of item.requiredBy) byId.get(`${item.stack}/${name}`)?.requires.push(item.id);
    item.parent = item.stack === root ? null : (holders.get(item.stack) ?? null);
  }
  const holding = new Set(found.map((item) => item.parent).filter(Boolean));
  for (const item of found) {
    item.hasChild = holding.has(item.id);
    item.path = item.parent ? `${byId.get(item.parent).path}/${item.name}` : item.name;
  }
  return found;
}

/** Return the events of an answer of `…/events?nested_depth=`, as the timeline takes them. */
export function eventsOf(body, rootId) {
  return body.events.map((item) => {
    const stack = idIn(linkOf(item, "stack"));
    const isStack = item.physical_resource_id === stack && item.resource_name === nameIn(linkOf(item, "stack"));
    return {
      id: item.id,
      key: isStack ? `${stack}/` : `${stack}/${item.resource_name}`,
      name: item.resource_name,
      path: stack === rootId ? "" : (item.stack_name ?? ""),
      stack,
      isStack,
      isRoot: stack === rootId,
      status: item.resource_status,
      reason: item.resource_status_reason ?? "",
      at: item.time ?? item.event_time,
      conductor: item.conductor ?? null,
      attempt: item.attempt ?? null,
      ready: item.ready_time ?? null,
      claimed: item.claimed_time ?? null,
    };
  });
}

function nameIn(href) {
  const parts = href ? new URL(href).pathname.split("/") : [];
  return parts.length > 2 ? decodeURIComponent(parts.at(-2)) : null;
}
