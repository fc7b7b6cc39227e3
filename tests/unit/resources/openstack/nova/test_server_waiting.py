"""How a server is waited for: lists of ids say that it is not ready; it is read once, at the end."""

import collections
import heapq
import typing
import urllib.parse
from collections.abc import Iterator

import pytest
from harness.fake_context import after, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext, SharingContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.contract.views import ReferencedResource, ResourceView
from stoker.resources.openstack.declared import REMOTE
from stoker.resources.openstack.marks import PREFIX, mark_of
from stoker.resources.openstack.polling import FEW, FIRST_PAUSE, STEADY_PAUSE

NOVA = types_of("openstack.nova")

Json = typing.Any
SERVER = NOVA["OS::Nova::Server"]()
KEY = "11111111-2222-4333-8444-555555555555"
BUILDING = f"GET /servers?limit=1000&status=BUILD&tags={mark_of(KEY)}"
STATES = "&".join(f"status={state}" for state in ("ACTIVE", "BUILD", "SHUTOFF", "SUSPENDED", "PAUSED"))
PRESENT = f"GET /servers?limit=1000&{STATES}&tags={mark_of(KEY)}"
NET_ID = "11111111-0000-4000-8000-000000000001"
PORT_ID = "11111111-0000-4000-8000-000000000002"
PORT: Json = {
    "id": PORT_ID,
    "network_id": NET_ID,
    "mac_address": "fa:16:3e:00:00:01",
    "fixed_ips": [{"subnet_id": "sub", "ip_address": "10.0.0.3"}],
}


def _in_stack(scripted: ScriptedService) -> SharingContext:
    """Return the context of a step in a stack that has the port."""
    context = SharingContext(scripted)
    context.referred[PORT_ID] = ReferencedResource("OS::Neutron::Port", {REMOTE: PORT})
    return context


def _server(**fields: Json) -> ResourceView:
    properties = {"flavor": "f", "networks": [{"port": PORT_ID}]}
    return target_of(SERVER, properties, key=KEY, creation_key=KEY, physical_id="s", **fields)


def _has_server(scripted: ScriptedService, status: str, task: str | None = None) -> None:
    server = {"id": "s", "status": status, "OS-EXT-STS:task_state": task, "addresses": {}, "tags": []}
    scripted.answers["GET /servers/s"] = Answer(200, {"server": server})


def _lists(scripted: ScriptedService, request: str, *servers: str) -> None:
    scripted.answers[request] = Answer(200, {"servers": [{"id": server} for server in servers]})


def test_a_server_is_read_once_when_it_is_built(scripted: ScriptedService) -> None:
    """Its network and subnet are read while it is built."""
    _lists(scripted, BUILDING, "s")
    _has_server(scripted, "ACTIVE")
    scripted.answers[f"GET /networks/{NET_ID}"] = Answer(200, {"network": {"id": NET_ID}})
    scripted.answers["GET /subnets/sub"] = Answer(200, {"subnet": {"id": "sub"}})
    scripted.answers["GET /ports?device_id=s"] = Answer(200, {"ports": [PORT]})
    context = _in_stack(scripted)
    progress = {"since": context.now()}
    for _ in range(2):
        step = SERVER.check_create_complete(_server(), progress, context)
        assert isinstance(step, Poll)
        assert step.progress == progress, "there is nothing to store"
    assert scripted.requests == [BUILDING, f"GET /networks/{NET_ID}", "GET /subnets/sub", BUILDING]
    scripted.requests.clear()
    _lists(scripted, BUILDING)
    done = SERVER.check_create_complete(_server(), progress, context)
    assert isinstance(done, Done)
    assert scripted.requests == [BUILDING, "GET /servers/s", "GET /ports?device_id=s"]
    facts = after(_server(), done).data
    assert facts["networks"] == {NET_ID: {"id": NET_ID}}
    assert facts["subnets"] == {"sub": {"id": "sub"}}


def test_a_failure_to_read_ahead_does_not_end_a_creation(scripted: ScriptedService) -> None:
    _lists(scripted, BUILDING, "s")
    scripted.answers[f"GET /networks/{NET_ID}"] = Answer(503, {})
    context = _in_stack(scripted)
    assert isinstance(SERVER.check_create_complete(_server(), {"since": context.now()}, context), Poll)


@pytest.mark.parametrize("status", ["BUILD", "VERIFY_RESIZE"])
def test_a_server_that_the_list_lacks_too_early_is_polled(scripted: ScriptedService, status: str) -> None:
    _lists(scripted, BUILDING)
    _has_server(scripted, status)
    context = _in_stack(scripted)
    assert isinstance(SERVER.check_create_complete(_server(), {"since": context.now()}, context), Poll)


