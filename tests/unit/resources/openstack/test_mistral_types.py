"""Workflows, triggers and executions on scripted answers."""

import dataclasses
import json
import typing

import pytest
import yaml
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError, SignalError
from stoker.resources.contract.properties import resolve_properties, validate_properties
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.openstack.marks import chosen_id, mark_of
from stoker.resources.openstack.mistral.definition import definition_of, properties_in
from stoker.resources.openstack.mistral.external_resource import ExternalResource

RESOURCE_TYPES = types_of("openstack.mistral")

Json = typing.Any
WORKFLOW = RESOURCE_TYPES["OS::Mistral::Workflow"]()
CRON_TRIGGER = RESOURCE_TYPES["OS::Mistral::CronTrigger"]()
EXTERNAL = RESOURCE_TYPES["OS::Mistral::ExternalResource"]()
TASK = {"name": "rest", "action": "std.noop"}
ID = "11111111-2222-4333-8444-555555555555"


def resolved(**properties: Json) -> Json:
    values = {"type": "direct", "tasks": [TASK], **properties}
    return resolve_properties(WORKFLOW.properties_schema, values)


def parts(**properties: Json) -> Json:
    document = yaml.safe_load(definition_of("flow", resolved(**properties), "mark"))
    assert document["version"] == "2.0"
    return document["flow"]


def test_a_definition_has_mistrals_names() -> None:
    task = {
        **TASK,
        "on_success": ["next"],
        "policies": {"wait_before": 3, "retry": {"count": 2}},
        "join": "all",
    }
    assert parts(tasks=[task])["tasks"] == {
        "rest": {
            "action": "std.noop",
            "on-success": ["next"],
            "wait-before": 3,
            "retry": {"count": 2},
            "join": "all",
        }
    }
    whole = parts(
        input={"a": 1, "b": None}, task_defaults={"on_error": ["clean"], "timeout": 0}, tags=["shop"]
    )
    assert whole["input"] == ["a", "b"]
    assert whole["task-defaults"] == {"on-error": ["clean"]}
    assert whole["tags"] == ["shop", "mark"]
    assert "description" not in whole


def test_a_changed_definition_shows_the_changed_properties() -> None:
    properties = resolved(input={"a": 1}, output={"x": "<% 1 %>"}, tags=["shop"])
    definition = definition_of("flow", properties, "mark")
    same = properties_in(definition, "flow", properties, "mark")
    assert same == {
        "type": "direct", "output": {"x": "<% 1 %>"}, "tags": ["shop"], "input": {"a": 1}, "tasks": [TASK],
    }  # fmt: skip
    document = yaml.safe_load(definition)
    document["flow"] |= {"input": ["a", {"b": 2}], "tasks": {"rest": {"action": "std.fail", "on-error": "x"}}}
    live = properties_in(yaml.safe_dump(document), "flow", properties, "mark")
    assert live["input"] == {"a": None, "b": None}
    assert live["tasks"] == [{"name": "rest", "action": "std.fail", "on_error": "x"}]
    assert properties_in("]", "flow", properties, None)["tasks"] == []


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"tasks": [{"name": "x"}]}, "At least one of the following properties"),
        ({"tasks": [{**TASK, "workflow": "w"}]}, "at the same time: workflow, action"),
        ({"tasks": [{**TASK, "requires": ["y"]}]}, "'requires' in case of direct workflow"),
        (
            {"tasks": [{**TASK, "timeout": 3, "policies": {"timeout": 4}}]},
            "policies and timeout cannot be used",
        ),
        ({"tasks": [{**TASK, "concurrency": 3}]}, "concurrency cannot be specified without with_items"),
        ({"type": "reverse"}, "'task_name' is not assigned"),
        ({"type": "reverse", "params": {"env": {}}}, "'task_name' is not assigned"),
        ({"tasks": []}, "length"),
    ],
)
def test_rules_of_a_workflow(properties: Json, message: str) -> None:
    with pytest.raises(PropertyError, match=message):
        WORKFLOW.validate(
            validate_properties(WORKFLOW.properties_schema, {"type": "direct", "tasks": [TASK], **properties})
        )


def test_values_that_are_not_known_yet_break_no_rule() -> None:
    later = {"$fn": "get_resource", "args": ["x"]}
    for properties in (
        {"type": "direct", "tasks": [{"name": "x", "workflow": later}]},
        {"type": "reverse", "params": later, "tasks": [TASK]},
        {"type": "reverse", "params": {"task_name": later}, "tasks": [TASK]},
        {"type": later, "tasks": later},
    ):
        WORKFLOW.validate(validate_properties(WORKFLOW.properties_schema, properties))


