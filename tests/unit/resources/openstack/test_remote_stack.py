"""A stack in another region or cloud: the requests of its steps, and what they make of the answers."""

import dataclasses
import typing
from collections.abc import Callable, Iterator

import pytest
from harness.fake_context import START, FakeContext, after, run, target_of
from harness.scripted_service import Answer, ScriptedService, serving
from keystoneauth1.adapter import Adapter
from stoker.resources.contract.cloud import RemoteCloud
from stoker.resources.contract.errors import (
    PermanentError,
    PropertyError,
    ReplaceNeeded,
    RetryableError,
)
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.contract.views import ResourceView
from stoker.resources.openstack.declared import REMOTE
from stoker.resources.openstack.heat.remote_stack import ASKED, SNAPSHOT, RemoteStack, stack_name
from stoker.resources.openstack.marks import mark_of
from stoker.resources.openstack.service import LATE_CALL

Json = typing.Any
TYPE = RemoteStack()
KEY = "11111111-2222-4333-8444-555555555555"
NAME = "demo-away-111111112222"
ID = "5ca1ab1e-0000-4000-8000-00000000000a"
PATH = f"/stacks/{NAME}/{ID}"
SOUTH = {"region_name": "south"}
SECRET = "99999999-2222-4333-8444-555555555555"
CLOUD = {"credential_secret_id": SECRET, "ca_cert": "-----BEGIN CERTIFICATE-----"}


class RemoteContext(FakeContext):
    """A step's context with one service for all types.

    :ivar clouds: where it was asked for endpoints.
    """

    def __init__(self, scripted: ScriptedService) -> None:
        super().__init__()
        self._scripted = scripted
        self.clouds: list[RemoteCloud] = []
        self.credentials: list[Json] = []
        self.children.files = {"note.txt": "a note"}

    def adapter(self, service: str, version: str, microversion: str | None = None) -> Adapter:
        return self._scripted.adapter(service)

    def remote_adapter(
        self, cloud: RemoteCloud, service: str, version: str, credential: Callable[[], Json]
    ) -> Adapter:
        self.clouds.append(cloud)
        if cloud.region == "nowhere":
            raise PermanentError("no such region", kind="EndpointNotFound")
        if cloud.region == "away":
            raise RetryableError("Keystone is away")
        if cloud.credential_secret_id is not None:
            self.credentials.append(credential())
        return self._scripted.adapter(service)


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        service.answers[f"GET /stacks?tags={mark_of(KEY)}"] = Answer(200, {"stacks": []})
        yield service


@pytest.fixture
def context(scripted: ScriptedService) -> RemoteContext:
    return RemoteContext(scripted)


def is_now(scripted: ScriptedService, status: str, *, updated: str | None = None, **fields: Json) -> None:
    """The stack is there, in this state."""
    state = {"stack_status": status, "stack_status_reason": f"because of {status}", "updated_time": updated}
    body = {"id": ID, "stack_name": NAME, "tags": [mark_of(KEY)], "outputs": [], **state, **fields}
    scripted.answers[f"GET {PATH}"] = Answer(200, {"stack": body})


def a_target(context: Json = SOUTH, *, exists: bool = True, **fields: Json) -> ResourceView:
    properties = {"template": "a template", "parameters": {"size": 1}, "timeout": 7, "context": context}
    if exists:
        fields = {"physical_id": ID, "data": {ASKED: True, REMOTE: {"id": ID, "stack_name": NAME}}, **fields}
    return target_of(TYPE, properties, name="away", key=KEY, **fields)


def sent(scripted: ScriptedService, request: str) -> Json:
    """The body of the last such request."""
    return [body for line, body in zip(scripted.requests, scripted.sent, strict=True) if line == request][-1]


def test_a_creation_sends_what_heat_sends(scripted: ScriptedService, context: RemoteContext) -> None:
    scripted.answers["POST /stacks"] = Answer(201, {"stack": {"id": ID}})
    outputs = [{"output_key": "told", "output_value": 5}]
    is_now(scripted, "CREATE_COMPLETE", outputs=outputs)
    target = run(TYPE, "create", a_target(exists=False), context)
    assert target.physical_id == ID
    assert sent(scripted, "POST /stacks") == {
        "stack_name": NAME,
        "template": "a template",
        "parameters": {"size": 1},
        "environment": {
            "parameter_defaults": {"size": 3},
            "resource_registry": {},
            "parameters": {"size": 1},
        },
        "files": {"note.txt": "a note"},
        "disable_rollback": True,
        "timeout_mins": 7,
        "tags": mark_of(KEY),
    }
    attributes = TYPE.attribute_values(target)
    assert (attributes["told"], attributes["outputs"], attributes["stack_name"]) == (5, {"told": 5}, NAME)
    assert set(context.clouds) == {RemoteCloud("south")}


