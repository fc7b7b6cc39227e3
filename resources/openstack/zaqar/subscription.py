"""OS::Zaqar::Subscription and OS::Zaqar::MistralTrigger: who is notified of the messages of a queue."""

import json

from ....shapes import Json, JsonMap
from ....template.constraints import Custom, Range
from ...contract import (
    Done,
    Poll,
    Property,
    PropertyError,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..declared import WAS_FREE
from ..names import quoted
from ..service import Conflict, RemoteNotFound, service_of
from .queue import MESSAGES, queues_of

SCHEMES = ("http", "https", "mailto", "trust+http", "trust+https")
FOREVER = 220367260800
"""Seconds until a moment that the service can count to, Heat's default."""
QUEUE = Property(
    "string", "Name of the queue.", required=True, constraints=(Custom(check_name="zaqar.queue"),)
)
TTL = Property(
    "integer",
    "Time to live of the subscription, in seconds.",
    default=FOREVER,
    update_allowed=True,
    constraints=(Range(minimum=60),),
)


class Subscription(ResourceType):
    """A subscription; a queue has one of each subscriber."""

    type_name = "OS::Zaqar::Subscription"
    support_status = SupportStatus(version="8.0.0")
    description = "A subscription: a URL that is notified of each message of a queue."
    uses_credentials = True
    service = MESSAGES
    identity = "the queue and the subscriber; Stoker first stores that there is none"
    properties_schema = {
        "queue_name": QUEUE,
        "subscriber": Property(
            "string", "URL of the subscriber to notify.", required=True, update_allowed=True
        ),
        "ttl": TTL,
        "options": Property("map", "Notification options.", update_allowed=True),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the subscriber's kind."""
        scheme = str(properties.get("subscriber") or SCHEMES[0]).split(":", 1)[0]
        if scheme not in SCHEMES:
            text = f"The subscriber type of must be one of: {', '.join(SCHEMES)}."
            raise PropertyError(text, ("subscriber",))

    def subscriber(self, target: ResourceView, context: StepContext) -> str:
        """Return the address that is notified."""
        return str(target.properties["subscriber"])

    def options(self, target: ResourceView) -> Json:
        """Return how it is notified."""
        return target.properties["options"] or {}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store first that the queue has no such subscription.

        :raises Conflict: somebody else has one.
        """
        if target.physical_id is not None:
            return Done()
        if self._find(target, context) is not None:
            raise Conflict("message: the queue has a subscription of this subscriber")
        return Poll(progress={}, after=0.0, data={**target.data, WAS_FREE: True})

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Subscribe, unless an earlier step has."""
        if target.attempt > 1 and (earlier := self._find(target, context)) is not None:
            return Done(physical_id=earlier)
        answer = queues_of(context).post(self._path(target), self._body(target, context))
        return Done(physical_id=str(answer["subscription_id"]))

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        path = f"{self._path(target)}/{target.physical_id}"
        queues_of(context).patch(path, self._body(target, context))
        return Done()

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """End the subscription."""
        if target.physical_id is not None:
            try:
                queues_of(context).delete(f"{self._path(target)}/{target.physical_id}")
            except RemoteNotFound:
                return Done()
        return Done()

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the subscription is there.

        :raises RemoteNotFound: it is gone.
        """
        queues_of(context).get(f"{self._path(target)}/{target.physical_id}")
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id of the subscription, if there was none before the creation."""
        return self._find(target, context) if target.data.get(WAS_FREE) else None

    def _find(self, target: ResourceView, context: StepContext) -> str | None:
        address = self.subscriber(target, context)
        subscriptions = queues_of(context).get(self._path(target), limit=20)["subscriptions"]
        return next((str(each["id"]) for each in subscriptions if each["subscriber"] == address), None)

    def _path(self, target: ResourceView) -> str:
        return f"/queues/{quoted(target.properties['queue_name'])}/subscriptions"

    def _body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return {
            "subscriber": self.subscriber(target, context),
            "ttl": target.properties["ttl"],
            "options": self.options(target),
        }


class MistralTrigger(Subscription):
    """A subscription that begins a workflow with each message."""

    type_name = "OS::Zaqar::MistralTrigger"
    description = "A Mistral trigger: a workflow run for each message of a queue."
    properties_schema = {
        "queue_name": QUEUE,
        "ttl": TTL,
        "workflow_id": Property(
            "string",
            "Id of the workflow.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="mistral.workflow"),),
        ),
        "params": Property("map", "Parameters of the execution.", default={}, update_allowed=True),
        "input": Property("map", "Input of the workflow.", default={}, update_allowed=True),
    }

    def subscriber(self, target: ResourceView, context: StepContext) -> str:
        """Return the address at which executions begin, to be called with the rights of the user."""
        return f"trust+{service_of(context, 'workflow').address()}/executions"

    def options(self, target: ResourceView) -> Json:
        """Return the request that begins an execution; the service puts the message into it."""
        properties = target.properties
        params = {**(properties["params"] or {})}
        params["env"] = {**(params.get("env") or {}), "notification": "$zaqar_message$"}
        post_data = {"workflow_id": properties["workflow_id"], "params": params, "input": properties["input"]}
        return {"post_data": json.dumps(post_data)}
