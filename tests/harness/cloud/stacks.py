"""Stacks of one project at a Stoker, over plain HTTP with the token of the project's user."""

import dataclasses
import typing
from collections.abc import Mapping

from client.serving import Answer
from harness.cloud.project import Project
from harness.waiting import wait_for

Json = typing.Any
WITHIN = 180.0
"""Seconds for a stack's action."""


class Api(typing.Protocol):
    """A running Stoker."""

    def call(
        self, method: str, path: str, body: Json = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request; the path is below the root."""


class Stacks:
    """The stacks of a project.

    :ivar service: the Stoker.
    :param within: seconds for a stack's action.
    :param pause: seconds between two requests of who waits for its end.
    """

    def __init__(
        self, service: Api, project: Project, *, within: float = WITHIN, pause: float = 0.05
    ) -> None:
        self.service = service
        self.project = project
        self._within = within
        self._pause = pause

    def call(self, method: str, path: str, body: Json = None) -> Answer:
        """One request.

        :param path: below the project's root, as "/stacks".
        """
        headers = {"X-Auth-Token": self.project.token}
        return self.service.call(method, f"/v1/{self.project.id}{path}", body, headers=headers)

    def start(self, name: str, template: Json, **fields: Json) -> "Stack":
        """Begin to create a stack."""
        answer = self.call("POST", "/stacks", {"stack_name": name, "template": template, **fields})
        assert answer.status == 201, answer
        return Stack(self, f"/stacks/{name}/{answer.body['stack']['id']}")

    def create(self, name: str, template: Json, **fields: Json) -> "Stack":
        """Create a stack, and wait until it is complete."""
        stack = self.start(name, template, **fields)
        stack.wait("CREATE_COMPLETE")
        return stack

    def all(self) -> list["Stack"]:
        """The stacks of the project."""
        listed = self.call("GET", "/stacks").body["stacks"]
        return [Stack(self, f"/stacks/{item['stack_name']}/{item['id']}") for item in listed]

    def clean(self) -> None:
        """Delete all stacks that are left, and wait for the end, good or bad."""
        remaining = self.all()
        for stack in remaining:
            self.call("DELETE", stack.path)
        for stack in remaining:
            self.wait_for(lambda path=stack.path: self._is_over(path), lambda path=stack.path: path)  # type: ignore[misc]

    def wait_for(self, condition: typing.Callable[[], bool], why: typing.Callable[[], str]) -> None:
        """Wait until the condition holds, as long as a stack's action may take."""
        wait_for(condition, self._within, why, pause=self._pause)

    def _is_over(self, path: str) -> bool:
        answer = self.call("GET", path)
        return answer.status == 404 or not answer.body["stack"]["stack_status"].endswith("IN_PROGRESS")


@dataclasses.dataclass(frozen=True)
class Stack:
    """A stack.

    :ivar path: below the project's root.
    """

    stacks: Stacks
    path: str

    def show(self) -> Json:
        """The stack as the API shows it."""
        return self.get("")["stack"]

    def get(self, path: str) -> Json:
        """The body of a GET below the stack that must succeed."""
        answer = self.stacks.call("GET", f"{self.path}{path}")
        assert answer.status == 200, answer
        return answer.body

    def wait(self, status: str) -> Json:
        """Wait until no action is in progress; the stack, which must have this status."""
        self.stacks.wait_for(lambda: not self._status().endswith("IN_PROGRESS"), self._story)
        stack = self.show()
        assert stack["stack_status"] == status, self._story()
        return stack

    def update(self, template: Json, **fields: Json) -> Json:
        """Update it, and wait until that is complete."""
        self.start_update(template, **fields)
        return self.wait("UPDATE_COMPLETE")

    def start_update(self, template: Json, **fields: Json) -> None:
        """Begin to update it."""
        answer = self.stacks.call("PUT", self.path, {"template": template, **fields})
        assert answer.status == 202, answer

    def action(self, name: str) -> Json:
        """Do one of suspend, resume and check, and wait until it is complete."""
        self.start_action(name)
        return self.wait(f"{name.upper()}_COMPLETE")

    def start_action(self, name: str) -> None:
        """Begin one of suspend, resume and check."""
        answer = self.stacks.call("POST", f"{self.path}/actions", {name: None})
        assert answer.status < 300, answer

    def delete(self) -> None:
        """Delete it, and wait until it is gone."""
        self.start_delete()
        self.wait_deleted()

    def start_delete(self) -> None:
        """Begin to delete it."""
        answer = self.stacks.call("DELETE", self.path)
        assert answer.status == 204, answer

    def wait_deleted(self) -> None:
        """Wait until it is gone; the deletion must not fail."""
        self.stacks.wait_for(self._is_deleted, self._story)

    def resources(self) -> Mapping[str, Json]:
        """Its resources by name."""
        return {item["resource_name"]: item for item in self.get("/resources")["resources"]}

    def resource(self, name: str) -> Json:
        """One resource with its attributes."""
        return self.get(f"/resources/{name}")["resource"]

    def physical_id(self, name: str) -> str:
        """By which the service knows what the resource has made."""
        physical: str = self.resource(name)["physical_resource_id"]
        return physical

    def outputs(self) -> Mapping[str, Json]:
        """The values of its outputs by name."""
        return {item["output_key"]: item.get("output_value") for item in self.show().get("outputs", ())}

    def reasons(self) -> Mapping[str, str]:
        """The reason of each resource that failed."""
        return {
            name: item["resource_status_reason"]
            for name, item in self.resources().items()
            if item["resource_status"].endswith("FAILED")
        }

    def _status(self) -> str:
        status: str = self.get("?resolve_outputs=false")["stack"]["stack_status"]
        return status

    def _is_deleted(self) -> bool:
        answer = self.stacks.call("GET", f"{self.path}?resolve_outputs=false")
        if answer.status == 404:
            return True
        status = answer.body["stack"]["stack_status"]
        assert status != "DELETE_FAILED", self._story()
        return bool(status == "DELETE_COMPLETE")

    def _story(self) -> str:
        stack = self.show()
        lines = [f"{stack['stack_name']}: {stack['stack_status']}: {stack['stack_status_reason']}"]
        lines += [
            f"  {name} ({item['resource_type']}): {item['resource_status']}: {item['resource_status_reason']}"
            for name, item in self.resources().items()
        ]
        return "\n".join(lines)
