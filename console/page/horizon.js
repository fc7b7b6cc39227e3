// The pages of Horizon that show what a resource is.  Pure.

/** @type {Record<string, (id: string) => string>} */
const PAGES = {
  "OS::Nova::Server": (id) => `project/instances/${id}/`,
  "OS::Nova::KeyPair": (id) => `project/key_pairs/${id}`,
  "OS::Cinder::Volume": (id) => `project/volumes/${id}/`,
  "OS::Neutron::Net": (id) => `project/networks/${id}/detail`,
  "OS::Neutron::ProviderNet": (id) => `project/networks/${id}/detail`,
  "OS::Neutron::Subnet": (id) => `project/networks/subnets/${id}/detail`,
  "OS::Neutron::Port": (id) => `project/networks/ports/${id}/detail`,
  "OS::Neutron::Router": (id) => `project/routers/${id}/`,
  "OS::Neutron::SecurityGroup": (id) => `project/security_groups/${id}/`,
  "OS::Neutron::FloatingIP": () => "project/floating_ips/",
  "OS::Nova::ServerGroup": () => "project/server_groups/",
  "OS::Glance::Image": (id) => `ngdetails/OS::Glance::Image/${id}`,
  "OS::Glance::WebImage": (id) => `ngdetails/OS::Glance::Image/${id}`,
};

/**
 * Return an address below that of Horizon; null: Horizon's own address is not configured.
 *
 * @param {string | null} root
 * @param {string} path
 */
function below(root, path) {
  return root ? new URL(path, root.endsWith("/") ? root : `${root}/`).href : null;
}

/**
 * Return the address of the page of a resource; null: there is none, or the resource does not exist yet.
 *
 * @param {string | null} root address of Horizon.
 * @param {Pick<Resource, "type" | "physical" | "child">} item
 */
export function resourcePage(root, item) {
  if (item.child) return stackPage(root, item.child);
  return item.physical && Object.hasOwn(PAGES, item.type) ? below(root, PAGES[item.type](encodeURIComponent(item.physical))) : null;
}

/**
 * Return the address of the page of a stack, which heat-dashboard has.
 *
 * @param {string | null} root address of Horizon.
 * @param {string} id
 */
export function stackPage(root, id) {
  return below(root, `project/stacks/stack/${encodeURIComponent(id)}/`);
}
