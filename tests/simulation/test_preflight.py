"""A preview compares what it would make with the cloud of the caller.

The API and the engine are the real ones, and a real HTTP server answers as the block storage service.
"""

import dataclasses
import pathlib
import threading
import time
import typing
import urllib.parse
from collections.abc import Iterator, Sequence, Set

import falcon.testing
import pytest
from harness.bare_api import ADDRESSES
from harness.features import FEATURES_OF_API
from harness.scripted_service import Answer, ScriptedService, serving
from keystoneauth1.session import Session
from simulation.helpers import ended, rows
from simulation.test_callers_cloud import Authenticated, endpoint
from simulation.world import World
from stoker.api.app import make_app
from stoker.api.collaborators import Preflight
from stoker.api.context import RequestContext
from stoker.api.operations import Services
from stoker.cli.wiring.routes import ROUTES
from stoker.engine.caller_services import CallerServices
from stoker.engine.signals import send_signal
from stoker.features.preflight import check, reader
from stoker.features.preflight.api import ApiPreflight
from stoker.features.preflight.check import CloudPreflight
from stoker.features.preflight.reader import MOST_READINGS, CloudReaders
from stoker.features.preflight.services import ServiceReadings
from stoker.keystone.client_options import ClientOptions
from stoker.resources.contract import (
    CloudFacts,
    Done,
    Misfit,
    PlannedStack,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
)
from stoker.template.environment import PreflightMode

Json = typing.Any
LIMITS = "GET /v3/os-quota-sets/p1?usage=True"
LISTS = "GET /v3/things"


