"""The steps of OS::Heat::None, TestResource, Value, RandomString and Delay."""

import string
from collections import Counter

import pytest
from harness.fake_context import START, FakeContext, after, run, target_of
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import (
    changed,
    replacement_needed,
    resolve_properties,
    validate_properties,
)
from stoker.resources.contract.schema import has_attribute
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.heat.delay import Delay
from stoker.resources.heat.none import NoneResource
from stoker.resources.heat.random_string import RandomString
from stoker.resources.heat.test_resource import TestResource
from stoker.resources.heat.value import Value


@pytest.fixture
def context():
    return FakeContext()


def updated(plugin, target, properties):
    """The target as an update to these properties sees it."""
    fields = {name: getattr(target, name) for name in target.__dataclass_fields__}
    new = resolve_properties(plugin.properties_schema, properties)
    return type(target)(**{**fields, "properties": new, "previous": target.properties})


class TestNone:
    def test_it_takes_any_property_and_knows_any_attribute(self, context):
        plugin = NoneResource()
        created = run(plugin, "create", target_of(plugin, {"image": 5, "disks": [{"a": 1}]}), context)
        assert created.data == {"is_placeholder": "True"}
        assert plugin.reference_id(created) == created.physical_id
        assert has_attribute(plugin.attributes_schema, "first_address")
        assert plugin.attribute_values(created).get("first_address") is None

    def test_no_change_replaces_it(self):
        names = changed(NoneResource.properties_schema, {"a": 1}, {"b": 2})
        assert names == {"a", "b"}
        assert not replacement_needed(NoneResource.properties_schema, names)


class TestTestResource:
    plugin = TestResource()

    def test_it_stores_its_value(self, context):
        created = run(self.plugin, "create", target_of(self.plugin, {"value": 5}, name="web"), context)
        assert self.plugin.attribute_values(created) == {"output": "5"}
        assert created.physical_id == self.plugin.reference_id(created) == "demo-web-111111112222"
        assert context.time == START

    @pytest.mark.parametrize(
        ("properties", "action", "seconds"),
        [
            ({"wait_secs": 7}, "create", 7),
            ({"wait_secs": "0.5"}, "create", 0.5),
            ({"wait_secs": 7, "action_wait_secs": {"create": 3}}, "create", 3),
            ({"wait_secs": 7, "action_wait_secs": {"create": 0}}, "create", 0),
            ({"wait_secs": 7, "action_wait_secs": {"delete": 3}}, "create", 7),
            ({"wait_secs": 7, "action_wait_secs": {"delete": 3}}, "delete", 3),
            ({"action_wait_secs": {"update": 3}}, "update", 3),
            ({"wait_secs": 1, "attr_wait_secs": 2}, "create", 3),
            ({"attr_wait_secs": 2}, "delete", 0),
        ],
    )
    def test_it_waits_as_long_as_polls_say(self, context, properties, action, seconds):
        target = target_of(self.plugin, {**properties, "value": "new"}, physical_id="there")
        run(self.plugin, action, target, context, changed=frozenset({"value"}))
        assert context.time - START == seconds
        assert context.paused == []

    def test_the_wait_continues_from_its_token_on_another_conductor(self, context):
        target = target_of(self.plugin, {"wait_secs": 10})
        begun = self.plugin.handle_create(target, context)
        assert isinstance(begun, Poll)
        assert begun.physical_id is not None
        elsewhere = FakeContext()
        elsewhere.time = START + 4
        assert TestResource().check_create_complete(target, begun.progress, elsewhere) == Poll(
            begun.progress, after=6
        )
        elsewhere.time = START + 10
        assert TestResource().check_create_complete(target, begun.progress, elsewhere) == Done()

    def test_a_negative_wait_never_ends(self, context):
        target = target_of(self.plugin, {"wait_secs": -1, "attr_wait_secs": 5, "fail": True})
        step = self.plugin.handle_create(target, context)
        context.time += 1e9
        assert isinstance(self.plugin.check_create_complete(target, step.progress, context), Poll)

    @pytest.mark.parametrize("seconds", [0, 5])
    def test_it_fails_after_the_wait_with_nothing_made(self, context, seconds):
        target = target_of(self.plugin, {"fail": True, "wait_secs": seconds}, name="web")
        with pytest.raises(PermanentError, match="^Test Resource failed web$") as caught:
            run(self.plugin, "create", target, context)
        assert caught.value.kind == "ValueError"
        assert context.time - START == seconds

    def test_it_fails_before_anything_is_stored(self, context):
        step = self.plugin.handle_create(target_of(self.plugin, {"fail": True, "wait_secs": 5}), context)
        assert (step.physical_id, step.data) == (None, None)

    def test_deletion_does_not_fail(self, context):
        run(self.plugin, "delete", target_of(self.plugin, {"fail": True}), context)

    def test_a_new_value_is_stored_in_place(self, context):
        created = run(self.plugin, "create", target_of(self.plugin, {"value": "a"}), context)
        new = updated(self.plugin, created, {"value": "b"})
        done = run(self.plugin, "update", new, context, changed=frozenset({"value"}))
        assert self.plugin.attribute_values(done) == {"output": "b"}
        assert done.physical_id == created.physical_id

    def test_an_update_to_fail_fails_and_keeps_the_old_value(self, context):
        created = run(self.plugin, "create", target_of(self.plugin, {"value": "a"}), context)
        new = updated(self.plugin, created, {"value": "b", "fail": True, "wait_secs": 2})
        step = self.plugin.handle_update(new, frozenset({"value", "fail"}), context)
        assert self.plugin.attribute_values(after(new, step)) == {"output": "a"}
        context.time += 2
        with pytest.raises(PermanentError):
            self.plugin.check_update_complete(new, step.progress, context)

    def test_an_update_without_a_new_value_does_not_wait(self, context):
        new = target_of(self.plugin, {"wait_secs": 9})
        assert self.plugin.handle_update(new, frozenset({"wait_secs"}), context) == Done()

    def test_what_replaces_it(self):
        def of(**properties):
            return resolve_properties(self.plugin.properties_schema, properties)

        assert self.plugin.needs_replace(of(value="a"), of(value="b", update_replace=True))
        assert not self.plugin.needs_replace(of(value="a"), of(value="b"))
        assert not self.plugin.needs_replace(of(value="a"), of(value="a", update_replace=True))
        assert replacement_needed(self.plugin.properties_schema, self.plugin.properties_schema) == {
            "update_replace_value"
        }

    def test_a_check_wants_it_to_exist(self, context):
        target = target_of(self.plugin)
        with pytest.raises(PermanentError, match="not created"):
            self.plugin.handle_check(target, context)
        run(self.plugin, "check", after(target, Done(physical_id="there")), context)


