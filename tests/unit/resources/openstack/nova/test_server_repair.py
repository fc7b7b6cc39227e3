"""The repair of a server whose check has failed: it is started, not replaced."""

import typing

import pytest
from harness.fake_context import target_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.steps import Done, Poll, Step
from stoker.resources.openstack.nova.server import Server

Json = typing.Any
SERVER = Server()
ACTION = "POST /servers/s/action"


def show(scripted: ScriptedService, status: str, task: str | None = None) -> None:
    server = {"id": "s", "name": "s", "status": status, "OS-EXT-STS:task_state": task, "addresses": {}}
    scripted.answers["GET /servers/s"] = Answer(200, {"server": server})


def repair(scripted: ScriptedService, step: Step | None = None) -> Step:
    """The step after another one; None: the first one."""
    scripted.answers["GET /ports"] = Answer(200, {"ports": []})
    scripted.answers[ACTION] = Answer(202)
    target = target_of(SERVER, {"flavor": "f"}, physical_id="s", data={"ports": False})
    context = ScriptedContext(scripted)
    if step is None:
        return SERVER.handle_repair(target, context)
    assert isinstance(step, Poll)
    return SERVER.check_repair_complete(target, step.progress, context)


@pytest.mark.parametrize(
    ("status", "action"), [("SHUTOFF", "os-start"), ("PAUSED", "unpause"), ("SUSPENDED", "resume")]
)
def test_a_server_that_does_not_run_is_started(scripted: ScriptedService, status: str, action: str) -> None:
    show(scripted, status)
    step = repair(scripted)
    show(scripted, status, "powering-on")
    step = repair(scripted, step)
    show(scripted, "ACTIVE")
    step = repair(scripted, step)
    assert isinstance(step, Done)
    sent = [body for request, body in zip(scripted.requests, scripted.sent, strict=True) if request == ACTION]
    assert sent == [{action: None}]
    assert not SERVER.replaced_when_check_failed


@pytest.mark.parametrize("status", ["SHUTOFF", "RESCUE"])
def test_a_server_that_cannot_be_started_fails_as_its_check(scripted: ScriptedService, status: str) -> None:
    show(scripted, status)
    step = repair(scripted)
    with pytest.raises(PermanentError, match=f"'status': expected 'ACTIVE', got '{status}'"):
        repair(scripted, step)