def test_a_workflow_is_created_and_changed_by_its_definition(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    remote = {"id": ID, "name": "flow", "tags": ["shop", mark_of("key")], "definition": "…"}
    answer = Answer(201, {"workflows": [remote]})
    scripted.answers |= {
        "POST /workflows": answer,
        "PUT /workflows": answer,
        "GET /workflows/flow": Answer(200, remote),
    }
    target = run(WORKFLOW, "create", target_of(WORKFLOW, {"type": "direct", "tasks": [TASK]}), context)
    assert target.physical_id == "flow"
    assert WORKFLOW.reference_id(target) == "flow"
    assert WORKFLOW.attribute_values(target)["alarm_url"] == context.presigned().url
    run(WORKFLOW, "update", target, context, changed=frozenset({"tasks"}))
    assert [request.partition("?")[0] for request in scripted.requests] == [
        "POST /workflows",
        "PUT /workflows",
    ]


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ("x", "must be a map"),
        ({"input": [1]}, "Input in signal data must be a map, find a list"),
        ({"params": "x"}, "Params must be a map, find a str"),
        ({"input": {"b": 1}}, "Unknown input b"),
    ],
)
def test_signals_that_a_workflow_cannot_use(details: Json, message: str) -> None:
    target = target_of(WORKFLOW, {"type": "direct", "tasks": [TASK], "input": {"a": 1}}, physical_id="flow")
    with pytest.raises(SignalError, match=message):
        WORKFLOW.handle_signal(target, details)
    with pytest.raises(SignalError, match="does not exist"):
        WORKFLOW.handle_signal(target_of(WORKFLOW, {"type": "direct", "tasks": [TASK]}), None)


