"""The view of a resource that a step builds for its type."""

import base64
import contextlib
import typing
from dataclasses import replace

import pytest
from stoker.conductor.steps.target import NeverMade, make_target
from stoker.db.ids import ResourceId
from stoker.db.states import TaskKind
from stoker.db.work.claim import Claim, InputValue
from stoker.engine.planning.plan import TaskDefinition
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.properties import Property
from stoker.sealing.sealer import Sealer
from stoker.sealing.secrets import Secrets
from stoker.template.budget import SOURCE, Budget, BudgetLimits
from stoker.template.residual import node, sealed
from unit.conductor.steps.claims import a_claim, a_row, a_task

Json = typing.Any
LARGE = "x" * 1000


class Thing(ResourceType):
    properties_schema = {"value": Property("any")}


class Little:
    """A source of budgets of some hundred bytes."""

    def budget(self, limits: BudgetLimits) -> contextlib.AbstractContextManager[Budget]:
        return contextlib.nullcontext(Budget(BudgetLimits(bytes=500)))


@pytest.fixture
def secrets() -> Secrets:
    return Secrets(Sealer([base64.b64encode(bytes(64)).decode()]).of_stack("p", "s"))


def a_deletion(value: Json) -> Claim:
    """The deletion of a resource of whose creation nothing was stored."""
    row = a_row("IN_PROGRESS", definition={"properties": {"value": value}})
    claim = a_claim(a_task(TaskKind.DELETE), row)
    return replace(claim, inputs={"other": InputValue(ResourceId(1), None, {"large": LARGE})})


def test_a_resource_was_never_made_if_its_properties_can_never_be_computed(secrets: Secrets) -> None:
    with pytest.raises(NeverMade, match="no such attribute"):
        make_target(a_deletion(node("error", "no such attribute")), Thing(), TaskDefinition(), secrets)


@pytest.mark.parametrize(
    "value",
    [
        node("get_attr", "other", "large"),
        node("list_join", [",", [LARGE]]),
        node("list_join", [sealed("token"), [LARGE]]),
    ],
    ids=["value", "function", "secret"],
)
def test_a_resource_may_have_been_made_if_its_properties_cost_too_much_now(
    secrets: Secrets, monkeypatch: pytest.MonkeyPatch, value: Json
) -> None:
    """Its creation may have had more time, on an idle host."""
    monkeypatch.setattr(secrets, "open", lambda token: ",")
    token = SOURCE.set(Little())
    try:
        target, _ = make_target(a_deletion(value), Thing(), TaskDefinition(), secrets)
    finally:
        SOURCE.reset(token)
    assert target.properties == {"value": None}
