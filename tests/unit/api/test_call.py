"""Bodies that fit their schema, and those that would take long to be checked."""

import time

import pytest
from stoker.api import schemas
from stoker.api.errors import Fault, fault_of
from stoker.api.schemas import MOST_ENTRIES, validated
from stoker.template.sandbox.errors import HelperUnavailable

NAMES = {"type": "array", "items": {"type": "string"}}


def refused(value, schema, context=""):
    with pytest.raises(Fault) as caught:
        validated(value, schema, context)
    assert caught.value.status == 400
    return caught.value.message


def test_a_body_that_fits_is_returned():
    body = {"clear_parameters": ["a"] * 100}
    assert validated(body, schemas.UPDATE) is body


@pytest.mark.parametrize(
    ("body", "schema", "path"),
    [
        ({"clear_parameters": [""] * (MOST_ENTRIES + 1)}, schemas.UPDATE, "clear_parameters"),
        (
            {"stack_name": "a", "files": {str(n): "" for n in range(MOST_ENTRIES + 1)}},
            schemas.CREATE,
            "files",
        ),
        ({"continue": {"resources": ["a"] * (MOST_ENTRIES + 1)}}, schemas.GO_ON, "continue.resources"),
    ],
)
def test_a_list_or_map_of_very_many_is_refused_before_its_entries_are_checked(body, schema, path):
    text = f"body: {path}: has {MOST_ENTRIES + 1} entries, above the limit of {MOST_ENTRIES}"
    assert refused(body, schema, "body: ") == text


def test_of_very_many_errors_not_all_are_compared():
    since = time.thread_time()
    assert " is not of type string" in refused([1] * MOST_ENTRIES, NAMES)
    some = time.thread_time() - since
    since = time.thread_time()
    refused([*[""] * (MOST_ENTRIES - 1), 1], NAMES)
    assert some < (time.thread_time() - since) / 3


def test_a_request_that_finds_no_helper_may_come_again():
    fault = fault_of(HelperUnavailable("no helper process was free for 4 s"))
    assert (fault.status, fault.kind) == (503, "ServiceUnavailable")
    assert "no helper process was free" in fault.message
