"""Resources that are stacks: what their steps ask of the child, and what they make of its end."""

import pytest
from harness.fake_context import FakeContext, after, target_of
from stoker.resources.contract.children import ChildFailure, ChildState
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.plugin import NOT_KNOWN
from stoker.resources.contract.steps import Done, Park
from stoker.resources.heat.stack import REMOTE_STACK, StackResource
from stoker.resources.nested.base import failure_of
from stoker.resources.nested.provider import ProviderTemplate
from stoker.resources.registry import ResourceRegistry

TEMPLATE = "heat_template_version: 2018-08-31"


def test_a_nested_stack_waits_for_its_child_and_hands_its_outputs_on():
    context = FakeContext()
    plugin = StackResource()
    target = target_of(plugin, {"template": TEMPLATE, "parameters": {"p": 1}, "timeout": 5})
    step = plugin.handle_create(target, context)
    assert isinstance(step, Park)
    child = step.physical_id
    assert (step.waits_on, step.after) == (f"stack:{child}", 300.0)
    goal = context.children.goals[child]
    assert (goal.template, goal.parameters, goal.timeout) == (TEMPLATE, {"p": 1}, 300.0)
    again = plugin.check_create_complete(target, step.progress, context)
    assert isinstance(again, Park), "it was woken too early"
    context.children.values = {"out": [1, 2]}
    context.children.end(child)
    done = plugin.check_create_complete(target, step.progress, context)
    assert isinstance(done, Done)
    values = plugin.attribute_values(after(target, done))
    assert (values["out"], values["outputs"]) == ([1, 2], {"out": [1, 2]})


def test_a_failed_child_tells_the_first_cause_and_the_path_to_it():
    reason = "Resource CREATE failed: KeyError: resources.x: told"
    cause = ChildFailure("too: many", "ValueError", "resources.a.resources.b")
    error = failure_of(ChildState("CREATE", "FAILED", reason, failure=cause))
    assert (error.kind, error.path, str(error)) == ("ValueError", "resources.a.resources.b", "too: many")
    error = failure_of(ChildState("UPDATE", "FAILED", reason, failure=ChildFailure("why", breakpoint="n/b")))
    assert (error.stopped_at, error.path) == ("n/b", "")


def test_a_failed_child_of_which_only_the_reason_is_known_tells_that():
    error = failure_of(ChildState("CREATE", "FAILED", "Create timed out"))
    assert (error.kind, error.path, str(error)) == ("ResourceFailure", "", "Create timed out")


def test_what_is_suspended_already_is_not_suspended_again():
    context = FakeContext()
    plugin = StackResource()
    target = target_of(plugin, {"template": TEMPLATE}, physical_id="c")
    context.children.states["c"] = ChildState("SUSPEND", "COMPLETE", "")
    assert isinstance(plugin.handle_suspend(target, context), Done)
    assert context.children.requests == []
    assert isinstance(plugin.handle_resume(target, context), Park)
    assert context.children.requests == [("RESUME", "c")]


def test_a_child_that_is_gone_fails_all_but_the_deletion():
    context = FakeContext()
    plugin = StackResource()
    target = target_of(plugin, {"template": TEMPLATE}, physical_id="c")
    for action in ("suspend", "resume", "check"):
        with pytest.raises(PermanentError, match="the nested stack is gone"):
            getattr(plugin, f"handle_{action}")(target, context)
    assert isinstance(plugin.handle_delete(target, context), Done)
    assert plugin.needs_replace_failed(target, context)


@pytest.mark.parametrize(
    ("context", "is_elsewhere"),
    [
        (None, False),
        ({}, False),
        ({"region_name": ""}, False),
        ({"region_name": "north"}, False),
        ({"insecure": True, "ca_cert": "PEM"}, False),
        ({"region_name": "south"}, True),
        ({"region_name": "north", "credential_secret_id": "x"}, True),
        ({"credential_secret_id": "x"}, True),
        (NOT_KNOWN, True),
    ],
)
def test_another_region_or_other_credentials_choose_the_remote_stack(context, is_elsewhere):
    plugin = ResourceRegistry({"Stack": StackResource}, {"region_name": "north"}).get("Stack")
    assert plugin.variant(context) == (REMOTE_STACK if is_elsewhere else None)


def test_any_region_is_another_one_where_the_own_one_has_no_name():
    plugin = ResourceRegistry({"Stack": StackResource}).get("Stack")
    assert plugin.variant({}) is None
    assert plugin.variant({"region_name": "north"}) == REMOTE_STACK


def test_the_reference_of_a_provider_template_is_what_it_calls_its_stack_id():
    plugin = ProviderTemplate()
    target = target_of(plugin, {}, physical_id="c")
    assert plugin.reference_id(target) == "c"
    named = target_of(plugin, {}, physical_id="c", data={"outputs": {"OS::stack_id": "server-7"}})
    assert plugin.reference_id(named) == "server-7"
