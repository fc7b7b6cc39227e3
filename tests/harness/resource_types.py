"""The resource types of one folder of the product."""

import importlib
from collections.abc import Mapping

from stoker.resources.contract.plugin import ResourceType
from stoker.resources.type_folders import types_in


def types_of(folder: str) -> Mapping[str, type[ResourceType]]:
    """The types by name.

    :param folder: below resources/, with points: `openstack.nova`.
    """
    return types_in(importlib.import_module(f"stoker.resources.{folder}"))
