"""Events of a stack and of a resource, with Heat's filters and paging."""

import re
import urllib.parse

import pytest
from client.serving import Json, Service, fault
from harness.templates import chain

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
EXACT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
STORY = [
    ("pair", "CREATE_IN_PROGRESS"),
    ("r0", "CREATE_IN_PROGRESS"),
    ("r0", "CREATE_COMPLETE"),
    ("r1", "CREATE_IN_PROGRESS"),
    ("r1", "CREATE_COMPLETE"),
    ("pair", "CREATE_COMPLETE"),
]
BY_TYPE = [item for item in STORY if item[0] == "pair"] + [item for item in STORY if item[0] != "pair"]
"""The type of the stack's own events is OS::Heat::Stack."""


@pytest.fixture(scope="module")
def path(service: Service) -> str:
    return service.created("events", "pair", chain(2))


def listed(service: Service, path: str, **query: Json) -> list[Json]:
    """The events, the oldest first unless the query says otherwise."""
    if "sort_keys" not in query:
        query = {"sort_dir": "asc", **query}
    events: list[Json] = service.get(f"{path}/events?{urllib.parse.urlencode(query, doseq=True)}")["events"]
    return events


def story(events: list[Json]) -> list[tuple[str, str]]:
    return [(item["resource_name"], item["resource_status"]) for item in events]


def test_events_are_listed_in_their_order(service: Service, path: str) -> None:
    assert story(listed(service, path)) == STORY
    assert story(listed(service, path, sort_dir="desc")) == STORY[::-1]


@pytest.mark.parametrize("query", ["", "?sort_keys=links,colour", "?sort_dir=desc"])
def test_the_newest_events_come_first(service: Service, path: str, query: str) -> None:
    assert story(service.get(f"{path}/events{query}")["events"]) == STORY[::-1]


def test_a_listed_event_has_heats_fields(service: Service, path: str) -> None:
    item = listed(service, path)[2]
    links = {link["rel"]: link["href"] for link in item.pop("links")}
    resource = f"{service.url}{path}/resources/r0"
    assert links == {
        "self": f"{resource}/events/{item['id']}",
        "resource": resource,
        "stack": service.url + path,
    }
    assert ISO.fullmatch(item.pop("event_time"))
    assert item.pop("physical_resource_id").startswith("pair-r0-")
    assert re.fullmatch("[0-9a-f-]{36}", item.pop("id"))
    exact = [item.pop(name) for name in ("ready_time", "claimed_time", "time")]
    assert exact == sorted(exact)
    assert all(EXACT.fullmatch(moment) for moment in exact)
    assert item.pop("conductor") in ("conductor-1", "conductor-2")
    assert item == {
        "attempt": 1,
        "resource_name": "r0",
        "logical_resource_id": "r0",
        "resource_status": "CREATE_COMPLETE",
        "resource_status_reason": "state changed",
    }


def test_a_stacks_own_event_bears_its_id(service: Service, path: str) -> None:
    first = listed(service, path)[0]
    assert first["physical_resource_id"] == path.rsplit("/", 1)[1]
    assert first["resource_status_reason"] == "Stack CREATE started"


def test_a_shown_event_also_has_its_type_and_properties(service: Service, path: str) -> None:
    for item in listed(service, path):
        link = item["links"][0]["href"]
        event = service.get(link)["event"]
        assert event["resource_properties"] is not None
        assert event["resource_type"] in ("OS::Heat::TestResource", "OS::Heat::Stack")
        assert {key: event[key] for key in item} == item


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"resource_name": "r0"}, STORY[1:3]),
        ({"resource_name": ["r0", "r1"]}, STORY[1:5]),
        ({"resource_status": "COMPLETE"}, [STORY[2], STORY[4], STORY[5]]),
        ({"resource_status": "FAILED"}, []),
        ({"resource_action": "CREATE"}, STORY),
        ({"resource_action": "DELETE"}, []),
        ({"resource_type": "OS::Heat::TestResource"}, STORY[1:5]),
        ({"resource_name": "r1", "resource_status": "COMPLETE"}, [STORY[4]]),
        ({"limit": 2}, STORY[:2]),
        ({"limit": 0}, []),
        ({"limit": 2, "sort_dir": "desc"}, STORY[:3:-1]),
        ({"sort_keys": "event_time"}, STORY),
        ({"sort_keys": "resource_type"}, BY_TYPE),
        ({"sort_keys": "resource_type,event_time", "sort_dir": "desc"}, BY_TYPE[::-1]),
        ({"nested_depth": 2}, STORY),
    ],
)
def test_filters_and_limits(service: Service, path: str, query: Json, expected: Json) -> None:
    assert story(listed(service, path, **query)) == expected


@pytest.mark.parametrize(("key", "expected"), [("event_time", STORY), ("resource_type", BY_TYPE)])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_markers_lead_through_all_events(
    service: Service, path: str, direction: str, key: str, expected: list[tuple[str, str]]
) -> None:
    paged: list[Json] = []
    query = {"limit": 1, "sort_dir": direction, "sort_keys": key}
    while page := listed(service, path, **query):
        paged += page
        query["marker"] = page[-1]["id"]
    assert story(paged) == (expected if direction == "asc" else expected[::-1])


def test_events_of_a_tree_lead_to_its_root(service: Service, path: str) -> None:
    for item in listed(service, path, nested_depth=1):
        links = {link["rel"]: link["href"] for link in item["links"]}
        assert links["root_stack"] == service.url + path
        assert item["stack_name"] == "pair"
    assert "root_stack" not in {link["rel"] for link in listed(service, path)[0]["links"]}


def test_events_of_one_resource(service: Service, path: str) -> None:
    url = f"{path}/resources/r1/events"
    events = service.get(url)["events"]
    assert story(events) == STORY[4:2:-1]
    assert story(service.get(f"{url}?marker={events[0]['id']}")["events"]) == STORY[3:4]
    assert service.get(f"{url}?marker={events[1]['id']}")["events"] == []


def test_events_outlive_the_stack(service: Service, tenant: str) -> None:
    path = service.created(tenant, "brief", chain(1))
    service.call("DELETE", path)
    service.settled(path)
    assert story(listed(service, path))[-1] == ("brief", "DELETE_COMPLETE")


def test_an_event_is_found_only_where_it_belongs(service: Service, path: str, tenant: str) -> None:
    other_path = service.created(tenant, "other", chain(1))
    first = listed(service, path)[1]
    second = listed(service, path)[3]
    for url in (
        f"{path}/resources/r1/events/{first['id']}",
        f"{other_path}/resources/r0/events/{first['id']}",
        f"{path}/resources/r1/events/nothing",
    ):
        assert fault(service.call("GET", url))[0] == 404
    assert service.call("GET", f"{path}/resources/r1/events/{second['id']}").status == 200


@pytest.mark.parametrize("marker", ["nothing", "another's"])
def test_a_wrong_marker_is_refused(service: Service, path: str, tenant: str, marker: str) -> None:
    own_path = service.created(tenant, "own", chain(1))
    wrong = listed(service, path)[0]["id"] if marker == "another's" else marker
    answer = service.call("GET", f"{own_path}/events?marker={wrong}")
    assert fault(answer) == (400, "HTTPBadRequest")
    assert wrong in answer.error["message"]
