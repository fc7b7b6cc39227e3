"""Resources of a project that a test drives step by step, without a stack."""

import functools
import typing
from collections.abc import Mapping

from harness.cloud.project import Project
from harness.step_driver import Context, Driven
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.registry import ResourceRegistry

Json = typing.Any
SERVICES = ("OS::Cinder::", "OS::Neutron::", "OS::Nova::")


class Maker:
    """Makes resources of a project, which share what they read.

    :ivar context: the context of their steps.
    """

    def __init__(self, project: Project) -> None:
        self.context = Context(project.connection.session)

    def __call__(self, name: str, /, **properties: Json) -> Driven:
        """Create a resource.

        :param name: the type's name; of types of Cinder, Neutron and Nova its last part.
        """
        return self.new(name, **properties).create()

    def new(self, name: str, /, **properties: Json) -> Driven:
        """A resource that is not created yet."""
        plugin = _registry().get(name) if "::" in name else _types()[name]
        return Driven(plugin, self.context, properties)


@functools.cache
def _registry() -> ResourceRegistry:
    return ResourceRegistry.installed()


@functools.cache
def _types() -> Mapping[str, ResourceType]:
    registry = _registry()
    names = (name for name in registry.names() if name.startswith(SERVICES))
    return {name.rpartition("::")[2]: registry.get(name) for name in names}
