"""Marks: what is written into a body is found again, and nothing else is."""

import typing
from collections.abc import Iterator

import pytest
from harness.scripted_service import Answer, ScriptedService, serving
from stoker.resources.openstack.marks import (
    FieldMark,
    Mark,
    MetadataMark,
    NameMark,
    TagMark,
    chosen_id,
    mark_of,
    marked,
)
from stoker.resources.openstack.names import is_id
from stoker.resources.openstack.service import Service

Json = typing.Any


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        yield service


@pytest.mark.parametrize(
    ("mark", "before", "after", "query"),
    [
        (FieldMark(), {"a": 1}, {"a": 1, "description": "stoker-k"}, {"description": "stoker-k"}),
        (NameMark(), {"name": "n"}, {"name": "stoker-k"}, {"name": "stoker-k"}),
        (TagMark(), {"tags": ["t"]}, {"tags": ["t", "stoker-k"]}, {"tags": "stoker-k"}),
        (TagMark(), {}, {"tags": ["stoker-k"]}, {"tags": "stoker-k"}),
        (
            MetadataMark(),
            {"metadata": {"a": "b"}},
            {"metadata": {"a": "b", "stoker": "stoker-k"}},
            {"metadata": "{'stoker': 'stoker-k'}"},
        ),
        (MetadataMark(), {}, {"metadata": {"stoker": "stoker-k"}}, {"metadata": "{'stoker': 'stoker-k'}"}),
    ],
)
def test_a_mark_is_found_in_the_body_that_it_was_put_into(
    mark: Mark, before: Json, after: Json, query: Json
) -> None:
    body = dict(before)
    mark.put(body, mark_of("k"))
    assert body == after
    assert mark.query(mark_of("k")) == query
    assert mark.is_on(body, mark_of("k"))
    assert not mark.is_on(body, mark_of("other"))
    assert not mark.is_on(before, mark_of("k"))


def test_the_oldest_with_the_mark_comes_first(scripted: ScriptedService) -> None:
    networks = [
        {"id": "young", "tags": ["stoker-k"], "created_at": "2026-01-02"},
        {"id": "old", "tags": ["stoker-k"], "created_at": "2026-01-01"},
        {"id": "foreign", "tags": ["stoker-kk"], "created_at": "2025-01-01"},
        {"id": "none", "tags": None},
    ]
    scripted.answers["GET /things?tags=stoker-k"] = Answer(200, {"things": networks})
    service = Service(scripted.adapter("network"))
    assert marked(TagMark(), mark_of("k"), service, "/things", "things") == ["old", "young"]


def test_an_id_follows_from_the_key() -> None:
    assert chosen_id("k") == chosen_id("k") != chosen_id("other")
    assert is_id(chosen_id("k"))
