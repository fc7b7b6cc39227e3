"""Values that a request carries: how each is read, and which are refused."""

import dataclasses
import typing

import pytest
from stoker.api.authenticator import NoAuthentication
from stoker.api.context import RequestContext
from stoker.api.errors import SHOWN, Fault
from stoker.api.request import LARGEST, VALUES, HttpRequest, boolean
from stoker.api.settings import ApiLimits
from stoker.db import resources, stacks
from stoker.db.errors import NotFound
from stoker.engine.planning.requests import TypeForbidden

Json = typing.Any
CALLER = RequestContext(project_id="mine")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def request(limits: ApiLimits | None = None, body: Json = None, **query: list[str]) -> HttpRequest:
    """Return a request with these values of parameters, for the stack n/1."""
    path = {"stack_name": "n", "stack_id": "1"}
    return HttpRequest(
        caller=CALLER,
        auth=NoAuthentication(),
        limits=limits or ApiLimits(),
        path=path,
        query=query,
        body=body,
        base_url="http://api",
    )


def refusal(read: typing.Callable[[], object], status: int = 400) -> str:
    """Return the text of the error that a reading ends with."""
    with pytest.raises(Fault) as refused:
        read()
    assert refused.value.status == status
    return refused.value.message


def test_of_one_parameter_the_last_value_counts() -> None:
    assert [request(a=["x", "y"]).one("a"), request(a=["x"]).one("a"), request().one("a")] == ["y", "x", None]


@pytest.mark.parametrize(
    ("given", "split", "values"),
    [
        (["x", "", "y"], False, ["x", "y"]),
        (["x,y"], False, ["x,y"]),
        (["x, y", ",z"], True, ["x", "y", "z"]),
        (["x"] * 500, False, ["x"] * 500),
    ],
)
def test_empty_values_are_left_out(given: list[str], split: bool, values: list[str]) -> None:
    assert request(a=given).values("a", split=split) == values
    assert request(b=given).values("a", split=split) == []


def test_a_parameter_has_few_values() -> None:
    text = f'"a" has {VALUES + 1} values, above the limit of {VALUES}'
    assert refusal(lambda: request(a=["x"] * 501).values("a")) == text


@pytest.mark.parametrize("default", [False, True])
def test_a_flag_is_a_word_for_true_or_false(default: bool) -> None:
    words = ("yes", "True", "1", "no", "False", "0", "", None)
    values = [request(**{} if word is None else {"a": [word]}).flag("a", default=default) for word in words]
    assert values == [True] * 3 + [False] * 3 + [default] * 2
    assert request().flag("a") is False
    assert 'Unrecognized value "maybe" for "a"' in refusal(lambda: request(a=["maybe"]).flag("a"))


def test_a_boolean_of_a_body_may_be_a_word() -> None:
    values = [boolean(value, "a", default=True) for value in (None, True, False, "false", 1)]
    assert values == [True, True, False, False, True]
    assert boolean(None, "a", default=False) is False
    assert 'Unrecognized value "[]" for "a"' in refusal(lambda: boolean([], "a", default=False))


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("7", 7), ("0000000007", 7), (str(LARGEST), 2**31 - 1), ("", None)]
)
def test_a_number_is_whole_and_fits_into_a_column(text: str, number: int | None) -> None:
    assert request(a=[text]).number("a") == number
    assert request(b=[text]).number("a") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "Only integer is acceptable by 'a'."),
        ("1.0", "Only integer is acceptable by 'a'."),
        ("1_0", "Only integer is acceptable by 'a'."),
        ("٣", "Only integer is acceptable by 'a'."),
        ("-1", "Value '-1' is invalid for 'a' which only accepts non-negative integer."),
        ("+1", "Value '+1' is invalid for 'a' which only accepts non-negative integer."),
        ("2147483648", "Value '2147483648' is invalid for 'a' which only accepts non-negative integer."),
        ("00000000001", "Value '00000000001' is invalid for 'a' which only accepts non-negative integer."),
    ],
)
def test_another_number_is_refused_in_heats_words(text: str, words: str) -> None:
    message = refusal(lambda: request(a=[text]).number("a"))
    assert message == f'{words} It must be a whole number from 0 to {LARGEST}, not "{text}"'