def test_a_signal_adds_to_the_input_and_the_parameters(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    scripted.answers["POST /executions"] = Answer(201, {"id": ID})
    properties = {"type": "direct", "tasks": [TASK], "input": {"a": 1, "b": 2}, "params": {"env": {"x": 1}}}
    target = target_of(WORKFLOW, properties, physical_id="flow")
    WORKFLOW.carry_out(target, {"details": {"input": {"b": 3}, "params": {"task_name": "t"}}}, context)
    [body] = scripted.sent
    assert (body["id"], body["workflow_id"]) == (chosen_id(target.key), "flow")
    assert json.loads(body["input"]) == {"a": 1, "b": 3}
    assert json.loads(body["params"]) == {"env": {"x": 1}, "task_name": "t"}


def test_the_executions_of_an_imported_workflow_are_deleted_with_it(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    scripted.answers |= {
        "DELETE /workflows/flow": Answer(204),
        "GET /executions": Answer(200, {"executions": [{"id": "new"}]}),
        "DELETE /executions/new": Answer(204),
    }
    target = target_of(WORKFLOW, {"type": "direct", "tasks": [TASK]}, physical_id="flow")
    target = dataclasses.replace(target, data={"executions_before": ["old"]})
    run(WORKFLOW, "delete", target, context)
    deleted = [request.partition("?")[0] for request in scripted.requests if request.startswith("DELETE")]
    assert deleted == ["DELETE /workflows/flow", "DELETE /executions/new", "DELETE /executions/old"]


def test_a_trigger_names_its_workflow_by_id_or_name(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    scripted.answers |= {
        "GET /cron_triggers": Answer(200, {"cron_triggers": []}),
        "POST /cron_triggers": Answer(201, {"id": ID, "name": "t", "remaining_executions": 2}),
    }
    bodies = []
    for name in ("flow", ID):
        properties = {"name": "t", "first_time": "2030-01-01 00:00", "count": 2, "workflow": {"name": name}}
        target = run(CRON_TRIGGER, "create", target_of(CRON_TRIGGER, properties), context)
        bodies.append(scripted.sent[-1])
    fields = {"name": "t", "first_execution_time": "2030-01-01 00:00", "remaining_executions": 2}
    assert bodies == [{**fields, "workflow_name": "flow"}, {**fields, "workflow_id": ID}]
    assert CRON_TRIGGER.attribute_values(target)["remaining_executions"] == 2


def test_a_trigger_that_has_ended_is_no_fault(scripted: ScriptedService, context: ScriptedContext) -> None:
    ending = target_of(
        CRON_TRIGGER, {"pattern": "* * * * *", "count": 1, "workflow": {"name": "w"}}, physical_id="t"
    )
    endless = target_of(CRON_TRIGGER, {"pattern": "* * * * *", "workflow": {"name": "w"}}, physical_id="t")
    assert CRON_TRIGGER.handle_check(ending, context) == Done()
    assert CRON_TRIGGER.refresh(ending, context) == {}
    assert not CRON_TRIGGER.needs_replace_failed(ending, context)
    assert CRON_TRIGGER.needs_replace_failed(endless, context)
    for call in (CRON_TRIGGER.handle_check, CRON_TRIGGER.refresh, CRON_TRIGGER.live_properties):
        with pytest.raises(PermanentError):
            call(endless, context)
    with pytest.raises(PropertyError, match="pattern, first_time"):
        CRON_TRIGGER.validate(resolve_properties(CRON_TRIGGER.properties_schema, {"workflow": {"name": "w"}}))


def external(**actions: Json) -> Json:
    return {"actions": actions, "input": {"a": 1}}


def test_an_action_without_a_workflow_does_nothing(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    target = run(EXTERNAL, "create", target_of(EXTERNAL, external()), context)
    assert target.physical_id == target.physical_name
    for action in ("suspend", "resume", "delete"):
        run(EXTERNAL, action, target, context)
    assert EXTERNAL.handle_update(target, frozenset(), context) == Done()
    assert scripted.requests == []


def test_an_execution_is_polled_and_its_outputs_reach_the_next_one(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    execution = {"id": "e", "state": "RUNNING", "output": "{}"}
    scripted.answers |= {
        "POST /executions": Answer(201, execution),
        "GET /executions/e": Answer(200, execution),
    }
    target = target_of(
        EXTERNAL, {**external(CREATE={"workflow": "w"}, DELETE={"workflow": "v"}), "always_update": True}
    )
    step = EXTERNAL.handle_create(target, context)
    assert isinstance(step, Poll)
    assert isinstance(EXTERNAL.check_create_complete(target, step.progress, context), Poll)
    output = json.dumps({"resource_id": "thing", "size": 2})
    scripted.answers["GET /executions/e"] = Answer(200, {"id": "e", "state": "SUCCESS", "output": output})
    created = run(EXTERNAL, "create", target, context)
    assert (created.physical_id, EXTERNAL.attribute_values(created)["output"]["size"]) == ("thing", 2)
    run(EXTERNAL, "delete", created, context)
    bodies = [body for body in scripted.sent if body]
    assert [body["workflow_id"] for body in bodies] == ["w", "w", "v"]
    assert "env" not in json.loads(bodies[0]["params"])
    assert json.loads(bodies[-1]["params"])["env"]["heat_extresource_data"] == {
        "resource_id": "thing",
        "size": 2,
    }


@pytest.mark.parametrize("state", ["ERROR", "CANCELLED", "DREAMING"])
def test_an_execution_that_fails(scripted: ScriptedService, context: ScriptedContext, state: str) -> None:
    execution = {"id": "e", "state": state, "state_info": "no luck"}
    scripted.answers |= {
        "POST /executions": Answer(201, execution),
        "GET /executions/e": Answer(200, execution),
    }
    with pytest.raises(PermanentError, match=state):
        run(EXTERNAL, "create", target_of(EXTERNAL, external(CREATE={"workflow": "w"})), context)


def test_inputs_that_replace_the_resource() -> None:
    def of(**inputs: Json) -> Json:
        values = {"actions": {}, "input": inputs, "replace_on_change_inputs": ["a"]}
        return resolve_properties(EXTERNAL.properties_schema, values)

    assert EXTERNAL.needs_replace(of(a=1), of(a=2))
    assert not EXTERNAL.needs_replace(of(a=1, b=1), of(a=1, b=2))


def test_an_external_resource_is_updated_each_time_where_the_template_says_so(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    assert ExternalResource.always_updated
    scripted.answers["POST /executions"] = Answer(201, {"id": "e", "state": "RUNNING"})
    properties = external(UPDATE={"workflow": "w"})
    still = target_of(EXTERNAL, properties, physical_id="e")
    always = target_of(EXTERNAL, {**properties, "always_update": True}, physical_id="e")
    assert isinstance(EXTERNAL.handle_update(still, frozenset(), context), Done)
    assert isinstance(EXTERNAL.handle_update(always, frozenset(), context), Poll)
    assert isinstance(EXTERNAL.handle_update(still, frozenset({"input"}), context), Poll)