def too_many(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """The rule of Disk: its label is not that of a thing which exists."""
    for disk in stack.new_of_type("Acme::Disk"):
        label = disk.values.get("label")
        if label == "bug":
            raise KeyError("a rule of a plugin")
        if label == "many":
            for number in range(2 * MOST_READINGS):
                cloud.members("block-storage", f"/{number}", "things")
        elif label:
            labels = [thing["label"] for thing in cloud.members("block-storage", "/things", "things") or ()]
            if label in labels:
                yield Misfit(disk.name, f"the label {label} is taken", ("label",), advice="Take another one.")


class Disk(ResourceType):
    service = "block-storage"
    quota = {"volumes": 1, "gigabytes": "size"}
    cloud_rules = (too_many,)
    lost_with_it = "its data go"
    properties_schema = {
        "size": Property("integer", update_allowed=True, default=1),
        "kind": Property("string"),
        "label": Property("string"),
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return Done(physical_id=f"disk-{target.name}")

    def users_outside(self, physical_id: str, own: Set[str], cloud: CloudFacts) -> Sequence[str]:
        return ["the disk disk-0"] if physical_id == "disk-used" and "disk-0" not in own else []


class Site:
    """The API over the simulation's world, with a type that has quotas.

    :ivar storage: the block storage service.
    """

    def __init__(self, world: World, storage: ScriptedService) -> None:
        self.world = world
        self.storage = storage
        storage.answers["GET /"] = storage.answers["GET /v3/"] = Answer(body=versions(storage.url))
        storage.answers[LISTS] = Answer(body={"things": []})
        self.allow(volumes=100, gigabytes=100)
        self.auth = Authenticated(endpoint("block-storage", storage.url))
        self.usual = PreflightMode.WARN
        preflight = self.preflight()
        features = {
            **FEATURES_OF_API,
            Preflight: preflight,
        }
        self.services = Services(
            database=world.database,
            context=world.context,
            guests=None,  # type: ignore[arg-type]
            registry=world.registry,
            sealer=world.sealer,
            auth=self.auth,
            clock=world.clock,
            features=features,
        )
        self.api = falcon.testing.TestClient(make_app(self.services, ROUTES, ADDRESSES))

    def preflight(self) -> ApiPreflight:
        """A preflight whose calls may take as long as the module says at this moment."""
        services = CallerServices(ClientOptions(), self._session, within=reader.ANSWERED_WITHIN)
        readers = CloudReaders(
            ask=ServiceReadings(services).ask, has_service=services.has, monotonic=time.monotonic
        )
        return ApiPreflight(CloudPreflight(self.world.context, readers), lambda: self.usual)

    def _session(self, auth: Json, cache: dict[str, Json]) -> Session:
        return Session(auth=auth, timeout=60.0, discovery_cache=cache)

    def allow(self, **free: int) -> None:
        """Give the project so much of each quota."""
        quota = {name: {"limit": left, "in_use": 0, "reserved": 0} for name, left in free.items()}
        self.storage.answers[LIMITS.partition("?")[0]] = Answer(body={"quota_set": quota})

    def asked(self) -> list[str]:
        """The requests that the service got, without those for its versions."""
        return [request for request in self.storage.requests if request not in ("GET /", "GET /v3/")]

    def previewed(self, resources: Json, project: str = "p1", query: str = "?check_cloud=true") -> Json:
        """The answer to the preview of a creation."""
        body = {"stack_name": "s", "template": document(resources)}
        answer = self.api.simulate_post(f"/v1/{project}/stacks/preview{query}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json

    def findings(self, resources: Json) -> list[str]:
        """The messages of the findings for a creation."""
        return [finding["message"] for finding in self.previewed(resources)["findings"]]

    def make(self, resources: Json) -> str:
        """Create a stack, and return its path."""
        body = {"stack_name": "s", "template": document(resources)}
        answer = self.api.simulate_post("/v1/p1/stacks", json=body)
        assert answer.status_code == 201, answer.text
        stack = self.world.database.read(lambda conn: self.world.stack(answer.json["stack"]["id"]))
        assert self.world.settle(lambda: ended(self.world, stack), within=60)
        return urllib.parse.urlsplit(answer.json["stack"]["links"][0]["href"]).path

    def request(self, resources: Json, mode: Json = None, path: str = "") -> falcon.testing.Result:
        """The answer to a creation, or to the update of the stack of a path."""
        environment = {} if mode is None else {"resource_registry": {"stoker": {"preflight": mode}}}
        body = {"stack_name": "s", "template": document(resources), "environment": environment}
        if path:
            return self.api.simulate_put(path, json=body)
        return self.api.simulate_post("/v1/p1/stacks", json=body)

    def reasons(self) -> list[str]:
        """The reasons with which the actions of the stack have begun, in the alphabet's order."""
        events = self.api.simulate_get("/v1/p1/stacks").json["stacks"]
        path = urllib.parse.urlsplit(events[0]["links"][0]["href"]).path
        listed = self.api.simulate_get(f"{path}/events").json["events"]
        reasons = [str(item["resource_status_reason"]) for item in listed]
        return sorted(reason for reason in reasons if "started" in reason)

    def update_findings(self, path: str, resources: Json) -> list[Json]:
        """The findings for an update."""
        body = {"template": document(resources)}
        answer = self.api.simulate_put(f"{path}/preview?check_cloud=true", json=body)
        assert answer.status_code == 200, answer.text
        return list(answer.json["findings"])


def versions(url: str) -> Json:
    links = [{"rel": "self", "href": f"{url}/v3/"}]
    version = {"id": "v3.0", "status": "CURRENT", "version": "3.60", "min_version": "3.0", "links": links}
    return {"versions": [version]}


def document(resources: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources}


def disk(**properties: Json) -> Json:
    return {"type": "Acme::Disk", "properties": properties}


@pytest.fixture
def storage() -> Iterator[ScriptedService]:
    with serving() as service:
        yield service


@pytest.fixture
def site(tmp_path: pathlib.Path, storage: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(reader, "ANSWERED_WITHIN", 60.0)
    return Site(World(tmp_path, hosts=1, types={"Acme::Disk": Disk}), storage)


def test_a_finding_says_where_what_is_needed_what_there_is_and_what_to_do(site: Site) -> None:
    site.allow(volumes=100, gigabytes=9)
    answer = site.previewed({"a": disk(size=4), "b": disk(size=6)})
    assert answer["stack"]["stack_name"] == "s"
    assert answer["findings"] == [
        {
            "kind": "quota",
            "path": "resources.b",
            "message": "quota gigabytes of block-storage: 10 needed, 9 left (0 of 9 in use)",
            "needed": "10",
            "available": "9",
            "certainty": "certain",
            "advice": "Make room in the project, ask for less, or ask the operator for a larger quota of "
            "gigabytes.",
        }
    ]


def test_nothing_is_checked_unless_the_request_says_so(site: Site) -> None:
    assert "findings" not in site.previewed({"a": disk()}, query="")
    assert site.storage.requests == []


def test_the_number_of_requests_does_not_grow_with_the_resources(site: Site) -> None:
    resources = {f"d{number}": disk(size=number + 1, label=f"l{number}") for number in range(60)}
    assert len(site.findings(resources)) == 1
    assert site.asked() == [LIMITS, "GET /v3/things?limit=1000"]


def test_a_rule_of_a_type_says_what_does_not_fit(site: Site) -> None:
    site.storage.answers[LISTS] = Answer(body={"things": [{"label": "x"}]})
    [finding] = site.previewed({"a": disk(label="x"), "b": disk(label="y")})["findings"]
    assert (finding["kind"], finding["path"]) == ("fit", "resources.a.properties.label")
    assert (finding["message"], finding["advice"]) == ("the label x is taken", "Take another one.")


def test_an_update_counts_what_it_makes_changes_and_deletes(site: Site) -> None:
    path = site.make({"a": disk(size=9), "b": disk(size=9), "c": disk(size=1)})
    site.allow(volumes=0, gigabytes=5)
    findings = site.update_findings(
        path, {"a": disk(size=15), "b": disk(size=9, kind="x"), "d": disk(size=2)}
    )
    assert [(each["path"], each["needed"], each["certainty"]) for each in findings[:-1]] == [
        # a becomes 6 larger; b exists twice for a while, whatever becomes of c; d is new.
        ("resources.a", "8", "certain"),
        ("resources.b", "2", "likely"),
    ]
    assert (findings[-1]["kind"], findings[-1]["path"]) == ("surprise", "resources.b")
    assert findings[-1]["message"] == "it is replaced, and its data go with it"


def group(count: Json, policy: Json = None, kind: str = "k", **properties: Json) -> Json:
    """A group of disks, each named disk-NUMBER."""
    body = {"count": count, "resource_def": disk(kind=kind), **properties}
    rolling = {"update_policy": {"rolling_update": policy}} if policy else {}
    return {"type": "OS::Heat::ResourceGroup", "properties": body, **rolling}


def test_what_an_existing_group_has_is_no_stranger_to_its_stack(site: Site) -> None:
    """The goal of the members hangs on a disk that is replaced; those that exist are known."""

    def template_for(count: int, kind: str = "k") -> Json:
        member = group(count, kind={"get_resource": "d"})  # type: ignore[arg-type]
        return {"used": disk(), "d": disk(kind=kind), "g": member}

    path = site.make(template_for(1))
    resources = template_for(2, "other")
    del resources["used"]
    assert [item["message"] for item in site.update_findings(path, resources)][1:] == [
        "not checked: what the nested stack will have is not known before the action"
    ]


def test_a_larger_group_needs_what_its_new_members_need(site: Site) -> None:
    path = site.make({"g": group(2)})
    site.allow(volumes=1, gigabytes=9)
    [finding] = site.update_findings(path, {"g": group(4)})
    assert (finding["path"], finding["needed"], finding["certainty"]) == (
        "resources.g.resources.3",
        "2",
        "certain",
    )
    assert site.update_findings(path, {"g": group(3)}) == []
    # One that takes the place of a removed one may be made before that is gone.
    site.allow(volumes=0, gigabytes=9)
    removing = group(2, removal_policies=[{"resource_list": ["0"]}])
    assert [item["certainty"] for item in site.update_findings(path, {"g": removing})] == ["likely"]
    assert site.update_findings(path, {"g": group(2)}) == site.update_findings(path, {"g": group(1)}) == []


@pytest.mark.parametrize(
    ("policy", "free", "needed"),
    [
        (None, 2, "3"),
        (None, 3, None),
        ({"max_batch_size": 1}, 1, None),
        ({"max_batch_size": 2}, 1, "2"),
        # Two extra members are there while the batches of two replace the others.
        ({"max_batch_size": 2, "min_in_service": 3}, 3, "4"),
        ({"max_batch_size": 2, "min_in_service": 3}, 1, "4"),
        ({"max_batch_size": 2, "min_in_service": 3}, 4, None),
    ],
)
def test_a_rolling_update_needs_what_its_fullest_batch_holds(
    site: Site, policy: Json, free: int, needed: str | None
) -> None:
    path = site.make({"g": group(3)})
    site.allow(volumes=free, gigabytes=99)
    findings = site.update_findings(path, {"g": group(3, policy, kind="other")})
    assert [item["needed"] for item in findings if item["kind"] == "quota"] == ([needed] if needed else [])


def scaled_group(**properties: Json) -> Json:
    """A group of two members, and a policy that adds three."""
    member = {"type": "OS::Heat::Value", "properties": {"value": "m"}}
    body = {"min_size": 0, "max_size": 9, "resource": member, **properties}
    policy = {
        "auto_scaling_group_id": {"get_resource": "g"},
        "scaling_adjustment": 3,
        "adjustment_type": "change_in_capacity",
    }
    return {
        "g": {"type": "OS::Heat::AutoScalingGroup", "properties": body},
        "up": {"type": "OS::Heat::ScalingPolicy", "properties": policy},
    }


def test_an_update_names_how_many_members_it_deletes_that_signals_have_added(site: Site) -> None:
    """An update brings a group to the size that its template asks for, as in Heat."""

    def surprises(**properties: Json) -> list[str]:
        findings = site.update_findings(path, scaled_group(**properties))
        return [item["message"] for item in findings if item["kind"] == "surprise"]

    path = site.make(scaled_group(desired_capacity=2))
    [listed] = site.api.simulate_get("/v1/p1/stacks").json["stacks"]
    stack = site.world.stack(listed["id"])
    assert surprises(desired_capacity=2) == surprises(desired_capacity=1) == []
    send_signal(site.world.context, stack, "up", None)

    def members() -> int:
        return len((rows(site.world, stack)["g"].data or {})["names"])

    assert site.world.settle(lambda: members() == 5, within=60)
    assert surprises(desired_capacity=2) == [
        "the update brings it to the size of its template, and deletes 3 of its members"
    ]
    assert surprises(max_size=4, desired_capacity=4) == [
        "the update brings it to the size of its template, and deletes 1 of its members"
    ]
    assert surprises(desired_capacity=5) == surprises() == []


def test_what_stays_is_not_judged(site: Site) -> None:
    path = site.make({"a": disk(size=9, label="x")})
    site.storage.answers[LISTS] = Answer(body={"things": [{"label": "x"}]})
    site.allow(volumes=0, gigabytes=0)
    assert site.update_findings(path, {"a": disk(size=9, label="x")}) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            Answer(403, {"forbidden": {"message": "not for you", "code": 403}}),
            "block-storage 403: not for you",
        ),
        (Answer(503), "block-storage 503"),
        (Answer(200, "<html>"), "the answer cannot be read"),
        (Answer(200, {"quota_set": []}), "quota_set is not an object"),
    ],
)
def test_a_service_that_does_not_tell_is_a_finding(site: Site, answer: Answer, words: str) -> None:
    site.storage.answers[LIMITS.partition("?")[0]] = answer
    [finding] = site.previewed({"a": disk()})["findings"]
    assert finding["message"].startswith("not checked: block-storage: ")
    assert words in finding["message"]
    assert (finding["kind"], finding["certainty"]) == ("not checked", "not known")


def test_a_service_that_is_silent_costs_its_time_and_is_a_finding(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "ANSWERED_WITHIN", 0.5)
    gate = threading.Event()
    ask = ServiceReadings.ask

    def silent(*arguments: Json) -> Json:
        gate.wait(600)
        return ask(*arguments)

    monkeypatch.setattr(ServiceReadings, "ask", silent)
    preflight = site.preflight()
    services = dataclasses.replace(site.services, features={**site.services.features, Preflight: preflight})
    site.api = falcon.testing.TestClient(make_app(services, ROUTES, ADDRESSES))
    assert site.findings({"a": disk(label="x")}) == [
        "not checked: block-storage: no answer within 0.5 s (/os-quota-sets/p1, /things)"
    ]
    gate.set()


def test_a_bug_of_a_reading_is_no_silence_of_the_service(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Json) -> Json:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(ServiceReadings, "ask", broken)
    preflight = site.preflight()
    services = dataclasses.replace(site.services, features={**site.services.features, Preflight: preflight})
    site.api = falcon.testing.TestClient(make_app(services, ROUTES, ADDRESSES))
    assert site.findings({"a": disk(label="x")}) == [
        "not checked: block-storage: the reading has failed; the log of the API says why "
        "(/os-quota-sets/p1, /things)"
    ]
    assert "Reading /things of block-storage failed" in caplog.text
    assert "ZeroDivisionError: a bug" in caplog.text


def test_a_bug_of_a_rule_stops_nobody(site: Site) -> None:
    assert site.findings({"a": disk(label="bug")}) == [
        "not checked: a rule has failed; the log of the API says which"
    ]


def test_a_judgement_that_takes_too_long_is_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of rules grows with the resources times the things: no request waits for all of it."""
    monkeypatch.setattr(reader, "JUDGED_WITHIN", -60.0)
    resources = {"a": disk(label="x"), "b": disk(label="y")}
    assert site.findings(resources) == [
        "not checked: it takes too long to compare so many resources with so many things"
    ]
    assert site.request(resources, "refuse").status_code == 201


def test_a_preflight_reads_so_many_lists_and_no_more(site: Site) -> None:
    [message] = [text for text in site.findings({"a": disk(label="many")}) if "lists at most" in text]
    assert message.startswith(f"not checked: block-storage: a preflight reads {MOST_READINGS} lists at most")
    assert len(site.asked()) <= MOST_READINGS


def test_a_service_that_the_callers_catalog_lacks_is_not_called(site: Site) -> None:
    site.auth.catalog = endpoint("compute", site.storage.url)
    for resources in ({}, {"a": {"type": "OS::Heat::None"}}):
        assert site.findings(resources) == []
    assert site.storage.requests == []


def test_who_is_not_named_by_keystone_or_has_another_project_asks_nobody(site: Site) -> None:
    path = site.make({"a": disk(size=9)})
    site.storage.requests.clear()
    identify = site.auth.identify

    def stranger(tenant: str, headers: Json) -> RequestContext:
        return dataclasses.replace(identify(tenant, headers), access=None)

    def admin(tenant: str, headers: Json) -> RequestContext:
        return dataclasses.replace(identify("p2", headers), everywhere=True)

    for identity, words in ((stranger, "nobody has named the caller"), (admin, "for another project")):
        site.auth.identify = identity  # type: ignore[method-assign, assignment]
        [finding] = site.update_findings(path, {"a": disk(size=10)})
        assert words in finding["message"]
    assert site.asked() == []


def test_an_installation_without_the_feature_says_so(site: Site) -> None:
    features = {kind: value for kind, value in site.services.features.items() if kind is not Preflight}
    services = dataclasses.replace(site.services, features=features)
    api = falcon.testing.TestClient(make_app(services, ROUTES, ADDRESSES))
    body = {"stack_name": "s", "template": document({})}
    assert api.simulate_post("/v1/p1/stacks/preview?check_cloud=true", json=body).status_code == 400


HINDERED = (
    "preflight: 1 finding: resources.a: quota gigabytes of block-storage: 10 needed, 9 left (0 of 9 in use)"
)


def test_a_warning_is_in_the_stacks_reason_and_first_event(site: Site) -> None:
    site.allow(volumes=100, gigabytes=9)
    assert site.request({"a": disk(size=10)}).status_code == 201
    assert site.reasons() == [f"Stack CREATE started; {HINDERED}"]


def test_the_value_of_a_hidden_parameter_is_in_no_finding(site: Site) -> None:
    """Whoever may read the stack would read it in the stack's reason."""
    site.storage.answers[LISTS] = Answer(body={"things": [{"label": "s3cret"}, {"label": "plain"}]})
    labels = {"open": {"default": "plain"}, "hidden": {"default": "s3cret", "hidden": True}}
    goal = {
        **document({f"disk-{name}": disk(label={"get_param": name}) for name in labels}),
        "parameters": {name: {"type": "string", **parameter} for name, parameter in labels.items()},
    }
    answer = site.api.simulate_post("/v1/p1/stacks", json={"stack_name": "s", "template": goal})
    assert answer.status_code == 201, answer.text
    where = "resources.disk-open.properties.label"
    assert site.reasons() == [
        f"Stack CREATE started; preflight: 1 finding: {where}: the label plain is taken"
    ]


def test_a_stack_that_fits_begins_as_without_a_preflight(site: Site) -> None:
    path = site.make({"a": disk(size=10)})
    assert site.request({"a": disk(size=20)}, path=path).status_code == 202
    assert site.reasons() == ["Stack CREATE started", "Stack UPDATE started"]


def test_what_is_refused_is_not_begun_and_all_findings_are_reported(site: Site) -> None:
    site.allow(volumes=0, gigabytes=9)
    answer = site.request({"a": disk(size=10, label="bug")}, "refuse")
    assert answer.status_code == 201, "a bug of a rule stops nobody"
    answer = site.request({"a": disk(size=10)}, "refuse")
    assert answer.status_code == 409
    error = answer.json["error"]
    assert error["type"] == "PreflightRefused"
    assert error["message"].startswith("The cloud would not carry this out: 2 findings:\n- resources.a: ")
    assert [each["path"] for each in error["errors"]] == ["resources.a", "resources.a"]
    assert error["errors"][0]["certainty"] == "certain"
    assert len(site.api.simulate_get("/v1/p1/stacks").json["stacks"]) == 1


def test_an_update_is_refused_or_warned_of_too(site: Site) -> None:
    path = site.make({"a": disk(size=1)})
    site.allow(volumes=0, gigabytes=9)
    assert site.request({"a": disk(size=11)}, "refuse", path).status_code == 409
    assert site.reasons() == ["Stack CREATE started"]
    assert site.request({"a": disk(size=11)}, "warn", path).status_code == 202
    assert site.reasons()[-1] == f"Stack UPDATE started; {HINDERED}"


@pytest.mark.parametrize(
    ("usual", "mode", "status", "asked"),
    [
        ("off", None, 201, False),
        ("warn", "off", 201, False),
        ("refuse", False, 201, False),
        ("refuse", None, 409, True),
        ("off", "refuse", 409, True),
        ("refuse", "warn", 201, True),
    ],
)
def test_an_environment_wins_over_the_operators_mode(
    site: Site, usual: str, mode: Json, status: int, asked: bool
) -> None:
    site.usual = PreflightMode(usual)
    site.allow(volumes=0)
    assert site.request({"a": disk()}, mode).status_code == status
    assert bool(site.asked()) is asked


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"preflight": "yes"}, "must be one of: refuse, warn, off; not"),
        ({"preflights": "off"}, "is not one of: preflight"),
        (["off"], "must be a map of: preflight"),
    ],
)
def test_a_wrong_mode_is_an_error_of_the_environment(site: Site, settings: Json, words: str) -> None:
    body = {"stack_name": "s", "template": document({})}
    body["environment"] = {"resource_registry": {"stoker": settings}}
    answer = site.api.simulate_post("/v1/p1/stacks", json=body)
    assert answer.status_code == 400
    assert words in answer.json["error"]["message"]


