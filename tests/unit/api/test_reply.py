"""JSON as text."""

import json

import pytest
from stoker.api.reply import PART, json_text, listing
from stoker.shapes import Json


@pytest.mark.parametrize(
    "body",
    [
        None,
        {"name": "Zürich", "values": [1, 2.5, True, None, "\U0001f525"]},
        {"half of a pair": "\ud83d"},
        {"large": 2**70},
    ],
)
def test_the_text_has_the_value(body: Json) -> None:
    assert json.loads(json_text(body)) == body


def test_keys_that_are_no_texts_become_texts() -> None:
    assert json.loads(json_text({1: "one", None: "none"})) == {"1": "one", "null": "none"}


@pytest.mark.parametrize("count", [0, 1, PART, PART + 1])
def test_a_list_has_all_its_entries_in_order(count: int) -> None:
    views = [{"number": number, "half of a pair": "\ud83d"} for number in range(count)]
    assert json.loads(listing("views", iter(views)).text or b"") == {"views": views}