class TestValue:
    plugin = Value()

    @pytest.mark.parametrize(
        ("type_name", "value", "converted"),
        [
            (None, {"a": [1, None]}, {"a": [1, None]}),
            (None, None, None),
            ("string", 5, "5"),
            ("number", "5.5", 5.5),
            ("boolean", "True", True),
            ("json", {"a": 1}, {"a": 1}),
            ("comma_delimited_list", ["a"], ["a"]),
            ("string", None, ""),
        ],
    )
    def test_it_hands_its_value_on_as_the_type(self, context, type_name, value, converted):
        properties = {"value": value} if type_name is None else {"value": value, "type": type_name}
        created = run(self.plugin, "create", target_of(self.plugin, properties), context)
        assert self.plugin.attribute_values(created) == {"value": converted}

    @pytest.mark.parametrize(
        ("type_name", "value"),
        [("number", "x"), ("boolean", 1), ("json", "{}"), ("comma_delimited_list", "a,b"), ("string", [])],
    )
    def test_a_value_that_does_not_fit_is_refused_at_plan_time(self, type_name, value):
        properties = validate_properties(self.plugin.properties_schema, {"value": value, "type": type_name})
        with pytest.raises(PropertyError) as caught:
            self.plugin.validate(properties)
        assert caught.value.path == ("value",)

    def test_a_value_that_is_not_known_yet_is_not_checked(self):
        later = {"$fn": "get_resource", "args": ["x"]}
        properties = validate_properties(self.plugin.properties_schema, {"value": later, "type": "number"})
        self.plugin.validate(properties)
        properties = validate_properties(self.plugin.properties_schema, {"value": [], "type": later})
        self.plugin.validate(properties)

    def test_types_and_the_need_of_a_value_are_checked(self):
        with pytest.raises(PropertyError, match='type: "int" is not an allowed value'):
            validate_properties(self.plugin.properties_schema, {"value": 1, "type": "int"})
        with pytest.raises(PropertyError, match="Property value not assigned"):
            validate_properties(self.plugin.properties_schema, {})

    def test_a_change_is_made_in_place(self, context):
        created = run(self.plugin, "create", target_of(self.plugin, {"value": 1}), context)
        new = run(self.plugin, "update", updated(self.plugin, created, {"value": 2}), context)
        assert self.plugin.attribute_values(new) == {"value": 2}
        assert not replacement_needed(self.plugin.properties_schema, {"value", "type"})


