"""Reading what is stored: in clear, masked, and with nothing evaluated or opened that only looks like it."""

import typing

import pytest
from services.db.rows import a_resource
from stoker.api.errors import fault_of
from stoker.api.views.resources import StackLookup, unsealer
from stoker.api.views.stacks import output
from stoker.db.ids import StackId
from stoker.db.rows import Resource
from stoker.engine.stored_resource import metadata_changed
from stoker.sealing.sealer import Sealer, SealError
from stoker.sealing.stored import (
    MASK,
    InClear,
    Masked,
    RowLookup,
    SealedRowLookup,
    StoredLookup,
    as_residual,
    in_clear,
    masked,
    metadata_in_clear,
    metadata_retokened,
)
from stoker.template.residual import evaluate, is_deferred, partial, quote, sealed, unquoted

Json = typing.Any
KEY = Sealer.generate_key()
SEALER = Sealer([KEY])
HERE = SEALER.of_stack("project", "root")
ELSEWHERE = SEALER.of_stack("other", "root")
LOST = Sealer([Sealer.generate_key()]).of_stack("project", "root")


def function(name: str, *args: Json) -> Json:
    return {"$fn": name, "args": list(args)}


LOOKS_LIKE = [
    function("sealed", ELSEWHERE.seal("stolen")),
    function("sealed", "x", "y"),
    {**function("sealed", ELSEWHERE.seal("stolen")), "v": "2013-05-23"},
    function("list_join", "no list"),
    function("get_attr"),
    function("nothing"),
    function("literal"),
    function("literal", "no map"),
    {"$fn": None},
    {"$fn": ["sealed"], "args": {}},
]


def row(**columns: Json) -> Resource:
    return a_resource(StackId("s"), 1, "r", **columns)


@pytest.mark.parametrize("value", LOOKS_LIKE, ids=range(len(LOOKS_LIKE)))
def test_data_is_never_read_as_anything_else(value: Json) -> None:
    deep = {"below": [value]}
    for stored in (quote(deep), quote(value)):
        assert unquoted(stored) in (deep, value)
        assert in_clear(stored, HERE.open) in (deep, value)
        assert not is_deferred(as_residual(stored))
        assert unquoted(as_residual(stored)) in (deep, value)
    quoted = quote(deep)
    resource = row(data=quoted, metadata={"1": quoted}, attributes={"a": quoted}, reference_id=quoted)
    assert Masked().data(resource) == deep
    assert isinstance(Masked().metadata(resource), dict)
    lookup = StackLookup([resource], HERE)
    assert lookup.attribute("r", "a") == lookup.reference_id("r") == deep


@pytest.mark.parametrize("value", LOOKS_LIKE, ids=range(len(LOOKS_LIKE)))
def test_signals_are_not_evaluated_next_to_a_template_entry_that_is(value: Json) -> None:
    definition = {"metadata": {"own": sealed(HERE.seal("word")), "plain": {"a": 1}}}
    data = {"plain": {"data": value}, "1": {"status": "SUCCESS", "data": value, "reason": ""}}
    metadata = {**quote(data), "own": sealed(HERE.seal("word"))}
    clear = metadata_in_clear(row(definition=definition, metadata=metadata), HERE.open)
    assert clear == {**data, "own": "word"}


def test_metadata_that_a_function_or_a_secret_makes_is_one_value() -> None:
    tree = function("map_merge", [{"a": 1}, sealed(HERE.seal({"b": 2}))])
    resource = row(definition={"metadata": tree}, metadata=tree)
    clear = metadata_in_clear(resource, HERE.open)
    assert clear == {"a": 1, "b": 2}
    changed = metadata_changed(tree, clear, {**clear, "1": "new"}, HERE.seal)
    assert "new" not in str(changed)
    assert metadata_in_clear(row(metadata=changed), HERE.open) == {"a": 1, "b": 2, "1": "new"}


def test_what_a_change_of_metadata_leaves_stays_sealed() -> None:
    definition = {"metadata": {"own": sealed(HERE.seal("word"))}}
    resource = row(definition=definition, metadata={"own": sealed(HERE.seal("word")), "1": {"n": 1}})
    clear = metadata_in_clear(resource, HERE.open)
    after = {**clear, "$fn": "sealed", "args": [ELSEWHERE.seal("stolen")]}
    changed = metadata_changed(resource.metadata, clear, after, HERE.seal)
    assert "word" not in str(changed)
    assert metadata_in_clear(row(definition=definition, metadata=changed), HERE.open) == after
    assert masked(changed) == {**after, "own": MASK}


@pytest.mark.parametrize(
    "token",
    [ELSEWHERE.seal("x"), LOST.seal("x"), "", "a.b.c"],
    ids=["of another stack", "of another key", "empty", "no token"],
)
def test_a_token_that_does_not_open_is_masked_and_breaks_no_answer(
    token: str, caplog: pytest.LogCaptureFixture
) -> None:
    resource = row(
        definition={"metadata": {"m": sealed("")}},
        metadata={"m": [sealed(token)]},
        attributes={"a": sealed(token), "b": 1},
        reference_id=sealed(token),
        properties={"p": sealed(token)},
    )
    lookup = StackLookup([resource], HERE)
    assert lookup.attribute("r", "") == {"a": MASK, "b": 1}
    value = [function("get_attr", "r", "a"), function("get_resource", "r"), sealed(token)]
    view = output("o", {"value": value, "description": ""}, lookup)
    assert view["output_value"] == [MASK, MASK, MASK]
    assert metadata_in_clear(resource, unsealer(HERE)) == {"m": [MASK]}
    assert "Opening a sealed value failed, showing ******" in caplog.text


