"""Event sinks of environments: what is accepted, and how what is wrong is named."""

import string
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stoker.template.environment import parse_environment
from stoker.template.errors import TemplateError
from stoker.template.event_sinks import MOST_SINKS, EventSink, parse_sinks

Json = typing.Any
PATH = ("environment", "event_sinks")
NAMES = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=64)


def sink(target: Json = "q", **more: Json) -> Json:
    return {"type": "zaqar-queue", "target": target, **more}


@given(NAMES, st.integers(60, 1_209_600))
def test_what_zaqar_takes_is_accepted(target: str, ttl: int) -> None:
    sinks = [sink(target, ttl=ttl), sink(target)]
    env = parse_environment({"event_sinks": sinks})
    assert env.event_sinks == sinks
    assert env.queues == tuple(dict.fromkeys([(target, ttl), (target, 3600)]))


def test_equal_sinks_count_once() -> None:
    assert parse_sinks([sink(), sink("r"), sink(ttl=3600)], PATH) == (EventSink("q"), EventSink("r"))


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        ({}, "environment.event_sinks: must be a list"),
        (["q"], "environment.event_sinks.0: must be a map with a type"),
        ([{"target": "q"}], "environment.event_sinks.0: must be a map with a type"),
        (
            [sink(), {"type": "webhook", "target": "x"}],
            'environment.event_sinks.1.type: "webhook" is not a type of event sink; known: zaqar-queue',
        ),
        (
            [sink(tll=60)],
            'environment.event_sinks.0: "tll" is not a key of an event sink; did you mean "ttl"?',
        ),
        ([{"type": "zaqar-queue"}], "environment.event_sinks.0.target: Queue name must be a string"),
        ([sink(7)], "environment.event_sinks.0.target: Queue name must be a string"),
        ([sink("")], "environment.event_sinks.0.target: Queue name length must be 1-64"),
        ([sink("q" * 65)], "environment.event_sinks.0.target: Queue name length must be 1-64"),
        ([sink("a/../b")], "environment.event_sinks.0.target: the name of a queue has letters of ASCII"),
        ([sink("q\n")], "environment.event_sinks.0.target: the name of a queue has letters of ASCII"),
        *(
            ([sink(ttl=ttl)], "environment.event_sinks.0.ttl: must be an integer from 60 to 1209600")
            for ttl in (59, 1_209_601, "60", 60.0, True)
        ),
        (
            [sink(f"q{i}") for i in range(MOST_SINKS + 1)],
            "environment.event_sinks: a stack has 10 event sinks",
        ),
    ],
)
def test_what_is_wrong_is_named(entries: Json, error: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_environment({"event_sinks": entries or {"a": 1}})
    assert str(caught.value).startswith(error)