def test_a_server_in_a_bad_state_fails_the_creation(scripted: ScriptedService) -> None:
    _lists(scripted, BUILDING)
    _has_server(scripted, "ERROR")
    context = _in_stack(scripted)
    with pytest.raises(PermanentError, match="Went to status ERROR"):
        SERVER.check_create_complete(_server(), {"since": context.now()}, context)


def test_a_server_without_a_host_says_what_it_has_requested(scripted: ScriptedService) -> None:
    _lists(scripted, BUILDING)
    server = {"id": "s", "status": "ERROR", "fault": {"message": "No valid host was found.", "code": 500}}
    scripted.answers["GET /servers/s"] = Answer(200, {"server": server})
    asked = {
        "flavor": "f",
        "image": "i",
        "availability_zone": "z",
        "scheduler_hints": {"group": "g"},
        "networks": [{"port": PORT_ID}],
    }
    target = target_of(SERVER, asked, key=KEY, creation_key=KEY, physical_id="s")
    context = _in_stack(scripted)
    with pytest.raises(PermanentError) as error:
        SERVER.check_create_complete(target, {"since": context.now()}, context)
    assert (error.value.kind, str(error.value)) == (
        "ResourceInError",
        'Went to status ERROR due to "Message: No valid host was found., Code: 500"; '
        "the server asked for flavor f, image i, availability zone z, server group g",
    )


def test_a_server_is_gone_when_the_list_lacks_it_and_the_service_does_not_know_it(
    scripted: ScriptedService,
) -> None:
    context = ScriptedContext(scripted)
    scripted.answers["DELETE /servers/s"] = Answer(204)
    _lists(scripted, PRESENT, "s")
    target = _server(data={"ports": False, REMOTE: {}})
    step = SERVER.handle_delete(target, context)
    assert isinstance(step, Poll)
    scripted.requests.clear()
    later = SERVER.check_delete_complete(target, step.progress, context)
    assert isinstance(later, Poll)
    assert later.progress == step.progress, "there is nothing to store"
    assert scripted.requests == [PRESENT]
    _lists(scripted, PRESENT)
    assert isinstance(SERVER.check_delete_complete(target, step.progress, context), Done)
    assert scripted.requests == [PRESENT, PRESENT, "GET /servers/s"]


def test_a_server_in_a_bad_state_is_read_until_it_is_gone(scripted: ScriptedService) -> None:
    """The list lacks it from the beginning, so the list says nothing of its deletion."""
    context = ScriptedContext(scripted)
    _lists(scripted, PRESENT)
    _has_server(scripted, "ERROR", "deleting")
    target = _server(data={"ports": False, REMOTE: {}})
    step = SERVER.check_delete_complete(target, {"since": context.now()}, context)
    assert isinstance(step, Poll)
    scripted.requests.clear()
    step = SERVER.check_delete_complete(target, step.progress, context)
    assert isinstance(step, Poll)
    assert PRESENT not in scripted.requests
    _has_server(scripted, "ERROR")
    with pytest.raises(PermanentError, match="delete failed"):
        SERVER.check_delete_complete(target, step.progress, context)


class Project:
    """Servers of a project, of which steps wait for all.

    :ivar built: numbers of those that are built.
    """

    def __init__(self, scripted: ScriptedService, count: int) -> None:
        self._scripted = scripted
        self._count = count
        self.context = SharingContext(scripted)
        self.built: set[int] = set()
        self.tell()

    def tell(self) -> None:
        """Let the service answer as the servers are now."""
        numbers = range(self._count)
        building = [{"id": f"s{number}"} for number in numbers if number not in self.built]
        servers = [
            {"id": f"s{number}", "status": "ACTIVE" if number in self.built else "BUILD", "addresses": {}}
            for number in numbers
        ]
        self._scripted.answers["GET /servers"] = Answer(200, {"servers": building})
        self._scripted.answers["GET /servers/detail"] = Answer(200, {"servers": servers})
        for server in servers:
            self._scripted.answers[f"GET /servers/{server['id']}"] = Answer(200, {"server": server})
        ports = [
            {**PORT, "id": f"p{number}", "device_id": f"s{number}", "fixed_ips": []} for number in numbers
        ]
        self._scripted.answers["GET /ports"] = Answer(200, {"ports": ports})
        self._scripted.answers[f"GET /networks/{NET_ID}"] = Answer(200, {"network": {"id": NET_ID}})

    def poll(self, number: int, since: float) -> Done | Poll:
        """Poll one server."""
        properties = {"flavor": "f", "networks": [{"network": NET_ID}]}
        key = f"{KEY[:-4]}{number:04}"
        target = target_of(SERVER, properties, key=key, creation_key=key, physical_id=f"s{number}")
        step = SERVER.check_create_complete(target, {"since": since}, self.context)
        assert isinstance(step, Done | Poll)
        return step


