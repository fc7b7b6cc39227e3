"""Workflows, their executions and triggers on a real Mistral."""

import pathlib
import typing

import pytest
from harness.cloud.access import Cloud
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on
from harness.step_driver import Driven
from harness.waiting import wait_for
from stoker.resources.contract.errors import PermanentError, SignalError
from stoker.resources.contract.properties import changed, resolve_reported
from stoker.resources.contract.steps import Poll
from stoker.resources.openstack.service import Conflict, Service, service_of

Json = typing.Any
pytestmark = pytest.mark.usefixtures("workflows")
WORKFLOW = "OS::Mistral::Workflow"
CRON_TRIGGER = "OS::Mistral::CronTrigger"
EXTERNAL = "OS::Mistral::ExternalResource"
ECHO = {"name": "hello", "action": "std.echo", "input": {"output": "<% $.text %>"}}
GREETING = {
    "type": "direct",
    "tasks": [{**ECHO, "publish": {"said": "<% task().result %>"}}],
    "input": {"text": "hello"},
    "output": {"said": "<% $.said %>"},
}


@pytest.fixture
def service(make: Maker) -> Service:
    """The calls of Mistral, as an independent witness."""
    return service_of(make.context, "workflow")


def changed_properties(driven: Driven) -> set[str]:
    """The properties that an update with ``converge`` would set again."""
    schema = driven.plugin.properties_schema
    expected = driven.target.properties
    live = driven.plugin.live_properties(driven.target, driven.context)
    return set(changed(schema, expected, resolve_reported(schema, live, expected)) & live.keys())


def ended(workflow: Driven) -> list[Json]:
    """The executions that signals to a workflow have begun, once all have ended."""

    def executions() -> list[Json]:
        listed: list[Json] = workflow.refresh().attribute("executions")
        return listed

    wait_for(lambda: all(each["state"] != "RUNNING" for each in executions()), why=lambda: str(executions()))
    return executions()


def test_a_workflow(make: Maker, project: Project, service: Service) -> None:
    workflow = make(WORKFLOW, name="greeting", tags=["shop"], description="greets", **GREETING)
    view = service.get(f"/workflows/{workflow.id}")
    assert (workflow.id, view["name"], view["input"]) == ("greeting", "greeting", "text")
    assert workflow.attribute("show")["tags"] == ["shop"]
    assert workflow.attribute("data") == {"name": "greeting", "input": {"text": "hello"}}
    assert workflow.attribute("alarm_url").startswith("http://stoker.test/")
    assert changed_properties(workflow) == set()
    tasks = [
        {"name": "rest", "action": "std.noop", "on_success": ["hello"], "wait_before": 1},
        *GREETING["tasks"],
    ]
    assert workflow.update(tasks=tasks, task_defaults={"timeout": 30}, description=None) == "updated"
    view = service.get("/workflows/greeting")
    assert "wait-before: 1" in view["definition"]
    assert changed_properties(workflow) == set()
    workflow.act("check")
    collection = workflow.plugin.collection()
    assert collection is not None
    listed = collection.read(workflow.context, project.id)["greeting"]
    assert workflow.plugin.key_on(listed) == workflow.target.creation_key
    assert "wait-before: 1" in listed["definition"]
    service.send_text("PUT", "/workflows", view["definition"].replace("wait-before: 1", "wait-before: 2"))
    assert changed_properties(workflow) == {"tasks"}
    with pytest.raises(Conflict, match="Duplicate"):
        make(WORKFLOW, name="greeting", **GREETING)
    assert workflow.update(name="other") == "replace"
    workflow.delete()
    workflow.delete()
    assert service.get("/workflows", name="greeting")["workflows"] == []


def test_a_lost_creation_is_found_again(make: Maker, service: Service) -> None:
    workflow = make.new(WORKFLOW, **GREETING)
    workflow.plugin.handle_create(workflow.target, workflow.context)
    name = workflow.plugin.find_created(workflow.target.key, workflow.target, workflow.context)
    assert name == workflow.target.physical_name
    workflow.create()
    assert workflow.id == name
    workflow.delete()
    assert service.get("/workflows", name=name)["workflows"] == []