class TestRandomString:
    plugin = RandomString()

    def create(self, context, **properties):
        return run(self.plugin, "create", target_of(self.plugin, properties), context)

    def value(self, context, **properties):
        return self.plugin.attribute_values(self.create(context, **properties))["value"]

    def test_it_makes_32_letters_and_digits(self, context):
        value = self.value(context)
        assert len(value) == 32
        assert set(value) <= set(string.ascii_letters + string.digits)

    def test_two_are_never_the_same(self, context):
        assert len({self.value(context) for _ in range(20)}) == 20

    @pytest.mark.parametrize(
        ("name", "allowed"),
        [
            ("lettersdigits", string.ascii_letters + string.digits),
            ("letters", string.ascii_letters),
            ("lowercase", string.ascii_lowercase),
            ("uppercase", string.ascii_uppercase),
            ("digits", string.digits),
            ("hexdigits", "0123456789ABCDEF"),
            ("octdigits", "01234567"),
        ],
    )
    def test_each_class_gives_all_of_its_characters_and_no_others(self, context, name, allowed):
        characters = {
            c for _ in range(8) for c in self.value(context, length=512, character_classes=[{"class": name}])
        }
        assert characters == set(allowed)

    def test_the_old_sequence_property_is_a_class(self, context):
        assert set(self.value(context, sequence="digits")) <= set(string.digits)
        both = self.value(context, sequence="digits", character_classes=[{"class": "lowercase", "min": 31}])
        assert sum(c in string.digits for c in both) == 1

    def test_minima_are_kept_and_may_be_anywhere(self, context):
        places = set()
        for _ in range(60):
            value = self.value(
                context,
                length=10,
                character_classes=[{"class": "digits", "min": 2}, {"class": "uppercase", "min": 3}],
                character_sequences=[{"sequence": "$%&", "min": 4}],
            )
            count = Counter(
                "digit" if c in string.digits else "upper" if c in string.ascii_uppercase else "other"
                for c in value
            )
            assert count["digit"] >= 2
            assert count["upper"] >= 3
            assert count["other"] >= 4
            assert len(value) == 10
            places |= {i for i, c in enumerate(value) if c in "$%&"}
        assert places == set(range(10))

    def test_sequences_alone(self, context):
        value = self.value(context, character_classes=[], character_sequences=[{"sequence": "ab"}], length=64)
        assert set(value) == {"a", "b"}

    @pytest.mark.parametrize(
        ("properties", "message"),
        [
            (
                {"length": 3, "character_classes": [{"class": "digits", "min": 4}]},
                "The length is below the sum",
            ),
            (
                {
                    "length": 3,
                    "character_classes": [{"class": "digits", "min": 2}],
                    "character_sequences": [{"sequence": "ab", "min": 2}],
                },
                "The length is below the sum",
            ),
            ({"character_classes": []}, "at least one character"),
            ({"character_sequences": [{"sequence": ""}]}, "at least one character"),
            ({"length": 513}, "out of range"),
            ({"length": 0}, "out of range"),
            ({"sequence": "emoji"}, "not an allowed value"),
        ],
    )
    def test_what_cannot_be_made_is_refused_at_plan_time(self, properties, message):
        with pytest.raises(PropertyError, match=message):
            self.plugin.validate(validate_properties(self.plugin.properties_schema, properties))

    def test_what_is_not_known_yet_is_not_checked(self):
        later = {"$fn": "get_attr", "args": ["x", "y"]}
        properties = {"length": later, "character_classes": [{"class": "digits", "min": 500}]}
        self.plugin.validate(validate_properties(self.plugin.properties_schema, properties))

    def test_the_reference_is_the_value_and_both_are_secret(self, context):
        created = self.create(context)
        assert self.plugin.reference_id(created) == created.data["value"]
        assert created.physical_id != created.data["value"]
        assert self.plugin.attributes_schema["value"].sensitive

    def test_every_change_replaces_it(self):
        names = set(self.plugin.properties_schema)
        assert replacement_needed(self.plugin.properties_schema, names) == names


class TestDelay:
    plugin = Delay()

    @pytest.mark.parametrize("action", ["create", "delete", "suspend", "resume"])
    def test_it_waits_in_the_actions_named_and_in_no_other(self, context, action):
        target = target_of(self.plugin, {"min_wait": 5, "actions": [action.upper()]})
        for performed in ("create", "delete", "suspend", "resume", "update", "check"):
            before = context.time
            run(self.plugin, performed, target, context)
            assert context.time - before == (5 if performed == action else 0)

    def test_by_default_it_waits_in_creation_for_no_time(self, context):
        target = target_of(self.plugin)
        assert target.properties["actions"] == ["CREATE"]
        assert self.plugin.handle_create(target, context) == Done()

    def test_the_jitter_lies_between_0_and_its_product_and_is_drawn_once(self, context):
        target = target_of(self.plugin, {"min_wait": 1, "max_jitter": 3, "jitter_multiplier": "2"})
        waits = set()
        for _ in range(100):
            begin = context.time
            step = self.plugin.handle_create(target, context)
            assert self.plugin.check_create_complete(target, step.progress, context).after == step.after
            run(self.plugin, "create", target, context)
            waits.add(context.time - begin)
        assert all(1 <= wait <= 7 for wait in waits)
        assert max(waits) > 4
        assert min(waits) < 4

    @pytest.mark.parametrize(
        "properties",
        [{"min_wait": -1}, {"max_jitter": -1}, {"jitter_multiplier": -1}, {"actions": ["UPDATE"]}],
    )
    def test_wrong_properties_are_refused(self, properties):
        with pytest.raises(PropertyError):
            validate_properties(self.plugin.properties_schema, properties)
