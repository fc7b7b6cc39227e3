"""The deletion of a whole balancer by one request, in place of one for each part and its turn.

A cascade deletes all that is below the balancer.  So it is for a stack that is being deleted, and only while

* nothing keeps the balancer, nor any of the parts that it has now: all are of resources that will be deleted;
* nothing but parts is still to be deleted before the balancer.  A server that uses its address, say, comes
  first; parts that come before the server are deleted one by one.

A balancer that has failed serves nobody, and refuses the deletion of single parts.  So the order does not
count there.
"""

from collections.abc import Iterator, Mapping

from ....shapes import JsonMap
from ...contract import DeletionView, ResourceView, StepContext
from ..polling import STEADY_PAUSE
from ..service import RemoteNotFound, Service
from .state import BALANCERS, PROVISIONED, ReadState

BALANCER_TYPE = "OS::Octavia::LoadBalancer"
PART_TYPES = frozenset(
    f"OS::Octavia::{name}"
    for name in ("HealthMonitor", "L7Policy", "L7Rule", "Listener", "Pool", "PoolMember")
)


class Tree(ReadState):
    """A balancer with its parts, as they were read.

    :ivar path: the balancer's path.
    :ivar ids: ids of the balancer and of all its parts.
    """

    def __init__(self, path: str, status: str, ids: frozenset[str]) -> None:
        super().__init__(status)
        self.path = path
        self.ids = ids

    def has_grown(self, service: Service) -> bool:
        """Return whether the balancer has got parts since it was read, which may be a while ago.

        :raises RemoteNotFound: it is gone.
        """
        return not _read(self.path, service).ids <= self.ids


def tree_to_delete(target: ResourceView, service: Service, context: StepContext) -> Tree | None:
    """Return the balancer that is deleted with a part of it; None: the part is deleted alone.

    :param target: the resource of the part, which is being deleted.
    """
    deletions = {deletion.number: deletion for deletion in context.deletions()}
    certain_ids = {deletion.physical_id for deletion in deletions.values() if deletion.is_certain}
    for balancer in deletions.values():
        if balancer.type != BALANCER_TYPE or balancer.physical_id in (None, target.physical_id):
            continue
        tree = _shared(str(balancer.physical_id), service, context)
        if tree is None or target.physical_id not in tree.ids:
            continue
        if not tree.ids <= certain_ids:
            return None
        is_in_order = tree.status in PROVISIONED.bad or _is_last(balancer, deletions)
        return tree if is_in_order else None
    return None


def _is_last(balancer: DeletionView, deletions: Mapping[int, DeletionView]) -> bool:
    """Return whether all that is to be deleted before the balancer is parts."""
    predecessors: dict[int, list[DeletionView]] = {}
    for deletion in deletions.values():
        for number in deletion.successors:
            predecessors.setdefault(number, []).append(deletion)
    visited = {balancer.number}
    ahead = [balancer]
    while ahead:
        for deletion in predecessors.get(ahead.pop().number, ()):
            if deletion.type not in PART_TYPES:
                return False
            if deletion.number not in visited:
                visited.add(deletion.number)
                ahead.append(deletion)
    return True


def _shared(balancer_id: str, service: Service, context: StepContext) -> Tree | None:
    """Return the balancer with its parts, which all steps of the project share; None: it is gone."""
    path = f"{BALANCERS}/{balancer_id}"

    def read() -> Tree | None:
        try:
            return _read(path, service)
        except RemoteNotFound:
            return None

    return context.shared(("tree", path), read, STEADY_PAUSE)


def _read(path: str, service: Service) -> Tree:
    """Return the balancer with its parts.

    :raises RemoteNotFound: it is gone.
    """
    balancer = service.get(path)["loadbalancer"]
    return Tree(path, PROVISIONED.of(balancer), frozenset(_ids(balancer, service)))


def _ids(balancer: JsonMap, service: Service) -> Iterator[str]:
    """Yield the ids of a balancer and of all its parts.

    They come from lists: the service's tree of states has neither policies nor pools without a listener.
    """
    balancer_id = str(balancer["id"])
    yield balancer_id
    for pool in service.list_all("/lbaas/pools", "pools", loadbalancer_id=balancer_id):
        yield pool["id"]
        yield from (member["id"] for member in pool["members"])
        if monitor_id := pool.get("healthmonitor_id"):  # Octavia leaves it out where there is none.
            yield monitor_id
    listeners = service.list_all("/lbaas/listeners", "listeners", loadbalancer_id=balancer_id)
    yield from (listener["id"] for listener in listeners)
    policy_ids = {policy["id"] for listener in listeners for policy in listener["l7policies"]}
    yield from policy_ids
    if policy_ids:
        for policy in service.list_all("/lbaas/l7policies", "l7policies"):
            if policy["id"] in policy_ids:
                yield from (rule["id"] for rule in policy["rules"])