def test_signals_begin_executions(make: Maker, service: Service) -> None:
    workflow = make(WORKFLOW, **GREETING)
    workflow.signal({"input": {"text": "good morning"}})
    workflow.signal(None)
    executions = {each["input"]["text"]: each for each in ended(workflow)}
    assert {(each["state"], each["output"]["said"]) for each in executions.values()} == {
        ("SUCCESS", "good morning"),
        ("SUCCESS", "hello"),
    }
    assert executions["hello"]["workflow_name"] == workflow.id
    with pytest.raises(SignalError, match="Unknown input name"):
        workflow.signal({"input": {"name": "x"}})
    workflow.update(use_request_body_as_input=True)
    workflow.signal({"text": "good night"})
    assert "good night" in [each["output"]["said"] for each in ended(workflow)]
    workflow.delete()
    assert service.get("/executions", workflow_name=workflow.id)["executions"] == []


def test_a_cron_trigger(make: Maker, service: Service) -> None:
    workflow = make(WORKFLOW, **GREETING)
    properties = {"pattern": "0 0 1 1 *", "workflow": {"name": workflow.id, "input": {"text": "new year"}}}
    trigger = make(CRON_TRIGGER, name="yearly", count=2, **properties)
    view = service.get("/cron_triggers/yearly")
    assert (trigger.id, view["workflow_name"], view["pattern"]) == ("yearly", workflow.id, "0 0 1 1 *")
    assert trigger.attribute("remaining_executions") == 2
    assert trigger.attribute("next_execution_time").endswith("-01-01 00:00:00")
    trigger.act("check")
    assert changed_properties(trigger) == set()
    with pytest.raises(Conflict):
        make(CRON_TRIGGER, name="yearly", **properties)
    assert trigger.update(count=3) == "replace"
    lost = make.new(CRON_TRIGGER, **properties)
    step = lost.plugin.handle_create(lost.target, lost.context)
    assert isinstance(step, Poll)
    lost.take(step)
    lost.plugin.check_create_complete(lost.target, step.progress, lost.context)
    name = lost.plugin.find_created(lost.target.key, lost.target, lost.context)
    assert name == lost.target.physical_name
    service.delete(f"/cron_triggers/{name}")
    service.delete("/cron_triggers/yearly")
    trigger.act("check")
    trigger.delete()
    workflow.delete()


def test_an_external_resource(make: Maker, service: Service) -> None:
    """Each action is an execution; it gets the outputs of those before it."""
    seen = "<% env().get(heat_extresource_data, {}).get(number, 0) %>"
    outputs = {"resource_id": "<% $.name %>", "number": "<% int($.before) + 1 %>"}
    task = {
        "name": "count",
        "action": "std.echo",
        "input": {"output": seen},
        "publish": {"before": "<% task().result %>"},
    }
    names = dict.fromkeys(("name", "colour"))
    counting = make(WORKFLOW, type="direct", tasks=[task], input=names, output=outputs)
    failing = make(WORKFLOW, type="direct", tasks=[{"name": "fail", "action": "std.fail"}], input=names)
    inputs = {"name": "shop", "colour": "red"}
    actions = dict.fromkeys(("CREATE", "UPDATE", "SUSPEND", "RESUME"), {"workflow": counting.id})
    replaced_by = {"replace_on_change_inputs": ["name"]}
    resource = make(EXTERNAL, actions=actions, input=inputs, **replaced_by)
    assert (resource.id, resource.attribute("output")) == ("shop", {"resource_id": "shop", "number": 1})
    resource.act("suspend").act("resume")
    assert resource.attribute("output")["number"] == 3
    assert resource.update(input={**inputs, "colour": "blue"}) == "updated"
    assert resource.attribute("output")["number"] == 4
    assert resource.update(input={**inputs, "name": "market"}) == "replace"
    bad = make.new(EXTERNAL, actions={"CREATE": {"workflow": failing.id}}, input=inputs)
    with pytest.raises(PermanentError, match="Went to status ERROR"):
        bad.create()
    ending = make(
        EXTERNAL,
        actions={"CREATE": {"workflow": counting.id}, "DELETE": {"workflow": failing.id}},
        input=inputs,
    )
    with pytest.raises(PermanentError, match="Went to status ERROR"):
        ending.delete()
    for workflow in (counting, failing):
        workflow.delete()