def test_what_needs_a_value_that_does_not_open_is_refused_with_the_reason() -> None:
    with pytest.raises(SealError) as caught:
        HERE.open(ELSEWHERE.seal("x"))
    fault = fault_of(caught.value)
    assert fault is not None
    assert (fault.status, fault.kind) == (409, "SecretUnreadable")
    assert "it was changed, or sealed for another stack" in fault.message


def test_attributes_become_part_of_what_is_stored_as_they_are_stored() -> None:
    class Rows:
        def reference_id(self, resource: str) -> Json:
            return as_residual("id")

        def attribute(self, resource: str, name: str) -> Json:
            return {
                "secret": as_residual(sealed(HERE.seal("word"))),
                "data": as_residual(quote(LOOKS_LIKE[0])),
            }[name]

        def unseal(self, token: str) -> Json:
            return HERE.open(token)

    tree = {"s": function("get_attr", "r", "secret"), "d": function("get_attr", "r", "data", "args", 0)}
    residual = partial(tree, Rows())
    assert "word" not in str(residual)
    assert evaluate(residual, Rows()) == {"s": "word", "d": LOOKS_LIKE[0]["args"][0]}


def test_stored_values_refer_to_no_resource() -> None:
    lookup = StoredLookup(HERE.open)
    with pytest.raises(LookupError, match=r"^r$"):
        lookup.reference_id("r")
    with pytest.raises(LookupError, match=r"^r\.a$"):
        lookup.attribute("r", "a")


def test_rows_are_looked_up_in_clear_or_sealed() -> None:
    token = sealed(HERE.seal("word"))
    looks = {"$fn": "nothing"}
    attributes = {"a": token, "b": quote(looks)}
    rows = {"r": row(reference_id=token, attributes=attributes), "empty": row(attributes=None)}
    clear = RowLookup(rows, HERE.open)
    assert (clear.reference_id("r"), clear.attribute("r", "a")) == ("word", "word")
    assert clear.attribute("r", "") == {"a": "word", "b": looks}
    assert (clear.attribute("empty", ""), clear.attribute("empty", "a")) == ({}, None)
    hidden = SealedRowLookup(rows)
    assert (hidden.reference_id("r"), hidden.attribute("r", "a")) == (token, token)
    assert evaluate(hidden.attribute("r", ""), StoredLookup(HERE.open)) == {"a": "word", "b": looks}
    assert hidden.attribute("empty", "a") is None
    assert evaluate(hidden.attribute("empty", ""), StoredLookup(HERE.open)) == {}
    with pytest.raises(AssertionError, match="a secret would be opened"):
        hidden.unseal(HERE.seal("word"))


def test_a_residual_is_shown_as_in_a_template() -> None:
    token = sealed(HERE.seal("word"))
    tree = {
        "one": function("get_param", "p"),
        "several": function("get_attr", "r", "a", 0),
        "without a name": function("get_attr", "r", ""),
        "error": function("error", "why"),
        "quoted": function("literal", {"$fn": [token]}),
        "list": [token, 1],
    }
    assert Masked().residual(tree) == {
        "one": {"get_param": "p"},
        "several": {"get_attr": ["r", "a", 0]},
        "without a name": {"get_attr": ["r"]},
        "error": None,
        "quoted": {"$fn": [MASK]},
        "list": [MASK, 1],
    }


def test_values_are_shown_in_clear_to_those_who_may_read_them() -> None:
    token = sealed(HERE.seal("word"))
    values = InClear(HERE.open)
    assert values.residual({"a": [token]}) == {"a": ["word"]}
    assert (values.data(row(data=token)), values.data(row(data=None))) == ("word", {})
    declared = {"metadata": {"own": token}}
    assert values.metadata(row(definition=declared, metadata={"own": token})) == {"own": "word"}
    assert (values.metadata(row(metadata=None)), Masked().metadata(row(metadata=None))) == ({}, {})
    assert Masked().metadata(row(metadata={"own": token})) == {"own": MASK}
    assert (Masked().data(row(data=token)), Masked().data(row(data=None))) == (MASK, {})


def test_tokens_of_metadata_change_where_the_template_has_them() -> None:
    def change(token: str) -> str:
        return f"new {token}"

    merged = function("map_merge", [sealed("t")])
    assert metadata_retokened(merged, None, change) == function("map_merge", [sealed("new t")])
    # What a function makes may have come under any name.
    of_function = {"metadata": merged}
    entries = {"a": sealed("t"), "b": 1}
    assert metadata_retokened(entries, of_function, change) == {"a": sealed("new t"), "b": 1}
    declared = {"metadata": {"a": sealed("t"), "plain": 1}}
    entries = {"a": sealed("t"), "plain": sealed("t"), "1": sealed("t")}
    renewed = {**entries, "a": sealed("new t")}
    assert metadata_retokened(entries, declared, change) == renewed
    assert metadata_retokened(function("literal", entries), declared, change) == function("literal", renewed)
    assert metadata_retokened({"1": sealed("t")}, None, change) == {"1": sealed("t")}