def test_the_place_is_checked_and_noted_before_its_first_request(
    scripted: ScriptedService, context: RemoteContext
) -> None:
    target = a_target(exists=False)
    step = TYPE.handle_create(target, context)
    assert isinstance(step, Poll)
    assert (step.data, scripted.requests) == ({ASKED: True}, [])
    # What was never asked for is not searched: a resource with a wrong credential can be deleted.
    assert TYPE.find_created(KEY, a_target({"region_name": "nowhere"}, exists=False), context) is None


def test_a_creation_whose_answer_was_lost_finds_its_stack(
    scripted: ScriptedService, context: RemoteContext
) -> None:
    step = TYPE.handle_create(a_target(exists=False), context)
    target = after(a_target(exists=False), step)
    scripted.answers["POST /stacks"] = Answer(409, {"error": {"message": "exists"}})
    with pytest.raises(PermanentError, match="exists"):  # It is another's.
        TYPE.check_create_complete(target, step.progress, context)
    listed = {"id": ID, "tags": ["x", mark_of(KEY)]}
    scripted.answers[f"GET /stacks?tags={mark_of(KEY)}"] = Answer(200, {"stacks": [listed]})
    step_after = TYPE.check_create_complete(target, step.progress, context)
    assert step_after.physical_id == ID
    assert TYPE.find_created(KEY, target, context) == ID

    scripted.answers["POST /stacks"] = Answer(503, {})
    with pytest.raises(RetryableError) as lost:
        TYPE.check_create_complete(target, step.progress, context)
    assert lost.value.at_least == LATE_CALL


@pytest.mark.parametrize("action", ["create", "update", "suspend", "resume", "check", "delete"])
def test_a_failure_has_the_status_and_the_reason(
    scripted: ScriptedService, context: RemoteContext, action: str
) -> None:
    is_now(scripted, f"{action.upper()}_FAILED", updated="later")
    progress = {"action": action.upper(), "since": START, "before": ["CREATE_COMPLETE", None, "so"]}
    check = getattr(TYPE, f"check_{action}_complete")
    reason = f'^Went to status {action.upper()}_FAILED due to "because of {action.upper()}_FAILED"$'
    with pytest.raises(PermanentError, match=reason) as failed:
        check(a_target(), progress, context)
    assert failed.value.kind == "ResourceInError"


def test_a_template_that_the_place_refuses_is_named_in_heats_words(
    scripted: ScriptedService, context: RemoteContext
) -> None:
    step = TYPE.handle_create(a_target(exists=False), context)
    scripted.answers["POST /stacks"] = Answer(400, {"error": {"message": "no good"}})
    reason = 'Failed validating stack template using Heat endpoint at region "south" due to ".*no good'
    with pytest.raises(PermanentError, match=reason):
        TYPE.check_create_complete(after(a_target(exists=False), step), step.progress, context)


def test_an_update_waits_for_other_actions_and_counts_only_what_follows_it(
    scripted: ScriptedService, context: RemoteContext
) -> None:
    is_now(scripted, "CHECK_IN_PROGRESS")
    step = TYPE.handle_update(a_target(), frozenset(), context)
    assert isinstance(step, Poll)
    assert "PUT" not in "".join(scripted.requests)
    is_now(scripted, "UPDATE_COMPLETE", updated="before")
    scripted.answers[f"PUT {PATH}"] = Answer(409, {"error": {"message": "in progress"}})
    step = TYPE.check_update_complete(a_target(), step.progress, context)
    scripted.answers[f"PUT {PATH}"] = Answer(202)
    step = TYPE.check_update_complete(a_target(), typing.cast(Poll, step).progress, context)
    assert sent(scripted, f"PUT {PATH}")["tags"] == mark_of(KEY)
    # The end of the update before this one is no end of this one, until it must be.
    again = TYPE.check_update_complete(a_target(), typing.cast(Poll, step).progress, context)
    assert isinstance(again, Poll)
    context.time += LATE_CALL
    assert isinstance(TYPE.check_update_complete(a_target(), again.progress, context), Done)
    context.time = START
    is_now(scripted, "UPDATE_COMPLETE", updated="after")
    assert isinstance(TYPE.check_update_complete(a_target(), again.progress, context), Done)


