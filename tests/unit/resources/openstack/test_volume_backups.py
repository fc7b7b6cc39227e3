"""Backups of volumes: the service refuses to delete one that it works on."""

import typing

import pytest
from harness.fake_context import target_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.steps import Done, Poll, Step
from stoker.resources.openstack.cinder.volume import Volume

Json = typing.Any
VOLUME = Volume()
REFUSED = Answer(400, {"badRequest": {"message": "Backup status must be available or error", "code": 400}})
GONE = Answer(404, {"itemNotFound": {"message": "none", "code": 404}})


def show(scripted: ScriptedService, status: str, **fields: Json) -> None:
    backup = {"id": "b", "status": status, **fields}
    scripted.answers["GET /backups/b"] = Answer(200, {"backup": backup})


def steps(scripted: ScriptedService) -> typing.Callable[[Step | None], Step]:
    """The step after another one of the deletion of a snapshot; None: the first one."""
    target = target_of(VOLUME, {"size": 1}, physical_id="v", data={"backup_id": "b"})
    context = ScriptedContext(scripted)

    def following(step: Step | None) -> Step:
        if step is None:
            return VOLUME.handle_delete_snapshot(target, context)
        assert isinstance(step, Poll)
        return VOLUME.check_delete_snapshot_complete(target, step.progress, context)

    return following


def deletions(scripted: ScriptedService) -> int:
    return scripted.requests.count("DELETE /backups/b")


@pytest.mark.parametrize("status", ["creating", "restoring"])
def test_a_backup_is_deleted_once_the_service_works_on_it_no_more(
    scripted: ScriptedService, status: str
) -> None:
    following = steps(scripted)
    scripted.answers["DELETE /backups/b"] = REFUSED
    show(scripted, status)
    step = following(following(None))
    assert deletions(scripted) == 0
    show(scripted, "available")
    scripted.answers["DELETE /backups/b"] = Answer(202)
    step = following(step)
    show(scripted, "deleting")
    step = following(step)
    scripted.answers["GET /backups/b"] = GONE
    assert following(step) == Done()
    assert deletions(scripted) == 1


def test_a_deletion_that_an_earlier_step_has_sent_is_not_sent_again(scripted: ScriptedService) -> None:
    following = steps(scripted)
    show(scripted, "deleting")
    step = following(None)
    scripted.answers["GET /backups/b"] = GONE
    assert following(step) == Done()
    assert following(None) == Done()
    assert deletions(scripted) == 0


def test_a_deletion_that_the_service_refuses_or_fails_fails(scripted: ScriptedService) -> None:
    following = steps(scripted)
    show(scripted, "available")
    scripted.answers["DELETE /backups/b"] = REFUSED
    with pytest.raises(PermanentError, match="Backup status must be"):
        following(None)
    scripted.answers["DELETE /backups/b"] = Answer(202)
    step = following(None)
    show(scripted, "error", fail_reason="the store is away")
    with pytest.raises(PermanentError, match="the store is away"):
        following(step)
