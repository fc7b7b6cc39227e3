"""Plants a fault in a module that is loaded already: the code of a function changes, or a constant's value.

So a process that has collected the tests once tries thousands of faults, each in a fork of its own.
"""

import ast
import functools
import gc
import importlib
import pathlib
import re
import sys
import types
import typing
from collections.abc import Collection, Iterator

from mutate.constants import dependents, loaded_names
from mutate.operators import Mutant

ROOT = pathlib.Path(__file__).parents[2]


class NotPlanted(Exception):
    """The fault lies in what runs when the module is loaded, or its function cannot be reached by name."""


def plant(mutant: Mutant) -> None:
    """Change this process for good.

    :raises NotPlanted: nothing is changed; `load` can plant it in a new process.
    """
    module = sys.modules.get(_module_name(mutant.path))
    if module is None:
        raise NotPlanted(str(mutant))
    if not mutant.is_loaded:
        _replace_code(mutant, module)
    _assign(mutant, module)
    for cache in CACHES or caches():
        cache.cache_clear()


def _assign(mutant: Mutant, module: types.ModuleType) -> None:
    """Assign a constant, and those that follow from it, once more, here and where they were imported."""
    text = mutant.apply((ROOT / mutant.path).read_bytes()).decode()
    depending = dependents(text, mutant.line)
    if depending is None and not mutant.is_loaded:
        return  # A method.
    is_class = mutant.is_loaded and mutant.scope
    if depending is None or is_class or _read_elsewhere(depending.public, module):
        raise NotPlanted(str(mutant))
    before = {name: vars(module).get(name) for name in depending.names}
    tree = ast.Module(list(depending.statements), type_ignores=[])
    exec(compile(tree, str(ROOT / mutant.path), "exec"), vars(module))
    for other in list(sys.modules.values()):
        for name, value in before.items():
            if other is not module and getattr(other, "__dict__", {}).get(name) is value is not None:
                setattr(other, name, vars(module)[name])


def _read_elsewhere(names: Collection[str], module: types.ModuleType) -> bool:
    """Return whether another module reads one of the names when it is loaded, beyond its import."""
    if not names:
        return False
    word = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b".encode())
    for name, other in list(sys.modules.items()):
        if not name.startswith("stoker.") or other is module or not getattr(other, "__file__", None):
            continue
        text = pathlib.Path(other.__file__ or "").read_bytes()
        if word.search(text) and any(each in loaded_names(text.decode()) for each in names):
            return True
    return False


def _replace_code(mutant: Mutant, module: types.ModuleType) -> None:
    scope = mutant.scope.split(".<locals>")[0]
    function = _function(module, scope)
    if function is None:
        raise NotPlanted(str(mutant))
    name = str(ROOT / mutant.path)
    text = mutant.apply((ROOT / mutant.path).read_bytes())
    codes = [code for code in _codes(compile(text, name, "exec")) if code.co_qualname == scope]
    # Of several with one name the function is the one at its line, unless the fault itself moves it.
    line = function.__code__.co_firstlineno
    [code, *_] = sorted(codes, key=lambda code: abs(code.co_firstlineno - line))
    if code.co_freevars != function.__code__.co_freevars:
        raise NotPlanted(str(mutant))
    function.__code__ = code


CACHES: list[typing.Any] = []
"""The values of `caches` when all was loaded: to seek them in each process would take a tenth of a second."""


def caches() -> list[typing.Any]:
    """Return what functions of the product keep of earlier calls, of which a fault may be a part."""
    kind = type(functools.cache(lambda: None))
    gc.unfreeze()  # What the suite has frozen is not listed.
    return [
        each for each in gc.get_objects() if isinstance(each, kind) and each.__module__.startswith("stoker")
    ]


def load(mutant: Mutant) -> None:
    """Load a module with a fault, before anybody has loaded it without."""
    name = _module_name(mutant.path)
    assert name not in sys.modules, f"{name} is loaded already"
    finder = _Finder(name, mutant)
    sys.meta_path.insert(0, finder)


class _Finder:
    def __init__(self, name: str, mutant: Mutant) -> None:
        self._name = name
        self._mutant = mutant

    def find_spec(self, name: str, path: typing.Any = None, target: typing.Any = None) -> typing.Any:
        if name != self._name:
            return None
        location = ROOT / self._mutant.path
        loader = _Loader(name, str(location), self._mutant)
        packages = [str(location.parent)] if location.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, location, loader=loader, submodule_search_locations=packages
        )


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self._mutant.apply((ROOT / self._mutant.path).read_bytes()), self.path, "exec")


def _module_name(path: str) -> str:
    parts = pathlib.PurePath("stoker", path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _function(module: types.ModuleType | None, scope: str) -> types.FunctionType | None:
    """Return the function that has this qualified name in a module, without its decorators."""
    value: typing.Any = module
    for name in scope.split("."):
        owner = value
        value = getattr(owner, "__dict__", {}).get(name)
        if value is None and isinstance(owner, type) and name.startswith("__"):
            value = owner.__dict__.get(f"_{owner.__name__.lstrip('_')}{name}")
    for _ in range(5):
        if isinstance(value, types.FunctionType) and value.__qualname__ == scope and not _wrapped(value):
            return value
        value = _wrapped(value)
    return None


def _wrapped(value: typing.Any) -> typing.Any:
    for name in ("__wrapped__", "__func__", "fget", "func"):
        if (inner := getattr(value, name, None)) is not None:
            return inner
    return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)