def test_a_lost_execution_is_found_again_and_a_cancelled_one_ends(make: Maker, service: Service) -> None:
    tasks = [{"name": "wait", "action": "std.noop", "wait_before": 600}]
    waiting = make(WORKFLOW, type="direct", tasks=tasks)
    resource = make.new(EXTERNAL, actions={"CREATE": {"workflow": waiting.id}})
    step = resource.plugin.handle_create(resource.target, resource.context)
    assert isinstance(step, Poll)
    again = resource.plugin.handle_create(resource.target, resource.context)
    assert isinstance(again, Poll)
    assert again.physical_id == step.physical_id
    found = resource.plugin.find_created(resource.target.key, resource.target, resource.context)
    assert found == step.physical_id
    assert len(service.get("/executions", workflow_name=waiting.id)["executions"]) == 1
    resource.plugin.handle_cancel(resource.target, step.progress, resource.context)
    with pytest.raises(PermanentError, match="Went to status CANCELLED"):
        resource.plugin.check_create_complete(resource.target, step.progress, resource.context)
    waiting.delete()


def test_a_trigger_of_a_stack_needs_trusts_that_may_make_others(
    cloud: Cloud, project: Project, service: Service, tmp_path: pathlib.Path
) -> None:
    """Mistral makes a trust with the token of the stack's."""
    workflow = {"name": {"get_resource": "greeting"}, "input": {"text": "new year"}}
    resources = {
        "greeting": {"type": WORKFLOW, "properties": GREETING},
        "yearly": {"type": CRON_TRIGGER, "properties": {"pattern": "0 0 1 1 *", "workflow": workflow}},
    }
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    with stoker_on(cloud, tmp_path, "[stacks]\nallow_trusts_redelegation = true\n") as stoker:
        stack = Stacks(stoker, project).create("triggers", template)
        view = service.get(f"/cron_triggers/{stack.physical_id('yearly')}")
        assert view["workflow_name"] == stack.physical_id("greeting")
        stack.delete()
    assert project.leftovers() == {}


def test_a_stack_whose_workflow_is_signalled(stacks: Stacks) -> None:
    resources = {
        "greeting": {"type": WORKFLOW, "properties": GREETING},
        "outer": {
            "type": WORKFLOW,
            "properties": {
                "type": "direct",
                "tasks": [{"name": "inner", "workflow": {"get_resource": "greeting"}}],
            },
        },
    }
    outputs = {"executions": {"value": {"get_attr": ["greeting", "executions"]}}}
    template = {"heat_template_version": "2018-08-31", "resources": resources, "outputs": outputs}
    stack = stacks.create("workflows", template)
    path = f"{stack.path}/resources/greeting/signal"
    assert stacks.call("POST", path, {"input": {"text": "good evening"}}).status == 200
    service = service_of(Maker(stacks.project).context, "workflow")

    def execution() -> Json:
        executions = service.get("/executions", include_output=True)["executions"]
        return next((each for each in executions if each["state"] == "SUCCESS"), None)

    wait_for(lambda: execution() is not None)
    assert "good evening" in execution()["output"]
    stack.update(template, parameters={})
    [view] = stack.outputs()["executions"]
    assert (view["state"], view["output"]["said"]) == ("SUCCESS", "good evening")
    unknown = stacks.call("POST", path, {"input": {"name": "x"}})
    assert (unknown.status, "Unknown input name" in str(unknown.body)) == (400, True)
    stack.delete()
    assert service.get("/executions")["executions"] == []
    assert stacks.project.leftovers() == {}
