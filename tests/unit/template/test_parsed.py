"""Documents that were parsed before: whose they are, what they cost, and how many are kept."""

import tracemalloc

import pytest
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import Goal
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template import load
from stoker.template.budget import Budget
from stoker.template.compile import Identity, Limits
from stoker.template.load import load_document
from stoker.template.parsed import ParsedDocuments

TEXT = "a: &x {b: [1, 2]}\nc: *x\n"


def test_who_changes_a_document_changes_no_later_one() -> None:
    parsed = ParsedDocuments().of("shop")
    for _ in range(3):
        document = load_document(TEXT, parsed=parsed)
        assert document == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}}
        document["a"]["b"].append(3)


def test_a_text_is_found_by_the_project_that_has_sent_it_and_by_no_other() -> None:
    documents = ParsedDocuments()
    load_document(TEXT, parsed=documents.of("shop"))
    assert documents.of("shop").find(TEXT) is not None
    assert documents.of("other").find(TEXT) is None
    assert documents.of("shop").find(f"{TEXT} ") is None


def test_a_document_that_was_parsed_before_takes_as_many_steps() -> None:
    parsed = ParsedDocuments().of("shop")
    budgets = [Budget() for _ in range(3)]
    load_document(TEXT, budget=budgets[0])
    for budget in budgets[1:]:
        load_document(TEXT, budget=budget, parsed=parsed)
    assert budgets[0].steps == budgets[1].steps == budgets[2].steps > 0


def test_the_documents_that_were_read_last_are_kept_as_far_as_there_is_room() -> None:
    documents = ParsedDocuments(most=2200)
    parsed = documents.of("shop")
    texts = [f"a: {letter * 400}" for letter in "xyz"]
    for text in (texts[0], texts[1], texts[0], texts[2], "a: " + 2000 * "l"):
        load_document(text, parsed=parsed)
    assert [parsed.find(text) is not None for text in texts] == [True, False, True]


def test_the_store_takes_no_more_memory_than_it_may() -> None:
    """Many small texts count as what they take, not as their characters."""
    documents = ParsedDocuments(most=1_000_000)
    tracemalloc.start()
    try:
        for number in range(5000):
            documents.keep("shop", f"a: {number}", {"a": number}, 5)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1_500_000


def test_a_template_that_a_project_sends_again_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    parse = load._parsed
    monkeypatch.setattr(load, "_parsed", lambda text, *rest: texts.append(text) or parse(text, *rest))
    compiler = GoalCompiler(ResourceRegistry.installed(), Limits())
    sealer = Sealer(["A" * 86 + "=="]).of_stack("shop", "root")
    template = "heat_template_version: 2021-04-16\nresources: {r: {type: inner.yaml}}\n"
    inner = "heat_template_version: 2021-04-16\nresources: {r: {type: OS::Heat::None}}\n"
    for name in ("one", "two"):
        goal = Goal(template, files={"inner.yaml": inner})
        compiler.compile(goal, Identity(name, f"id-{name}", "shop"), sealer)
    assert texts == [template, inner]