def test_servers_that_are_built_are_read_together_and_once(scripted: ScriptedService) -> None:
    project = Project(scripted, 100)
    since = project.context.now()
    assert all(isinstance(project.poll(number, since), Poll) for number in range(100))
    project.built = set(range(60))
    project.tell()
    scripted.requests.clear()
    for number in (98, 99):  # Steps of others make the lists.
        project.context.time += STEADY_PAUSE + 0.1
        assert isinstance(project.poll(number, since), Poll)
    paths = [request.partition("?")[0] for request in scripted.requests]
    lists = ["GET /servers", *["GET /servers/detail"] * 2, *["GET /ports"] * 2]
    assert paths == [*lists, "GET /servers"]
    marks = [urllib.parse.unquote(request).count(PREFIX) for request in scripted.requests[1:3]]
    assert sorted(marks) == [20, 40]
    scripted.requests.clear()
    steps = [project.poll(number, since) for number in range(60)]
    assert all(isinstance(step, Done) for step in steps)
    assert scripted.requests == []
    assert steps[7].data is not None
    assert {item["port"] for item in steps[7].data["interfaces"]} == {"p7"}


def test_many_servers_that_are_built_already_share_a_list(scripted: ScriptedService) -> None:
    project = Project(scripted, 100)
    project.built = set(range(100))
    project.tell()
    since = project.context.now()
    assert all(isinstance(project.poll(number, since), Done) for number in range(FEW))
    scripted.requests.clear()
    for number in range(FEW, 100):
        assert isinstance(project.poll(number, since), Done)
    lists = [request for request in scripted.requests if request.startswith("GET /servers?")]
    assert lists == ["GET /servers?limit=1000&status=BUILD"]


def test_a_list_older_than_the_action_says_nothing_of_a_server(scripted: ScriptedService) -> None:
    """The list lacks a server that is created after it."""
    project = Project(scripted, 10)
    project.built = {9}
    project.tell()
    since = project.context.now()
    for number in range(9):
        project.poll(number, since)
    project.context.time += 0.1
    project.built = set()
    project.tell()
    begun = project.context.now()
    scripted.requests.clear()
    assert isinstance(project.poll(9, begun), Poll)
    assert not [request for request in scripted.requests if "/servers" in request]
    project.context.time += STEADY_PAUSE
    project.built = {9}
    project.tell()
    assert isinstance(project.poll(9, begun), Done)


def _requests_of_intervals(scripted: ScriptedService, count: int) -> Iterator[list[str]]:
    """Poll so many servers for half a minute; the requests of each interval, counted at the service.

    They are created one after the other within the first half of it, and none of them is ever complete.
    """
    project = Project(scripted, count)
    context = project.context
    began = context.now()
    polls = [(began + 15 * number / count + FIRST_PAUSE, number) for number in range(count)]
    since = {number: due - FIRST_PAUSE for due, number in polls}
    intervals: dict[int, list[str]] = collections.defaultdict(list)
    scripted.requests.clear()
    while polls[0][0] < began + 30:
        context.time, number = heapq.heappop(polls)
        step = project.poll(number, since[number])
        assert isinstance(step, Poll)
        heapq.heappush(polls, (context.time + step.after, number))
        intervals[int((context.time - began) / FIRST_PAUSE)] += scripted.requests
        scripted.requests.clear()
    yield from intervals.values()


@pytest.mark.full
def test_a_thousand_servers_in_build_cost_as_many_requests_as_ten(scripted: ScriptedService) -> None:
    """Whatever the number, the lists are a steady pause apart, and few requests are beside them."""
    for count in (10, 1000):
        intervals = [
            [request for request in requests if "/networks/" not in request]
            for requests in _requests_of_intervals(scripted, count)
        ]
        assert max(len(requests) for requests in intervals) <= FEW + 2
        lists = [requests.count("GET /servers?limit=1000&status=BUILD") for requests in intervals]
        assert max(lists) == 1
        assert sum(lists) <= 30 / STEADY_PAUSE
        assert {request.partition("?")[0] for requests in intervals for request in requests} == {
            "GET /servers"
        }
        assert len(intervals) > 40
