"""Every kind of task that is claimed has a class of steps, and every class calls methods that types have."""

import pytest
from stoker.conductor.steps.kinds.base import TaskStep
from stoker.conductor.steps.kinds.table import KINDS
from stoker.db.states import DELETING, TaskKind
from stoker.resources.nested.base import NestedType


def test_every_kind_of_task_that_is_claimed_has_a_class_of_its_own() -> None:
    assert set(KINDS) == set(TaskKind)
    assert len(set(KINDS.values())) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_types_have_the_methods_that_a_step_calls(kind: TaskKind) -> None:
    if kind == TaskKind.SIGNAL:  # It is done at once.
        assert callable(NestedType.carry_out)
        return
    action = KINDS[kind].action
    assert callable(getattr(NestedType, f"handle_{action}"))
    assert callable(getattr(NestedType, f"check_{action}_complete"))


@pytest.mark.parametrize("kind", KINDS)
def test_only_steps_that_remove_a_row_end_without_values_for_others(kind: TaskKind) -> None:
    removes = kind in {*DELETING, TaskKind.DELETE_SNAPSHOT}
    assert (KINDS[kind].complete is not TaskStep.complete) == removes
