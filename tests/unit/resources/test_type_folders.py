"""A type is types by the name in its own body, in a module of its folder."""

import importlib
import pathlib
import sys

import pytest
from stoker.resources.registry import ResourceRegistry
from stoker.resources.type_folders import types_in

TYPES = '''
from stoker.resources import ResourceType


class Named(ResourceType):
    """A type."""

    type_name = "Acme::Named"


class Derived(Named):
    """A class that templates cannot name."""
'''
OTHER = '''
from .types import Named


class Alias(Named):
    """Another type."""

    type_name = "Acme::Alias"
'''


def test_a_folder_has_the_classes_that_name_themselves(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "acme_folder"
    folder.mkdir()
    for name, text in (("__init__", ""), ("types", TYPES), ("other", OTHER)):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    types = types_in(importlib.import_module("acme_folder"))
    assert {name: item.__name__ for name, item in types.items()} == {
        "Acme::Named": "Named",
        "Acme::Alias": "Alias",
    }
    assert types["Acme::Named"].__module__ == "acme_folder.types"
    for name in [name for name in sys.modules if name.startswith("acme_folder")]:
        monkeypatch.delitem(sys.modules, name)


def test_each_installed_type_says_the_name_that_it_is_known_by() -> None:
    registry = ResourceRegistry.installed()
    assert [name for name in registry.names() if registry.get(name).type_name != name] == []
