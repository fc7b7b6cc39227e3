"""The resource that a step may still make whose claim is lost."""

import typing

import pytest
from stoker.conductor.steps.orphaned_create import orphaned_create
from stoker.db.ids import TaskId
from stoker.db.states import TaskKind
from stoker.db.work.claim import Claim
from stoker.template.residual import node
from unit.conductor.steps.claims import a_claim, a_row, a_task

Json = typing.Any


def claim(kind: TaskKind, definition: Json, **columns: Json) -> Claim:
    return a_claim(a_task(kind, definition=definition), a_row("IN_PROGRESS", **columns))


@pytest.mark.parametrize(
    ("kind", "definition", "columns", "properties"),
    [
        (TaskKind.CREATE, {"properties": {"a": 1}}, {}, {"a": 1}),
        (TaskKind.CREATE, {"properties": {"a": 1}}, {"properties": {"a": 2}}, {"a": 2}),
        (TaskKind.UPDATE, {"properties": {"a": 1}}, {}, None),
        (TaskKind.CREATE, {"properties": {"a": 1}}, {"physical_id": "x"}, None),
        (TaskKind.UPDATE, {"properties": {"a": 1}}, {"physical_id": "x"}, None),
        (TaskKind.CREATE, {"properties": {"a": 1}, "external_id": "x"}, {}, None),
        (TaskKind.CREATE, {"properties": {"a": node("get_resource", "none")}}, {}, None),
    ],
)
def test_only_a_creation_that_can_have_begun_and_has_no_id_yet_may_make_something(
    kind: TaskKind, definition: Json, columns: Json, properties: Json
) -> None:
    orphan = orphaned_create(claim(kind, definition, **columns))
    assert (None if orphan is None else orphan.resource.properties) == properties
    assert orphan is None or orphan.task.id == TaskId(1)
