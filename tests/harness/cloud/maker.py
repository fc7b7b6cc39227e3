"""Resources of a project that a test drives step by step, without a stack."""

import functools
import typing
from collections.abc import Mapping

from harness.cloud.project import Project
from harness.step_driver import Context, Driven
from stoker.resources.plugin import ResourceType
from stoker.resources.registry import ResourceRegistry

Json = typing.Any
SERVICES = ("OS::Cinder::", "OS::Neutron::", "OS::Nova::")


class Maker:
    """Makes resources of a project, which share what they read.

    :ivar work: the context of their steps.
    """

    def __init__(self, project: Project) -> None:
        self.work = Context(project.connection.session)

    def __call__(self, name: str, /, **properties: Json) -> Driven:
        """Create a resource.

        :param name: the last part of the type's name.
        """
        return self.new(name, **properties).create()

    def new(self, name: str, /, **properties: Json) -> Driven:
        """A resource that is not created yet."""
        return Driven(_types()[name], self.work, properties)


@functools.cache
def _types() -> Mapping[str, ResourceType]:
    registry = ResourceRegistry.installed()
    names = (name for name in registry.names() if name.startswith(SERVICES))
    return {name.rpartition("::")[2]: registry.get(name) for name in names}