@pytest.mark.parametrize("status", [None, "DELETE_COMPLETE"])
def test_a_stack_that_is_gone_is_replaced_and_deleted(
    scripted: ScriptedService, context: RemoteContext, status: str | None
) -> None:
    if status is not None:
        is_now(scripted, status)
    with pytest.raises(ReplaceNeeded):
        TYPE.handle_update(a_target(), frozenset(), context)
    assert TYPE.needs_replace_failed(a_target(), context)
    assert TYPE.handle_delete(a_target(), context) == Done()
    assert TYPE.check_delete_complete(a_target(), {"action": "DELETE", "since": START}, context) == Done()
    assert TYPE.handle_delete_snapshot(a_target(), context) == Done()


def test_a_deletion_waits_until_the_stack_is_gone(scripted: ScriptedService, context: RemoteContext) -> None:
    is_now(scripted, "UPDATE_IN_PROGRESS")
    scripted.answers[f"DELETE {PATH}"] = Answer(204)
    step = TYPE.handle_delete(a_target(), context)
    is_now(scripted, "DELETE_IN_PROGRESS")
    step = TYPE.check_delete_complete(a_target(), typing.cast(Poll, step).progress, context)
    del scripted.answers[f"GET {PATH}"]
    assert TYPE.check_delete_complete(a_target(), typing.cast(Poll, step).progress, context) == Done()


def test_a_failed_stack_is_kept_and_its_creation_continued_by_an_update(
    scripted: ScriptedService, context: RemoteContext
) -> None:
    is_now(scripted, "CREATE_FAILED")
    scripted.answers[f"PUT {PATH}"] = Answer(202)
    assert not TYPE.needs_replace_failed(a_target(), context)
    step = TYPE.handle_create(a_target(), context)
    is_now(scripted, "UPDATE_COMPLETE", updated="now")
    assert isinstance(TYPE.check_create_complete(a_target(), typing.cast(Poll, step).progress, context), Done)


def test_actions_are_sent_unless_they_are_done(scripted: ScriptedService, context: RemoteContext) -> None:
    scripted.answers[f"POST {PATH}/actions"] = Answer(202)
    is_now(scripted, "SUSPEND_COMPLETE")
    assert isinstance(TYPE.handle_suspend(a_target(), context), Done)
    assert "POST" not in "".join(scripted.requests)
    for action in ("resume", "check"):
        getattr(TYPE, f"handle_{action}")(a_target(), context)
        assert sent(scripted, f"POST {PATH}/actions") == {action: None}
    TYPE.handle_cancel(a_target(), {}, context)
    assert sent(scripted, f"POST {PATH}/actions") == {"check": None}
    is_now(scripted, "UPDATE_IN_PROGRESS")
    TYPE.handle_cancel(a_target(), {}, context)
    assert sent(scripted, f"POST {PATH}/actions") == {"cancel_without_rollback": None}


def test_a_snapshot_is_found_again_and_deleted(scripted: ScriptedService, context: RemoteContext) -> None:
    is_now(scripted, "CREATE_COMPLETE")
    snapshot = {"id": "snap", "name": mark_of(KEY), "status": "COMPLETE"}
    scripted.answers[f"POST {PATH}/snapshots"] = Answer(200, snapshot)
    scripted.answers[f"GET {PATH}/snapshots/snap"] = Answer(200, {"snapshot": snapshot})
    scripted.answers[f"GET {PATH}/snapshots"] = Answer(
        200, {"snapshots": [{"id": "x", "name": "x"}, snapshot]}
    )
    scripted.answers[f"DELETE {PATH}/snapshots/snap"] = Answer(204)
    target = run(TYPE, "snapshot", a_target(), context)
    assert target.data == {SNAPSHOT: "snap"}
    assert sent(scripted, f"POST {PATH}/snapshots") == {"name": mark_of(KEY)}
    run(TYPE, "snapshot", a_target(attempt=2), context)
    assert scripted.requests.count(f"POST {PATH}/snapshots") == 1
    TYPE.handle_delete_snapshot(a_target(), context)  # Its data was lost.
    assert scripted.requests[-1] == f"DELETE {PATH}/snapshots/snap"


