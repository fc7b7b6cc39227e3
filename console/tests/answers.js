// Answers of the API, for tests of what the console makes of them.

const ROOT = "http://127.0.0.1:8004/proxy/v1/p/stacks";

/** The id of the stack. */
export const SHOP = "4cf65f84";

/** The id of the nested stack of its resource `web`. */
export const WEB = "bb70bad5";

function resource(stack, name, state, requiredBy, more = {}) {
  return {
    stack, name, type: "OS::Heat::TestResource", state, reason: "state changed", required_by: requiredBy, nested: null, breakpoint: null,
    task: null, updated_time: "2026-11-24T02:12:38.508284Z", ...more,
  };
}

/** Return the answer of `…/graph`: a stack that is held before `schema`, whose `web` has a nested stack. */
export function graphOf({ schema = "INIT_COMPLETE", breakpoint = "pre-create" } = {}) {
  return {
    stack: { id: SHOP, name: "shop" },
    nested_stacks: [{ id: WEB, name: "shop-web-7eed", parent: SHOP }],
    resources: [
      resource(SHOP, "network", "CREATE_COMPLETE", ["schema", "web"]),
      resource(SHOP, "schema", schema, ["page"], { breakpoint, task: { action: "create", state: "held", attempt: 0 } }),
      resource(SHOP, "web", "CREATE_COMPLETE", ["page"], { nested: WEB, type: "OS::Heat::ResourceGroup" }),
      resource(SHOP, "page", "INIT_COMPLETE", []),
      resource(WEB, "0", "CREATE_COMPLETE", ["1"]),
      resource(WEB, "1", "CREATE_COMPLETE", []),
    ],
  };
}

const STACKS = { [SHOP]: "shop", [WEB]: "shop-web-7eed" };
let numbers = 0;

/** Return an event as the API has it; `second` is that of 02:12. */
export function event(stack, name, status, second, more = {}) {
  numbers += 1;
  return {
    id: `event-${numbers}`, resource_name: name, physical_resource_id: null, resource_status: status, resource_status_reason: "state changed",
    event_time: "2026-11-24T02:12:00Z", time: `2026-11-24T02:12:${second.toFixed(3).padStart(6, "0")}Z`, stack_name: STACKS[stack],
    links: [{ rel: "stack", href: `${ROOT}/${STACKS[stack]}/${stack}` }], attempt: null, conductor: null, ready_time: null, claimed_time: null,
    ...more,
  };
}

/** Return an event of a stack itself. */
export function stackEvent(stack, status, second, reason) {
  return event(stack, STACKS[stack], status, second, { physical_resource_id: stack, resource_status_reason: reason });
}
