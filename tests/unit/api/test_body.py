"""Parsing of request bodies: JSON as RFC 8259 has it, of bounded depth, in texts that can be stored."""

import json
import typing

import falcon.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stoker.api.bodies import MAX_DEPTH, parse, read_body
from stoker.api.errors import Fault

Json = typing.Any
CLEAN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | CLEAN,
    lambda inner: st.lists(inner) | st.dictionaries(CLEAN, inner),
    max_leaves=30,
)


@given(TREES)
def test_what_json_can_say_is_parsed_as_it_is(tree: Json) -> None:
    assert parse(json.dumps(tree).encode()) == tree
    assert parse(json.dumps(tree, ensure_ascii=False).encode()) == tree


@given(CLEAN, st.sampled_from(["\0", "\ud800", "\udfff"]), CLEAN, st.integers(0, 3))
def test_a_text_that_cannot_be_stored_is_refused_wherever_it_is(
    before: str, wrong: str, after: str, place: int
) -> None:
    text = before + wrong + after
    tree = [[text], {"key": text}, {text: 1}, {"a": [{"b": [text]}]}][place]
    with pytest.raises(Fault) as refused:
        parse(json.dumps(tree).encode())
    assert refused.value.status == 400
    # The answer is text itself.
    refused.value.message.encode()


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert parse(b'"\\ud83d\\ude00"') == "😀"


def test_the_contents_of_files_may_hold_nul() -> None:
    assert parse(b'{"files": {"a": "\\u0000"}}') == {"files": {"a": "\0"}}
    with pytest.raises(Fault, match="NUL"):
        parse(b'{"parameters": {"files": "\\u0000"}}')


@pytest.mark.parametrize("kind", ["lists", "maps"])
def test_the_limit_of_depth_is_sharp(kind: str) -> None:
    def nested(levels: int) -> bytes:
        opening, closing = (b"[", b"]") if kind == "lists" else (b'{"a":', b"}")
        return opening * levels + b"1" + closing * levels

    parse(nested(MAX_DEPTH))
    with pytest.raises(Fault, match=f"deeper than {MAX_DEPTH} levels"):
        parse(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "raw",
    [
        b"NaN",
        b"-Infinity",
        b"1e400",
        b"-1e400",
        b"9" * 5000,
        b'"\xff"',
        b"[" * 100_000,
        b'\xef\xbb\xbf"bom"',
        b"1 2",
    ],
)
def test_what_is_not_json_is_refused(raw: bytes) -> None:
    with pytest.raises(Fault, match="JSON body malformed"):
        parse(raw)


@pytest.mark.parametrize(("error", "status"), [(ValueError("a chunk"), 400), (OSError("late"), 408)])
def test_a_body_that_another_server_cannot_read_is_the_clients_fault(error: Exception, status: int) -> None:
    class Stream:
        def read(self, size: int = -1) -> bytes:
            raise error

    environ = falcon.testing.create_environ(method="POST", headers={"Transfer-Encoding": "chunked"})
    request = falcon.Request({**environ, "wsgi.input": Stream(), "wsgi.input_terminated": True})
    with pytest.raises(Fault) as refused:
        read_body(request, 1000)
    assert refused.value.status == status
