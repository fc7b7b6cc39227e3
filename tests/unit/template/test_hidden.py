"""Which parameters a tree of stacks hides is found in whatever may hold a template."""

import json

import pytest
from stoker.template.budget import Budget, BudgetLimits
from stoker.template.errors import LimitExceeded
from stoker.template.hidden import hidden_names

TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  shown: {type: string}
  secret: {type: string, hidden: true}
  quoted: {"type": "string", "hidden": "yes"}
  open: {type: string, hidden: false}
  wrong: {type: string, hidden: perhaps}
"""
FOUND = {"secret", "quoted"}


@pytest.mark.parametrize(
    "document",
    [
        TEMPLATE,
        {"parameters": {"secret": {"hidden": True}, "quoted": {"hidden": "true"}, "open": {"hidden": 0}}},
        {"any": ["where", {"below": TEMPLATE}]},
        {"any": ("where", {"below": TEMPLATE})},
        json.dumps({"parameters": {"a": {"default": TEMPLATE, "hidden": False}}}),
    ],
)
def test_they_are_found(document):
    assert hidden_names([document], depth=5) == FOUND


@pytest.mark.parametrize(
    "document",
    [
        "",
        "hidden: {",
        "- hidden: true",
        "hidden: true",
        "parameters: [hidden: true]",
        5,
        None,
        {"hidden": 1},
        {"parameters": {"a": "hidden"}, "Parameters": {"a": 1}},
    ],
)
def test_documents_that_are_no_templates_hide_nothing(document):
    assert hidden_names([document, TEMPLATE], depth=5) == FOUND


def test_texts_inside_of_texts_are_read_down_to_a_depth():
    text = TEMPLATE
    for level in range(4):
        text = json.dumps({"resources": text, "parameters": {f"level{level}": {"hidden": True}}})
    assert hidden_names([text], depth=5) == {*FOUND, "level0", "level1", "level2", "level3"}
    assert hidden_names([text], depth=2) == {"level3", "level2"}


def test_what_is_too_long_to_be_a_template_is_not_read_and_reading_is_charged():
    assert hidden_names([TEMPLATE], depth=5, max_bytes=len(TEMPLATE) - 1) == set()
    assert hidden_names([TEMPLATE], depth=5, max_bytes=len(TEMPLATE)) == FOUND
    steps = len(TEMPLATE) // 2
    assert hidden_names([TEMPLATE], depth=5, budget=Budget(BudgetLimits(steps=steps))) == FOUND
    with pytest.raises(LimitExceeded):
        hidden_names([TEMPLATE], depth=5, budget=Budget(BudgetLimits(steps=steps - 1)))
    texts = [TEMPLATE + "#" * count for count in range(100)]
    with pytest.raises(LimitExceeded):
        hidden_names(texts, depth=5, budget=Budget(BudgetLimits(steps=1000)))
