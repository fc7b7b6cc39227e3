// Reads the API's answers into the shapes that the views draw.  Pure.

const NESTED = /\/stacks\/[^/]+\/([^/]+)$/;

/**
 * @param {EventAnswer} item
 * @param {string} rel
 */
function linkOf(item, rel) {
  return item.links?.find((link) => link.rel === rel)?.href ?? null;
}

/** @param {string | null} href */
function idIn(href) {
  const match = href && NESTED.exec(new URL(href).pathname);
  return match ? decodeURIComponent(match[1]) : null;
}

/**
 * Return the resources of an answer of `…/graph?nested_depth=`, as the graph takes them.
 *
 * @param {GraphAnswer} graph
 */
export function resourcesOf(graph) {
  const root = graph.stack.id;
  const names = new Map(graph.nested_stacks.map((one) => [one.id, one.name]));
  /** @type {Resource[]} */
  const resources = graph.resources.map((item) => ({
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
    hasChild: false,
    path: item.name,
  }));
  const byId = new Map(resources.map((item) => [item.id, item]));
  const holders = new Map(resources.filter((item) => item.child).map((item) => [item.child, item.id]));
  for (const item of resources) {
    for (const name of item.requiredBy) byId.get(`${item.stack}/${name}`)?.requires.push(item.id);
    item.parent = item.stack === root ? null : (holders.get(item.stack) ?? null);
  }
  const holding = new Set(resources.map((item) => item.parent));
  for (const item of resources) {
    item.hasChild = holding.has(item.id);
    if (item.parent) item.path = `${byId.get(item.parent)?.path}/${item.name}`;
  }
  return resources;
}

/**
 * Return the events of an answer of `…/events?nested_depth=`, as the timeline takes them.
 *
 * @param {{events: EventAnswer[]}} body
 * @param {string} rootId
 * @returns {StackEvent[]}
 */
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

/** @param {string | null} href */
function nameIn(href) {
  const parts = href ? new URL(href).pathname.split("/") : [];
  return parts.length > 2 ? decodeURIComponent(parts[parts.length - 2]) : null;
}
