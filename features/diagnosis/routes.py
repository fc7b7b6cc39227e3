"""The routes of what consoles and operators see, and of what operators do with conductors."""

import functools
from collections.abc import Set

from ...api.operations import Operation, Routes
from ...api.paths import ADMIN, STACK, TENANT
from . import console, operators

_NO_QUERY: Set[str] = frozenset()
_operators = functools.partial(Operation, everywhere=True)

ROUTES: Routes = {
    f"{TENANT}/services": {
        "GET": Operation(operators.services, "service:index", shared=_NO_QUERY, name="meta_services")
    },
    f"{ADMIN}/ring": {"GET": _operators(operators.ring, "ring:show", shared=operators.RING_QUERY)},
    f"{ADMIN}/ring/plan": {"POST": _operators(operators.plan, "ring:plan")},
    f"{ADMIN}/ring/rebalance": {"POST": _operators(operators.rebalance, "ring:rebalance")},
    f"{ADMIN}/ring/{{host}}/drain": {"POST": _operators(operators.drain, "ring:drain")},
    f"{ADMIN}/ring/{{host}}/undrain": {"POST": _operators(operators.undrain, "ring:undrain")},
    f"{ADMIN}/conductors/{{host}}": {
        "GET": _operators(operators.conductor, "conductors:show", shared=_NO_QUERY)
    },
    f"{ADMIN}/stack_counts": {"GET": _operators(operators.counts_everywhere, "stacks:global_count")},
    f"{ADMIN}/stuck_stacks": {
        "GET": _operators(operators.stuck_stacks, "stacks:global_stuck", shared=operators.STUCK_QUERY)
    },
    f"{TENANT}/stack_counts": {"GET": Operation(operators.counts, "stacks:count")},
    f"{STACK}/graph": {"GET": Operation(console.graph, "stacks:graph")},
    f"{STACK}/inspect": {"GET": Operation(console.inspect, "stacks:inspect", shared=console.INSPECT_QUERY)},
}
