"""Further findings in a template after its first error."""

import typing

import pytest
from stoker.features.preview import template_findings
from stoker.features.preview.template_findings import find_repeated, find_warnings
from stoker.template.compile import Identity, Limits, Source, compile_template

Json = typing.Any


def warnings(value: Json, unknown: frozenset[str] = frozenset(), **sections: Json) -> list[str]:
    body = {"type": "T", "properties": {"p": value}}
    template = {"heat_template_version": "2018-08-31", "resources": {"r": body}, **sections}
    source = Source(template, unknown=unknown)
    plan = compile_template(source, identity=Identity("s", "", "p"), limits=Limits(), seal=str)
    return find_warnings(template, plan, unknown)


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [("get_parm", "get_param"), ("get_atr", "get_attr"), ("str_replce", "str_replace"), ("Get_Param", None)],
)
def test_a_misspelt_function_is_named(word: str, suggestion: str | None) -> None:
    findings = warnings([{word: "x"}])
    assert len(findings) == (suggestion is not None)
    said = f'p[0]: "{word}" is not a function'
    assert all(said in text and f'"{suggestion}"?' in text for text in findings)


@pytest.mark.parametrize(
    "value", [{"filters": 1}, {"file_name": 1}, {"get_parm": 1, "x": 2}, {"user_data": {}}]
)
def test_data_is_no_misspelt_function(value: Json) -> None:
    assert warnings(value) == []


def test_as_many_words_are_compared_as_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_findings, "_MOST_COMPARED", 3)
    assert warnings([{f"a_{n}": 1} for n in range(3)] + [{"get_parm": "x"}]) == []
    assert len(warnings([{"get_parm": str(n)} for n in range(99)])) == template_findings.MOST_WARNINGS


def test_an_output_whose_parameter_has_no_value_yet_is_no_reason_to_warn() -> None:
    sections = {"parameters": {"a": {"type": "string"}}, "outputs": {"o": {"value": {"get_param": "a"}}}}
    assert warnings("x", frozenset({"a"}), **sections) == []
    sections["outputs"] = {"o": {"value": {"get_resource": "no"}}}
    first, second = warnings("x", frozenset({"a"}), **sections)
    assert first.startswith("outputs.o: its value cannot be computed")
    assert second == "parameters.a: nothing uses this parameter"


def test_an_unused_condition_without_its_parameter_is_named() -> None:
    conditions = {"unused": {"equals": [{"get_param": "absent"}, 1]}}
    text = 'conditions.unused.equals[0]: the template has no parameter "absent"; nothing uses this condition'
    assert warnings({}, conditions=conditions) == [text]


def test_what_has_no_effect_is_named() -> None:
    outputs = {"o": {"value": 1, "vlaue": 2, "description": "d"}}
    [text] = warnings("x", outputs=outputs)
    assert text == 'outputs.o.vlaue: no key of an output, so it has no effect; did you mean "value"?'
    [text] = find_repeated({"template": "a: 1", "inner.yaml": "b: 1\nb: 2"})
    assert text == 'inner.yaml: the key "b" is in its map twice, again in line 2; the last one counts'
