"""The types of a folder, each of which says its own name."""

import importlib
import pkgutil
import types
from collections.abc import Mapping

from .contract.plugin import ResourceType


def types_in(folder: types.ModuleType) -> Mapping[str, type[ResourceType]]:
    """Return the classes by the names that they have in their own bodies: `ResourceType.type_name`.

    :param folder: a package; its modules are imported, but not those of packages in it.
    """
    modules = [
        importlib.import_module(f"{folder.__name__}.{module.name}")
        for module in pkgutil.iter_modules(folder.__path__)
        if not module.ispkg
    ]
    return {
        vars(item)["type_name"]: item
        for module in modules
        for item in vars(module).values()
        if isinstance(item, type)
        and issubclass(item, ResourceType)
        and item.__module__ == module.__name__
        and vars(item).get("type_name")
    }
