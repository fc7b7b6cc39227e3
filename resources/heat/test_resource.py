"""OS::Heat::TestResource: waits, fails and is replaced as its properties say."""

from ...shapes import Json, JsonMap
from ...template.constraints import Custom
from ..contract import (
    Attribute,
    Done,
    PermanentError,
    Poll,
    PolledAlike,
    Property,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)

FOREVER_STEP = 60.0
"""Seconds between two polls of an endless wait."""


def _seconds(action: str) -> Property:
    text = f"Wait of the action {action}, in seconds; by default that of wait_secs."
    return Property("number", text, update_allowed=True)


class TestResource(PolledAlike):
    """Stores the string it was given.  All its waits are polls, none holds a thread.

    `client_name`, `entity_name` and `constraint_prop_secs` are stored only.  `attr_wait_secs` lengthens
    creation and update, since attributes are taken at their end.
    """

    type_name = "OS::Heat::TestResource"
    __test__ = False  # pytest would take the class for a set of tests

    description = (
        "A test resource: it keeps a string, and waits, fails or is replaced as its properties say.\n\n"
        "It is meant for trying out templates and the service, and makes nothing in the cloud."
    )
    support_status = SupportStatus(version="5.0.0")
    properties_schema = {
        "constraint_prop_secs": Property(
            "number",
            "Duration of a constraint check, in seconds; kept, but without effect.",
            default=0,
            update_allowed=True,
            constraints=(Custom(check_name="test_constr"),),
            support_status=SupportStatus(version="6.0.0"),
        ),
        "attr_wait_secs": Property(
            "number",
            "Duration of the output's calculation, in seconds; added to the wait of creation and update.",
            default=0,
            update_allowed=True,
            support_status=SupportStatus(version="6.0.0"),
        ),
        "value": Property("string", "String to keep.", default="test_string", update_allowed=True),
        "update_replace_value": Property(
            "string",
            "String whose change replaces the resource.",
            support_status=SupportStatus(version="7.0.0"),
        ),
        "fail": Property(
            "boolean",
            "Failure of creation and update, after their wait.",
            default=False,
            update_allowed=True,
        ),
        "update_replace": Property(
            "boolean",
            "Replacement of the resource at a new value, instead of an update.",
            default=False,
            update_allowed=True,
        ),
        "wait_secs": Property(
            "number",
            "Wait of each action, in seconds; negative: endless.",
            default=0,
            update_allowed=True,
        ),
        "action_wait_secs": Property(
            "map",
            "Waits of single actions, in seconds.",
            update_allowed=True,
            schema={action: _seconds(action) for action in ("create", "update", "delete")},
        ),
        "client_name": Property(
            "string", "Client name; kept, but without effect.", default="", update_allowed=True
        ),
        "entity_name": Property(
            "string",
            "Entity name of the client; kept, but without effect.",
            default="",
            update_allowed=True,
        ),
    }
    attributes_schema = {"output": Attribute("String that is kept.")}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store the value, unless `fail` is set, and start to wait."""
        seconds = _with_attribute_wait(target, _wait_seconds(target, "create"))
        if target.properties["fail"]:
            return _wait(target, seconds, context)
        data = {"value": target.properties["value"]}
        return _wait(target, seconds, context, physical_id=target.physical_name, data=data)

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether there is a new value and `update_replace` is set."""
        return bool(before.get("value") != after["value"] and after["update_replace"])

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Store a new value; only a new value that is not empty makes the update wait, as in Heat."""
        value = target.properties["value"]
        if "value" not in changed or not value:
            return _wait(target, 0, context)
        seconds = _with_attribute_wait(target, _wait_seconds(target, "update"))
        return _wait(target, seconds, context, data=None if target.properties["fail"] else {"value": value})

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Start to wait; a delete never fails."""
        return _wait(target, _wait_seconds(target, "delete"), context, may_fail=False)

    def poll(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return _poll(target, progress, context)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return _poll(target, progress, context, may_fail=False)

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the resource was created.

        :raises PermanentError: the resource was not created.
        """
        if target.physical_id is None:
            raise PermanentError("Resource not created", kind="Exception")
        return Done()

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the stored value."""
        return {"output": target.data.get("value")}


def _wait_seconds(target: ResourceView, action: str) -> float:
    """Return the seconds; a negative number means without end."""
    seconds = (target.properties["action_wait_secs"] or {}).get(action)
    return float(target.properties["wait_secs"] if seconds is None else seconds)


def _with_attribute_wait(target: ResourceView, seconds: float) -> float:
    return seconds if seconds < 0 else seconds + max(0.0, float(target.properties["attr_wait_secs"]))


def _wait(
    target: ResourceView,
    seconds: float,
    context: StepContext,
    *,
    physical_id: str | None = None,
    data: JsonMap | None = None,
    may_fail: bool = True,
) -> Step:
    if seconds == 0:
        return _end(target, may_fail=may_fail, physical_id=physical_id, data=data)
    progress = {"until": context.now() + seconds if seconds > 0 else None}
    after = seconds if seconds > 0 else FOREVER_STEP
    return Poll(progress, after=after, physical_id=physical_id, data=data)


def _poll(target: ResourceView, progress: Json, context: StepContext, *, may_fail: bool = True) -> Step:
    until = progress["until"]
    if until is None:
        return Poll(progress, after=FOREVER_STEP)
    seconds = until - context.now()
    return Poll(progress, after=seconds) if seconds > 0 else _end(target, may_fail=may_fail)


def _end(
    target: ResourceView,
    *,
    may_fail: bool,
    physical_id: str | None = None,
    data: JsonMap | None = None,
) -> Step:
    if may_fail and target.properties["fail"]:
        raise PermanentError(f"Test Resource failed {target.name}", kind="ValueError")
    return Done(physical_id=physical_id, data=data)
