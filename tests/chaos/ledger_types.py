"""A resource type whose items are in the ledger, over HTTP; the environment says where it is."""

import os
import threading
import typing
from collections.abc import Mapping

import requests
from stoker.resources import (
    Attribute,
    Done,
    Json,
    PermanentError,
    Poll,
    Property,
    ResourceType,
    ResourceView,
    RetryableError,
    Step,
    StepContext,
)

ADDRESS = "CHAOS_LEDGER"
"""The variable of the environment with the ledger's address."""
PATIENCE = 3.0
"""Seconds that a request to the ledger may take."""
POLL = 0.3
"""Seconds between two polls."""
CHANGED = ("value", "inputs")
_SESSIONS = threading.local()


def _request(method: str, path: str, body: Json = None) -> typing.Any:
    """Send a request; None: the item does not exist.

    :raises RetryableError: there is no answer, or none that says anything of the item.
    """
    if not hasattr(_SESSIONS, "session"):
        _SESSIONS.session = requests.Session()
    try:
        answer = _SESSIONS.session.request(
            method, f"{os.environ[ADDRESS]}{path}", json=body, timeout=PATIENCE
        )
        if answer.status_code == 404:
            return None
        if answer.status_code >= 300:
            raise RetryableError(f"the ledger answers {answer.status_code}")
        return answer.json() if answer.content else {}
    except requests.RequestException as error:
        raise RetryableError(f"the ledger does not answer: {error}") from error


class Item(ResourceType):
    """A item of the ledger."""

    properties_schema = {
        "label": Property("string", "Its place in the tree of stacks.", required=True),
        "value": Property("string", "Its value.", default="", update_allowed=True),
        "edition": Property("string", "A new one replaces it.", default=""),
        "inputs": Property("list", "Ids of items that come first.", default=[], update_allowed=True),
        "seconds": Property(
            "number", "Seconds until it is ready; below 0: never.", default=0, update_allowed=True
        ),
        "fails": Property("boolean", "Whether it cannot be made.", default=False, update_allowed=True),
    }
    attributes_schema = {"value": Attribute("Its value.", "string")}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        if target.properties["fails"]:
            raise PermanentError("it is to fail")
        names = ("label", "value", "inputs", "seconds")
        body = {name: target.properties[name] for name in names}
        return self._look(_request("PUT", f"/keys/{target.key}", {**body, "row": target.id}))

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._look(_request("GET", f"/items/{target.physical_id}"))

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        if target.properties["fails"]:
            raise PermanentError("it is to fail")
        body = {name: target.properties[name] for name in CHANGED}
        return self._look(_request("PUT", f"/items/{target.physical_id}", body))

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._look(_request("GET", f"/items/{target.physical_id}"))

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        if target.physical_id is not None:
            _request("DELETE", f"/items/{target.physical_id}")
        elif target.creation_key:
            _request("DELETE", f"/keys/{target.creation_key}")
        return Done()

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        return self._enter(target, "suspended")

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        return self._enter(target, "active")

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        return self._look(_request("GET", f"/items/{target.physical_id}"))

    def handle_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        copy = _request("PUT", f"/copies/{target.key}", {"item": target.physical_id})
        if copy is None:
            raise PermanentError("the item is gone")
        return Done(data={"copy": copy["id"]})

    def handle_delete_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        if target.key:
            _request("DELETE", f"/copies/{target.key}")
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        item = _request("GET", f"/keys/{key}")
        return None if item is None else str(item["id"])

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        return {"value": target.properties["value"]}

    def _enter(self, target: ResourceView, state: str) -> Step:
        return self._look(_request("PUT", f"/items/{target.physical_id}", {"state": state}))

    def _look(self, item: typing.Any) -> Step:
        if item is None:
            raise PermanentError("the item is gone")
        if item["ready"]:
            return Done(physical_id=item["id"])
        return Poll({}, after=POLL, physical_id=item["id"])


RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {"Chaos::Item": Item}
