"""What an update's planning has to know of resource types."""

from ..db.rows import Resource
from ..db.states import Status
from ..resources.errors import UnknownType
from ..resources.plugin import ResourceType
from ..resources.registry import ResourceRegistry
from ..resources.update_decision import observable, survives_failure


class RegisteredTypeFacts:
    """The facts of the installed types."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry

    def always_replaced(self, type_name: str) -> bool:
        """See TypeFacts."""
        plugin = self._get(type_name)
        return plugin is not None and plugin.always_replaced

    def always_updated(self, type_name: str) -> bool:
        """See TypeFacts."""
        plugin = self._get(type_name)
        return plugin is not None and plugin.always_updated

    def nested(self, type_name: str) -> bool:
        """See TypeFacts."""
        return self._registry.is_nested(type_name)

    def asked_first(self, row: Resource) -> bool:
        """See TypeFacts."""
        plugin = self._get(row.plugin)
        if plugin is None:
            return False
        if type(plugin).prepare_for_replace is not ResourceType.prepare_for_replace:
            return True
        return row.status == Status.FAILED and survives_failure(plugin, action=row.action)

    def observable(self, row: Resource) -> bool:
        """See TypeFacts."""
        plugin = self._get(row.plugin)
        return plugin is not None and observable(plugin)

    def _get(self, type_name: str) -> ResourceType | None:
        try:
            return self._registry.get(type_name)
        except UnknownType:
            return None