@pytest.mark.parametrize(
    ("most", "limit", "length"),
    [(10, None, 10), (10, "5", 5), (10, "11", 10), (10, "0", 0), (0, None, None), (0, "11", 11), (0, "0", 0)],
)
def test_a_page_is_as_long_as_the_caller_and_the_service_allow(
    most: int, limit: str | None, length: int | None
) -> None:
    query = {} if limit is None else {"limit": [limit]}
    assert request(ApiLimits(page=most), **query).limit() == length


def test_a_direction_is_one_of_two_words() -> None:
    words = ("asc", "DESC", "")
    assert [request(sort_dir=[word]).direction() for word in words] == ["asc", "desc", ""]
    assert request().direction() == ""
    long_word = "x" * (SHOWN + 1)
    text = refusal(lambda: request(sort_dir=[long_word]).direction())
    assert text == f'sort_dir must be asc or desc, not "{"x" * SHOWN}…"'


@pytest.mark.parametrize(
    ("word", "actions", "status"),
    [
        ("FAILED", [], "FAILED"),
        ("create_failed", ["CREATE"], "FAILED"),
        ("UPDATE_IN_PROGRESS", ["UPDATE"], "IN_PROGRESS"),
        ("STACK_ADOPT_COMPLETE", ["STACK_ADOPT"], "COMPLETE"),
        ("NONE_SUCH", [], "NONE_SUCH"),
    ],
)
def test_a_status_may_have_its_action_before_it(word: str, actions: list[str], status: str) -> None:
    assert request(status=[word]).statuses("status") == (actions, [status])
    assert request(status=[word], b=["FAILED"]).statuses("b", "status") == (actions, ["FAILED", status])


def test_a_body_has_the_form_of_its_schema() -> None:
    empty = {"a": "", "b": None, "c": [], "d": {}, "e": 0, "f": False}
    assert request(body=empty).valid(SCHEMA, optional="abcdef") == {"e": 0, "f": False}
    assert request(body=empty).valid(SCHEMA) == empty
    assert request(body={"a": "x"}).valid(SCHEMA, optional="a") == {"a": "x"}
    assert "a" in refusal(lambda: request(body={"a": 1}).valid(SCHEMA))
    for body in (None, [], "text"):
        assert refusal(lambda: request(body=body).valid(SCHEMA)) == "The body must be a JSON object"  # noqa: B023


class Row(typing.NamedTuple):
    """A stack, as far as the path decides about it."""

    project_id: str = "mine"
    name: str = "n"
    deleted_at: float | None = None
    id: str = "1"


def test_the_stack_of_a_path_is_of_the_project_and_has_the_name() -> None:
    def find(row: Row) -> Json:
        return request().find_by(lambda stack_id: (typing.cast("Json", row), stack_id))

    def lacking(stack_id: str) -> Json:
        raise NotFound("Stack", stack_id)

    assert find(Row()) == (Row(), "1")
    others = (lambda: find(Row(project_id="other")), lambda: find(Row(name="m")))
    messages = {refusal(read, 404) for read in (*others, lambda: request().find_by(lacking))}
    assert messages == {"The Stack (n/1) could not be found."}


def test_a_deleted_stack_is_no_living_one(monkeypatch: pytest.MonkeyPatch) -> None:
    conn: Json = None
    for row in (Row(), Row(deleted_at=0.0)):
        monkeypatch.setattr(stacks, "get", lambda conn, stack_id: row)  # noqa: B023
        assert request().find_stack(conn) == row
        if row.deleted_at is None:
            assert request().find_living_stack(conn) == row
        else:
            text = refusal(lambda: request().find_living_stack(conn), 404)
            assert text == "The Stack (n) could not be found."


class Sparing(NoAuthentication):
    """Lets nobody have the type T."""

    def may_use(self, caller: RequestContext, type_name: str) -> bool:
        return type_name != "T"


@pytest.mark.parametrize(("types", "is_allowed"), [([], True), (["A", "B"], True), (["A", "T", "B"], False)])
def test_a_caller_may_use_a_stack_whose_types_they_may_all_use(
    types: list[str], is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "types_in", lambda conn, stack_id: types)
    conn: Json = None
    stack: Json = Row()
    asking = dataclasses.replace(request(), auth=Sparing())
    assert [asking.may_use(name) for name in types] == [name != "T" for name in types]
    if is_allowed:
        asking.check_types(conn, stack)
    else:
        with pytest.raises(TypeForbidden, match="T"):
            asking.check_types(conn, stack)