def test_an_adopted_stack_is_found_by_its_id(scripted: ScriptedService, context: RemoteContext) -> None:
    is_now(scripted, "CREATE_COMPLETE")
    place = {"Location": f"{scripted.url}{PATH}"}
    scripted.answers[f"GET /stacks/{ID}"] = Answer(302, {}, place)
    scripted.answers[f"POST {PATH}/actions"] = Answer(202)
    step = TYPE.handle_adopt(a_target(data={}), context)
    is_now(scripted, "CHECK_COMPLETE", updated="now")
    adopted = TYPE.check_adopt_complete(a_target(data={}), typing.cast(Poll, step).progress, context)
    assert typing.cast(Json, adopted).data[REMOTE]["stack_name"] == NAME


def test_another_region_needs_another_stack_and_another_credential_may_not() -> None:
    def differs(before: Json, later: Json) -> bool:
        return TYPE.needs_replace({"context": before}, {"context": later})

    assert differs(SOUTH, {"region_name": "north"})
    assert differs(SOUTH, CLOUD)
    assert not differs(SOUTH, {**SOUTH, **CLOUD, "insecure": True})


@pytest.mark.parametrize(("region", "error"), [("nowhere", PermanentError), ("away", RetryableError)])
def test_a_place_that_cannot_be_reached_is_named_in_heats_words(
    context: RemoteContext, region: str, error: type[Exception]
) -> None:
    reason = f'^Cannot establish connection to Heat endpoint at region "{region}" due to "'
    with pytest.raises(error, match=reason):
        TYPE.handle_create(a_target({"region_name": region}, exists=False), context)


@pytest.mark.parametrize("named", [SECRET, f"http://barbican.test/v1/secrets/{SECRET}"])
def test_a_credential_is_read_as_what_it_was_stored(
    scripted: ScriptedService, context: RemoteContext, named: str
) -> None:
    kinds = {"default": "application/octet-stream"}
    scripted.answers[f"GET /secrets/{SECRET}"] = Answer(200, {"content_types": kinds})
    scripted.answers[f"GET /secrets/{SECRET}/payload"] = Answer(200, '{"auth_type": "v3token"}')
    TYPE.handle_create(a_target({**CLOUD, "credential_secret_id": named}, exists=False), context)
    assert context.credentials == [{"auth_type": "v3token"}]
    assert scripted.accepted[-1] == "application/octet-stream"


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        ("../../v1/orders", "must be the id of a secret, not ../../v1/orders"),
        ("99999999-0000-4333-8444-555555555555", "there is no secret 99999999-0000"),
        (SECRET, "the secret .* is not JSON"),
    ],
)
def test_a_wrong_secret_names_the_property(
    scripted: ScriptedService, context: RemoteContext, secret: str, reason: str
) -> None:
    scripted.answers[f"GET /secrets/{SECRET}"] = Answer(200, {"content_types": {"default": "text/plain"}})
    scripted.answers[f"GET /secrets/{SECRET}/payload"] = Answer(200, "hush-hush")
    beginning = 'endpoint at remote cloud due to "context.credential_secret_id: '
    with pytest.raises(PermanentError, match=beginning + reason) as wrong:
        TYPE.handle_create(a_target({"credential_secret_id": secret}, exists=False), context)
    assert "hush" not in str(wrong.value)


def test_certificates_must_be_some() -> None:
    TYPE.validate({"context": CLOUD})
    with pytest.raises(PropertyError, match=r"^context.ca_cert: must be certificates in PEM"):
        TYPE.validate({"context": {"ca_cert": "/etc/ssl/ca.pem"}})


@pytest.mark.parametrize(("name", "expected"), [("a b/ü", "demo-a_b__-"), ("1" * 255, "s111")])
def test_every_resource_gives_a_name_that_a_stack_may_have(name: str, expected: str) -> None:
    valid_name = stack_name(dataclasses.replace(a_target(), name=name))
    assert valid_name.startswith(expected)
    assert len(valid_name) <= 255
