"""Signals, handles that keep them, and conditions that wait for them."""

import json

import pytest
from harness.fake_context import STACK, START, FakeContext, after, run, target_of
from stoker.resources.contract.errors import NotSupported, PermanentError, PropertyError, SignalError
from stoker.resources.contract.properties import validate_properties
from stoker.resources.contract.steps import Done, Park
from stoker.resources.contract.views import ReferencedResource, Sibling
from stoker.resources.heat.random_string import RandomString
from stoker.resources.heat.wait_conditions import AwsWaitCondition, WaitCondition
from stoker.resources.heat.wait_handles import (
    AwsWaitConditionHandle,
    UpdateWaitConditionHandle,
    WaitConditionHandle,
)

AWS_SIGNAL = {"UniqueId": "a", "Status": "SUCCESS", "Reason": "up", "Data": {"n": 1}}


class Scene:
    """A handle and a condition of one stack, and what a conductor does between them."""

    def __init__(self, handle_plugin=None, condition_plugin=None, **properties):
        self.context = FakeContext()
        self.plugin = handle_plugin or WaitConditionHandle()
        self.condition_plugin = condition_plugin or WaitCondition()
        self.handle = run(self.plugin, "create", target_of(self.plugin, name="my handle"), self.context)
        self.generation = 0
        self._publish()
        names = self.condition_plugin.names
        resolved = {
            names["handle"]: self.plugin.reference_id(self.handle),
            names["timeout"]: 600,
        }
        resolved |= {names[name]: value for name, value in properties.items()}
        self.condition = target_of(self.condition_plugin, resolved, name="condition")

    def _publish(self):
        self.context.siblings["my handle"] = Sibling(
            id=self.handle.id,
            name="my handle",
            physical_id=self.handle.physical_id,
            metadata=self.handle.metadata,
            generation=self.generation,
        )

    def signal(self, details=None):
        signal = self.plugin.handle_signal(self.handle, details)
        fields = {name: getattr(self.handle, name) for name in self.handle.__dataclass_fields__}
        self.handle = type(self.handle)(**{**fields, "metadata": signal.metadata})
        self.generation += 1
        self._publish()
        return signal.reason

    def begin(self):
        self.step = self.condition_plugin.handle_create(self.condition, self.context)
        return self.step

    def look(self):
        self.step = self.condition_plugin.check_create_complete(
            self.condition, self.step.progress, self.context
        )
        return self.step

    def data(self):
        done = after(self.condition, self.step)
        name = self.condition_plugin.names["data"]
        return json.loads(self.condition_plugin.attribute_values(done)[name])


def test_the_condition_is_parked_on_its_handle_until_its_time_ends():
    scene = Scene(timeout=60)
    step = scene.begin()
    assert isinstance(step, Park)
    assert step.waits_on == f"resource:{scene.handle.id}"
    assert (step.seen, step.after) == (0, 60)
    scene.context.time += 20
    assert scene.look().after == 40


def test_a_signal_ends_it_with_the_data():
    scene = Scene()
    scene.begin()
    assert scene.signal({"data": [1, 2]}) == "status:SUCCESS reason:Signal 1 received"
    assert isinstance(scene.look(), Done)
    assert scene.data() == {"1": [1, 2]}


def test_signals_before_the_condition_begins_count():
    scene = Scene(count=2)
    scene.signal()
    scene.signal(None)
    assert isinstance(scene.begin(), Done)
    assert scene.data() == {"1": None, "2": None}


def test_the_park_says_which_signals_it_has_seen():
    scene = Scene(count=3)
    scene.signal()
    assert scene.begin().seen == 1


def test_a_failure_ends_it_at_once_with_all_reasons():
    scene = Scene(count=5)
    scene.begin()
    scene.signal({"id": "a", "status": "FAILURE", "reason": "disk full"})
    scene.signal({"id": "b"})
    scene.signal({"id": "c", "status": "FAILURE", "reason": "no network"})
    with pytest.raises(PermanentError) as caught:
        scene.look()
    assert str(caught.value) == "disk full;no network"
    assert caught.value.kind == "WaitConditionFailure"


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        ([], "0 of 3 received"),
        ([{"reason": "one"}, {"reason": "two"}], "2 of 3 received - one;two"),
    ],
)
def test_its_time_ends(signals, message):
    scene = Scene(count=3, timeout=30)
    scene.begin()
    for signal in signals:
        scene.signal(signal)
    scene.context.time = START + 29.9
    assert isinstance(scene.look(), Park)
    scene.context.time = START + 30
    with pytest.raises(PermanentError) as caught:
        scene.look()
    assert str(caught.value) == message
    assert caught.value.kind == "WaitConditionTimeout"


