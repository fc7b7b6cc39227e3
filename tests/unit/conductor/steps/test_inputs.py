"""The values of others that a step's definition refers to."""

import base64
import copy
import typing
from dataclasses import replace

import pytest
from stoker.api.views.resources import StackLookup
from stoker.conductor.steps.child_secrets import failing_outputs
from stoker.conductor.steps.inputs import ClaimLookup, SealedLookup
from stoker.db.ids import ResourceId
from stoker.db.work.claim import InputValue
from stoker.resources.nested.base import OUTPUT_ERRORS
from stoker.sealing.sealer import Sealer
from stoker.sealing.stored import RowLookup, SealedRowLookup
from stoker.template.residual import node
from unit.conductor.steps.claims import a_claim, a_row, a_task

Json = typing.Any
ATTRIBUTES = {"value": [{"deep": "x"}]}
ROW = a_row(attributes=ATTRIBUTES, data={OUTPUT_ERRORS: {"bad": "why"}})
CLAIM = replace(a_claim(a_task(), ROW), inputs={"r": InputValue(ResourceId(1), None, ATTRIBUTES)})


class Opening:
    """Opens values, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def open_value(self, value: Json) -> Json:
        self.count += 1
        return copy.deepcopy(value)

    open = peek = open_value


@pytest.mark.parametrize(
    "lookup",
    [
        SealedLookup(CLAIM),
        ClaimLookup(CLAIM, Opening()),
        SealedRowLookup({"r": ROW}),
        RowLookup({"r": ROW}, Opening().open),
        StackLookup([ROW], Sealer([base64.b64encode(bytes(64)).decode()]).of_stack("p", "s")),
    ],
    ids=lambda lookup: type(lookup).__name__,
)
def test_an_attribute_is_converted_once_however_often_it_is_read(lookup: Json) -> None:
    value = lookup.attribute("r", "value")
    assert value == [{"deep": "x"}]
    assert lookup.attribute("r", "value") is value
    assert lookup.attribute("r", "") == ATTRIBUTES


def test_the_data_of_a_nested_stack_are_opened_once_for_all_of_its_outputs() -> None:
    secrets = Opening()
    outputs = {f"o{number}": {"value": node("get_attr", "r", "bad")} for number in range(9)}
    errors = failing_outputs(outputs, {"r": ROW}, typing.cast(Json, secrets))
    assert set(errors.values()) == {"Error in r output bad: why"}
    assert (len(errors), secrets.count) == (9, 1)
