"""OS::Neutron::ExtraRoute and OS::Neutron::ExtraRouteSet: routes of a router."""

from collections.abc import Iterable, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import (
    Done,
    ImpliedDependency,
    PermanentError,
    Property,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..attached import AttachedType, Link, claimed_link
from ..declared import REMOTE
from ..names import resolve
from ..service import RemoteNotFound
from .schema import SHOWN

ROUTER = Custom(check_name="neutron.router")


class _Routes(AttachedType):
    """Base of the types of routes that a router has besides those to its own networks.

    The service adds and removes several at once, and leaves the others alone.
    """

    service = "network"
    path = "/routers"
    item = "router"
    missing = "network: the router has not all routes of {0}"
    identity = "the router and the routes; Stoker first stores that it has none of them"
    attributes_schema = {"show": SHOWN["show"]}

    def routes(self, link: Link) -> Sequence[JsonMap]:
        """Return the routes of a link."""
        raise NotImplementedError

    def router(self, link: Link) -> str:
        """Return the id of the router of a link."""
        raise NotImplementedError

    def stored_link(self, target: ResourceView, context: StepContext) -> Link:
        claimed = claimed_link(target)
        if REMOTE not in target.data and claimed is not None:
            return claimed
        return self.link(target.properties, context)

    def attach(self, link: Link, target: ResourceView, context: StepContext) -> Json:
        """Add the routes.

        :raises PermanentError: the router has one of them already.
        """
        routes = self.routes(link)
        present = self.get(self.service_for(context), self.router(link))["routes"]
        self.check_new(routes, present)
        return self._change("add", self.router(link), routes, context)

    def check_new(self, routes: Iterable[JsonMap], present: Sequence[Json]) -> None:
        """Check that a router has none of the routes.

        :raises PermanentError: it has one.
        """
        for route in routes:
            if route in present:
                text = f"Route duplicates an existing route: {route['destination']} to {route['nexthop']}"
                raise PermanentError(text, kind="Error")

    def find(self, link: Link, context: StepContext) -> Json:
        """Return the router, if it has all routes."""
        try:
            router = self.get(self.service_for(context), self.router(link))
        except RemoteNotFound:
            return None
        return router if all(route in router["routes"] for route in self.routes(link)) else None

    def detach(self, link: Link, context: StepContext) -> bool:
        """Remove the routes; those that are not there are no error."""
        self._change("remove", self.router(link), self.routes(link), context)
        return False

    def _change(self, verb: str, router: str, routes: Sequence[JsonMap], context: StepContext) -> Json:
        """Add or remove routes, if there are any, and return the router."""
        if not routes:
            return self.get(self.service_for(context), router)
        body = {self.item: {"routes": list(routes)}}
        return self.service_for(context).put(f"{self.path}/{router}/{verb}_extraroutes", body)[self.item]


class ExtraRoute(_Routes):
    """A route of a router; the physical id is ``ROUTER:DESTINATION:NEXTHOP``, as in Heat."""

    type_name = "OS::Neutron::ExtraRoute"
    support_status = SupportStatus("UNSUPPORTED", message="Use this resource at your own risk.")
    description = "A static route of a router."
    implied_dependencies = (
        ImpliedDependency("router_id", "OS::Neutron::RouterInterface", "router|router_id"),
    )
    properties_schema = {
        "router_id": Property("string", "Name or id of the router.", required=True, constraints=(ROUTER,)),
        "destination": Property("string", "Destination network, as CIDR.", required=True),
        "nexthop": Property("string", "IP address of the next hop.", required=True),
    }

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        """Return the physical id, and its parts."""
        router = resolve(context, "neutron.router", properties["router_id"])
        destination = str(properties["destination"])
        nexthop = str(properties["nexthop"])
        return (f"{router}:{destination}:{nexthop}", router, destination, nexthop)

    def router(self, link: Link) -> str:
        return link[1]

    def routes(self, link: Link) -> Sequence[JsonMap]:
        """Return the one route."""
        return [{"destination": link[2], "nexthop": link[3]}]


class ExtraRouteSet(_Routes):
    """Routes of a router, whose id is the physical id, as in Heat."""

    type_name = "OS::Neutron::ExtraRouteSet"
    support_status = SupportStatus(version="14.0.0")
    description = "A set of static routes of a router."
    implied_dependencies = (ImpliedDependency("router", "OS::Neutron::RouterInterface", "router|router_id"),)
    properties_schema = {
        "router": Property("string", "Name or id of the router.", required=True, constraints=(ROUTER,)),
        "routes": Property(
            "list",
            "Static routes to add to the router.",
            default=[],
            update_allowed=True,
            schema=Property(
                "map",
                "Static route.",
                schema={
                    "destination": Property(
                        "string",
                        "Destination network, as CIDR.",
                        required=True,
                        constraints=(Custom(check_name="net_cidr"),),
                    ),
                    "nexthop": Property(
                        "string",
                        "IP address of the next hop.",
                        required=True,
                        constraints=(Custom(check_name="ip_addr"),),
                    ),
                },
            ),
        ),
    }

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        """Return the router, and each route as ``DESTINATION=NEXTHOP``."""
        router = resolve(context, "neutron.router", properties["router"])
        routes = sorted(
            {f"{route['destination']}={route['nexthop']}" for route in properties["routes"] or ()}
        )
        return (router, *routes)

    def router(self, link: Link) -> str:
        return link[0]

    def routes(self, link: Link) -> Sequence[JsonMap]:
        pairs = (route.partition("=") for route in link[1:])
        return [{"destination": destination, "nexthop": nexthop} for destination, _, nexthop in pairs]

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether it was never made, or the router is gone; an update adds what is missing."""
        if target.physical_id is None:
            return super().needs_replace_failed(target, context)
        try:
            self.get(self.service_for(context), target.physical_id)
        except RemoteNotFound:
            return True
        return False

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Remove the routes that are left over, and add those that are new."""
        before = self.link(target.previous, context)
        after = self.link(target.properties, context)
        router = self.router(after)
        new = [route for route in self.routes(after) if route not in self.routes(before)]
        if target.attempt == 1:  # A repetition may meet those that the first attempt has added.
            self.check_new(new, self.get(self.service_for(context), router)["routes"])
        left_over = [route for route in self.routes(before) if route not in self.routes(after)]
        self._change("remove", router, left_over, context)
        return Done(data={REMOTE: self._change("add", router, new, context)})
