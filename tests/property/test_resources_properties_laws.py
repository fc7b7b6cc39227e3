"""Laws of property values, for random schemas and random values, right and wrong ones."""

import json
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st
from stoker.resources.contract.errors import PropertyError
from stoker.resources.contract.properties import changed, resolve_properties, validate_properties
from stoker.resources.contract.schema import Property
from stoker.template.constraints import Length, Range
from stoker.template.residual import is_node, node, quote

LATER = {"$fn": "get_attr", "args": ["other", "value"]}
NAMES = ("a", "b", "c")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 2.0, "1", "0.5", "true", "", "text", "nan"])
)
names = st.sampled_from([*NAMES, "$fn"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def constraints_of(kind):
    if kind in ("integer", "number"):
        return st.sampled_from([(), (Range(minimum=0),)])
    if kind in ("string", "list", "map"):
        return st.sampled_from([(), (Length(maximum=3),)])
    return st.just(())


@st.composite
def properties(draw, depth=2):
    kind = draw(st.sampled_from(["string", "integer", "number", "boolean", "map", "list", "any"]))
    nested = None
    if depth and kind == "map":
        nested = draw(st.none() | schemas(depth - 1))
    elif depth and kind == "list":
        nested = draw(st.none() | properties(depth - 1))
    return Property(
        kind,
        required=draw(st.booleans()),
        constraints=draw(constraints_of(kind)),
        schema=nested,
    )


def schemas(depth):
    return st.dictionaries(st.sampled_from(NAMES), properties(depth), max_size=3)


@st.composite
def fitting(draw, prop):
    """A value that is likely to fit, so that deep schemas are reached."""
    if draw(st.integers(0, 9)) == 0:
        return draw(values)
    if isinstance(prop.schema, Property):
        return [draw(fitting(prop.schema)) for _ in range(draw(st.integers(0, 3)))]
    if isinstance(prop.schema, dict):
        return {name: draw(fitting(member)) for name, member in prop.schema.items()}
    right = {
        "string": st.sampled_from(["", "ab", 5]),
        "integer": st.sampled_from([0, 2, "1", "-1"]),
        "number": st.sampled_from([0, 0.5, "1.5"]),
        "boolean": st.sampled_from([True, "false"]),
        "map": st.dictionaries(names, values, max_size=3),
        "list": st.lists(values, max_size=3),
        "any": values,
    }
    return draw(right[prop.type])


@st.composite
def cases(draw):
    schema = draw(st.dictionaries(st.sampled_from(NAMES), properties(), min_size=1))
    given_values = {name: draw(fitting(prop)) for name, prop in schema.items() if draw(st.integers(0, 4))}
    if draw(st.integers(0, 9)) == 0:
        given_values[draw(st.sampled_from([*NAMES, "unknown"]))] = draw(values)
    return schema, given_values


def outcome(check, schema, given_values):
    try:
        return check(schema, given_values), None
    except PropertyError as error:
        return None, str(error)


@given(cases())
def test_literals_are_judged_alike_at_plan_time_and_at_run_time(case):
    schema, given_values = case
    validated, refused = outcome(validate_properties, schema, quote(given_values))
    resolved, failed = outcome(resolve_properties, schema, given_values)
    assert refused == failed
    assert json.dumps(validated, sort_keys=True) == json.dumps(resolved, sort_keys=True)


@st.composite
def deferred(draw, tree):
    """The tree with some parts put off."""
    if draw(st.integers(0, 3)) == 0:
        return LATER
    if is_node(tree):
        return node("literal", {key: draw(deferred(item)) for key, item in tree["args"][0].items()})
    if isinstance(tree, dict):
        return {key: draw(deferred(item)) for key, item in tree.items()}
    if isinstance(tree, list):
        return [draw(deferred(item)) for item in tree]
    return tree


@given(cases(), st.data())
def test_a_deferred_value_never_invalidates_a_valid_one(case, data):
    schema, given_values = case
    resolved, failed = outcome(resolve_properties, schema, given_values)
    assume(failed is None)
    partly = {name: data.draw(deferred(value)) for name, value in quote(given_values).items()}
    validated = validate_properties(schema, partly)
    for name, value in validated.items():
        assert json.dumps(value, sort_keys=True) == json.dumps(resolved[name], sort_keys=True)


def stripped_of_nulls(prop, resolved_values):
    """The property for resolved values of it, and those, without members that are null: they were absent."""
    if isinstance(prop.schema, Property):
        item, items = stripped_of_nulls(prop.schema, [each for value in resolved_values for each in value])
        flat_items = iter(items)
        return replace(prop, schema=item), [[next(flat_items) for _ in value] for value in resolved_values]
    if prop.schema is None:
        return prop, resolved_values
    members = {}
    stripped = [{} for _ in resolved_values]
    for name, member in prop.schema.items():
        having = [index for index, value in enumerate(resolved_values) if value[name] is not None]
        inner, stripped_values = stripped_of_nulls(member, [resolved_values[index][name] for index in having])
        members[name] = replace(inner, required=inner.required and len(having) == len(resolved_values))
        for index, value in zip(having, stripped_values, strict=True):
            stripped[index][name] = value
    return replace(prop, schema=members), stripped


@given(cases())
def test_a_resolved_value_resolves_to_itself(case):
    schema, given_values = case
    resolved, failed = outcome(resolve_properties, schema, given_values)
    assume(failed is None)
    whole, [again] = stripped_of_nulls(Property("map", schema=schema), [resolved])
    assert outcome(resolve_properties, whole.schema, again) == (resolved, None)


@given(values, values)
def test_nothing_differs_from_itself_and_difference_is_mutual(first, second):
    assert not changed({}, {"x": first}, {"x": json.loads(json.dumps(first))})
    assert changed({}, {"x": first}, {"x": second}) == changed({}, {"x": second}, {"x": first})