def test_what_was_met_in_time_does_not_fail_because_the_look_is_late():
    scene = Scene(timeout=30)
    scene.begin()
    scene.signal()
    scene.context.time += 3600
    assert isinstance(scene.look(), Done)


def test_the_same_id_counts_once():
    scene = Scene(count=2)
    scene.signal({"id": "a", "data": 1})
    scene.signal({"id": "a", "data": 2})
    assert isinstance(scene.begin(), Park)
    scene.signal({"id": 7})
    assert isinstance(scene.look(), Done)
    assert scene.data() == {"a": 2, "7": None}


def test_a_signal_without_an_id_does_not_take_the_place_of_another():
    scene = Scene(count=2)
    scene.signal({"id": "2", "data": "named"})
    scene.signal({"data": "unnamed"})
    assert isinstance(scene.begin(), Done)
    assert scene.data() == {"2": "named", "3": "unnamed"}


def test_metadata_of_the_template_is_no_signal():
    scene = Scene()
    scene.handle = target_of(
        scene.plugin, name="my handle", metadata={"role": "db", "notes": {"status": "tbd"}}
    )
    scene._publish()
    assert isinstance(scene.begin(), Park)


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"status": "OK"}, "status must be SUCCESS or FAILURE"),
        ({"state": "SUCCESS"}, "a signal has the keys data, reason, status, id"),
        (["SUCCESS"], "a signal is a map"),
        ("SUCCESS", "a signal is a map"),
    ],
)
def test_a_wrong_signal_is_refused_and_changes_nothing(details, message):
    scene = Scene()
    with pytest.raises(SignalError, match=message):
        scene.signal(details)
    assert scene.handle.metadata == {}


@pytest.mark.parametrize("missing", sorted(AWS_SIGNAL))
def test_a_signal_of_cloudformation_must_be_complete(missing):
    scene = Scene(AwsWaitConditionHandle())
    with pytest.raises(SignalError, match="Data, Reason, Status, UniqueId"):
        scene.signal({key: value for key, value in AWS_SIGNAL.items() if key != missing})


@pytest.mark.parametrize("handle", [AwsWaitConditionHandle, UpdateWaitConditionHandle, WaitConditionHandle])
@pytest.mark.parametrize("condition", [AwsWaitCondition, WaitCondition])
def test_each_condition_works_with_each_handle(handle, condition):
    scene = Scene(handle(), condition())
    scene.begin()
    signal = (
        AWS_SIGNAL if handle is not WaitConditionHandle else {"id": "a", "data": {"n": 1}, "reason": "up"}
    )
    assert scene.signal(signal) == "status:SUCCESS reason:up"
    assert isinstance(scene.look(), Done)
    assert scene.data() == {"a": {"n": 1}}


def test_an_empty_signal_of_cloudformation_changes_nothing():
    scene = Scene(AwsWaitConditionHandle())
    scene.signal(None)
    assert scene.handle.metadata == {}


@pytest.mark.parametrize(
    "handle",
    [
        "my handle",
        "http://api.test/v1/acme/stacks/demo/another-id/resources/my%20handle/signal",
        f"http://api.test/v1/acme/stacks/demo/{STACK.id}/resources/my%20handle",
        "",
    ],
)
def test_what_is_no_handle_of_this_stack_is_refused(handle):
    scene = Scene()
    scene.condition = target_of(WaitCondition(), {"handle": handle, "timeout": 1})
    with pytest.raises(PermanentError, match="is not a valid wait condition handle"):
        scene.begin()


def test_a_quoted_name_in_the_url_is_understood():
    scene = Scene()
    url = f"http://api.test/v1/acme/stacks/demo/{STACK.id}/resources/my%20handle/signal?x=1"
    scene.condition = target_of(WaitCondition(), {"handle": url, "timeout": 1})
    assert isinstance(scene.begin(), Park)


def test_a_signed_address_of_heat_is_understood():
    scene = Scene()
    arn = f"arn%3Aopenstack%3Aheat%3A%3Aacme%3Astacks/demo/{STACK.id}/resources/my%20handle"
    handle = f"http://heat.test:8000/v1/waitcondition/{arn}?Signature=x"
    scene.condition = target_of(WaitCondition(), {"handle": handle, "timeout": 1})
    assert isinstance(scene.begin(), Park)