def test_a_request_without_a_named_caller_is_not_reviewed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    identify = site.auth.identify
    monkeypatch.setattr(
        site.auth, "identify", lambda *args: dataclasses.replace(identify(*args), access=None)
    )
    site.allow(volumes=0)
    assert site.request({"a": disk()}, "refuse").status_code == 201
    assert site.storage.requests == []


def test_a_bug_of_a_preview_stops_no_update(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    path = site.make({"a": disk(size=1)})

    def broken(*arguments: Json, **options: Json) -> Json:
        raise KeyError("a bug")

    monkeypatch.setattr(check, "changes_of_compiled", broken)
    assert site.request({"a": disk(size=2)}, "refuse", path).status_code == 202


def test_what_is_adopted_exists_already_and_is_not_compared(site: Site) -> None:
    site.allow(volumes=0, gigabytes=0)
    site.storage.answers[LISTS] = Answer(body={"things": [{"label": "x"}]})
    resources = {"a": disk(size=10, label="x")}
    adopted = {"a": {"resource_id": "disk-a", "type": "Acme::Disk", "name": "a"}}
    environment = {"resource_registry": {"stoker": {"preflight": "refuse"}}}
    body = {
        "stack_name": "s",
        "environment": environment,
        "adopt_stack_data": {"template": document(resources), "resources": adopted},
    }
    preview = site.api.simulate_post("/v1/p1/stacks/preview?check_cloud=true", json=body)
    assert preview.json["findings"] == []
    answer = site.api.simulate_post("/v1/p1/stacks", json=body)
    assert answer.status_code == 201, answer.text
    assert site.reasons() == ["Stack ADOPT started"]
    assert site.asked() == []
