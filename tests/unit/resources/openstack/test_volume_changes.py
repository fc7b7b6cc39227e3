"""Changes of volumes that the block storage service refuses to make twice."""

import typing
from collections.abc import Iterator

import pytest
from harness.scripted_service import Answer, ScriptedService, serving
from keystoneauth1.adapter import Adapter
from stoker.resources.contract.context import StepContext
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.views import ResourceView, StackFacts
from stoker.resources.openstack.cinder.volume_changes import VolumeChange, VolumeChanges

Json = typing.Any
REFUSED = Answer(
    400, {"badRequest": {"message": "Invalid input received: it is not possible now", "code": 400}}
)
GOAL = {"size": 2, "volume_type": "fast"}
READ = {"id": "v", "status": "available", "size": 1, "volume_type": "slow"}
"""The volume, as it was read before a late request of a dead step reached the service."""


class VolumeContext:
    """The part of a step's context that changes need."""

    def __init__(self, scripted: ScriptedService) -> None:
        self._scripted = scripted

    def adapter(self, service: str, version: str, microversion: str | None = None) -> Adapter:
        return self._scripted.adapter(service)

    def checkpoint(self) -> None:
        """Never cancelled."""

    def shared(self, key: Json, make: typing.Callable[[], Json], max_age: float, **_: object) -> Json:
        return make()


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        service.answers["POST /volumes/v/action"] = REFUSED
        types = [{"id": "t2", "name": "fast"}, {"id": "t1", "name": "slow"}]
        service.answers["GET /types"] = Answer(200, {"volume_types": types})
        service.answers["GET /types/fast"] = service.answers["GET /types/t2"] = Answer(
            200, {"volume_type": types[0]}
        )
        yield service


def begin(scripted: ScriptedService, kind: str, **now: Json) -> None:
    """Begin a change whose request is refused; `now` is what the volume has become since it was read."""
    scripted.answers["GET /volumes/v"] = Answer(200, {"volume": {**READ, **now}})
    target = ResourceView(
        1, "r", "OS::Cinder::Volume", StackFacts("s", "s", "p"), GOAL, physical_id="v", key="k"
    )
    VolumeChanges(target, typing.cast(StepContext, VolumeContext(scripted))).begin(VolumeChange(kind), READ)


@pytest.mark.parametrize(
    ("kind", "now"),
    [
        ("size", {"status": "extending"}),
        ("size", {"size": 2}),
        ("volume_type", {"status": "retyping"}),
        ("volume_type", {"volume_type": "fast"}),
    ],
)
def test_a_change_that_a_late_request_has_begun_is_no_error(
    scripted: ScriptedService, kind: str, now: Json
) -> None:
    begin(scripted, kind, **now)
    assert "POST /volumes/v/action" in scripted.requests


@pytest.mark.parametrize("kind", ["size", "volume_type"])
def test_a_change_that_nobody_has_begun_fails_as_the_service_says(
    scripted: ScriptedService, kind: str
) -> None:
    with pytest.raises(PermanentError, match="it is not possible now"):
        begin(scripted, kind)


@pytest.mark.parametrize(("value", "flag"), [(True, True), (False, False), (None, False)])
def test_a_template_that_gives_read_only_no_more_ends_the_protection(
    scripted: ScriptedService, value: bool | None, flag: bool
) -> None:
    target = ResourceView(
        1,
        "r",
        "OS::Cinder::Volume",
        StackFacts("s", "s", "p"),
        {"read_only": value, "size": None, "volume_type": None},
        physical_id="v",
        key="k",
    )
    volume = {**READ, "attachments": []}
    [change] = VolumeChanges.needed(target, {"read_only", "size", "volume_type"}, volume)
    scripted.answers["POST /volumes/v/action"] = Answer(202)
    VolumeChanges(target, typing.cast(StepContext, VolumeContext(scripted))).begin(change, volume)
    assert scripted.sent == [{"os-update_readonly_flag": {"readonly": flag}}]