def test_an_update_waits_again_with_the_whole_time():
    scene = Scene(count=1, timeout=60)
    scene.signal()
    scene.begin()
    scene.context.time += 1000
    more = target_of(WaitCondition(), {**scene.condition.properties, "count": 2})
    step = WaitCondition().handle_update(more, frozenset({"count"}), scene.context)
    assert isinstance(step, Park)
    assert step.after == 60
    scene.signal()
    step = WaitCondition().check_update_complete(more, step.progress, scene.context)
    assert isinstance(step, Done)


@pytest.mark.parametrize("timeout", [0, 43201])
def test_the_timeout_has_limits(timeout):
    with pytest.raises(PropertyError, match="timeout: .* is out of range"):
        validate_properties(WaitCondition.properties_schema, {"handle": "x", "timeout": timeout})


def test_the_attributes_of_a_handle_tell_how_to_signal_it():
    scene = Scene()
    values = WaitConditionHandle().attribute_values(scene.handle)
    presigned = scene.context.presigned()
    url = values["endpoint"]
    assert url == scene.plugin.reference_id(scene.handle) == presigned.endpoint
    assert values["token"] == presigned.signature
    assert values["curl_cli"] == (
        "curl -i -X POST -H 'Content-Type: application/json' "
        f"-H 'Accept: application/json' '{url}?Signature={presigned.signature}'"
    )
    assert json.loads(values["signal"]) == {"endpoint": url, "token": presigned.signature}


def test_other_transports_have_no_token():
    plugin = WaitConditionHandle()
    context = FakeContext()
    signed = context.presigned()
    user = context.signal_user()
    account = {
        "auth_url": user.auth_url,
        "username": "thing",
        "user_id": user.user_id,
        "password": user.password,
        "project_id": user.project_id,
    }
    for transport, signal in (
        ("NO_SIGNAL", {}),
        ("HEAT_SIGNAL", {"alarm_url": signed.endpoint, **account}),
        ("CFN_SIGNAL", {"alarm_url": signed.url}),
    ):
        target = target_of(plugin, {"signal_transport": transport})
        values = plugin.attribute_values(run(plugin, "create", target, context))
        assert set(values) == {"signal"}
        assert json.loads(values["signal"]) == signal


def test_the_reference_of_an_aws_handle_is_a_url_that_needs_nothing_else():
    plugin = AwsWaitConditionHandle()
    context = FakeContext()
    created = run(plugin, "create", target_of(plugin), context)
    assert plugin.reference_id(created) == context.presigned().url


def test_secrets_of_a_handle_are_marked():
    schema = WaitConditionHandle.attributes_schema
    assert {name for name, attribute in schema.items() if attribute.sensitive} == {
        "token",
        "curl_cli",
        "signal",
    }


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
def test_transports_of_other_services_are_refused_at_plan_time(transport):
    plugin = WaitConditionHandle()
    properties = validate_properties(plugin.properties_schema, {"signal_transport": transport})
    with pytest.raises(PropertyError, match="use one of TOKEN_SIGNAL, CFN_SIGNAL, HEAT_SIGNAL, NO_SIGNAL"):
        plugin.validate(properties)


def test_an_update_handle_is_always_replaced():
    assert UpdateWaitConditionHandle().needs_replace({}, {})
    assert UpdateWaitConditionHandle.always_replaced
    assert not AwsWaitConditionHandle.always_replaced


def test_a_type_without_signals_says_so():
    plugin = RandomString()
    with pytest.raises(NotSupported, match="does not take signals"):
        plugin.handle_signal(target_of(plugin), {})


def test_an_adopted_handle_is_signalled_at_its_new_stack():
    plugin = WaitConditionHandle()
    context = FakeContext()
    old_data = {"endpoint": "http://elsewhere/v1/t/stacks/old/1/resources/handle/signal", "token": "secret"}
    target = target_of(plugin, name="handle", physical_id="h", data=old_data)
    adopted = run(plugin, "adopt", target, context)
    presigned = context.presigned()
    assert adopted.data == {
        "endpoint": presigned.endpoint,
        "token": presigned.signature,
        "url": presigned.url,
    }


def test_a_condition_finds_an_imported_handle_by_its_physical_id():
    scene = Scene()
    scene.condition.properties["handle"] = "5f0c"
    scene.context.referred["5f0c"] = ReferencedResource("OS::Heat::WaitConditionHandle", {}, "my handle")
    assert isinstance(scene.begin(), Park)
    scene.signal({"id": "a"})
    assert isinstance(scene.begin(), Done)


def test_an_imported_handle_keeps_its_reference():
    plugin = WaitConditionHandle()
    imported = target_of(plugin, name="h", data={"endpoint": "http://e", "reference": "5f0c"})
    assert plugin.reference_id(imported) == "5f0c"
