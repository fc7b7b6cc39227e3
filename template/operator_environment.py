"""The operator's environment, which maps, replaces and switches off types for all stacks of an installation.

It lies below the environment of each stack and is not stored with it, so a change of the operator's counts
for the next request.
"""

import dataclasses
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..settings import setting
from ..shapes import Json, JsonMap
from .environment import Environment, parse_environment
from .errors import TemplateError
from .hidden import hidden_names
from .language import is_template_name
from .load import load_document

SECTIONS = ("resource_registry", "parameter_defaults")
_NESTED = 20
"""Levels of templates in texts of templates that are searched for hidden parameters."""


@dataclass(frozen=True)
class OperatorFiles:
    """The files for all stacks of an installation."""

    environment_dir: str = setting(
        "environment_dir",
        "/etc/stoker/environment.d",
        "Directory of environment files for all stacks, which are merged in the order of their names. They "
        "map types to other types or to templates, switch types off (null), and give defaults of "
        "parameters. The environment of a stack precedes them. All programs read them at their start, and "
        "do not start with an invalid file. The directory need not exist.",
    )
    template_dir: str = setting(
        "template_dir",
        "/etc/stoker/templates",
        "Directory of templates (`*.yaml`, `*.template`) that all stacks may use as types by their names, "
        "and to which files of environment_dir may map types. It need not exist.",
    )


@dataclass(frozen=True)
class OperatorEnvironment:
    """The merged environments of an operator, with the templates that they name.

    :ivar environment: its registry and its defaults of parameters.
    :ivar templates: texts by address (``file://…``).
    :ivar names: addresses of templates by the names under which all stacks may use them as types.
    :ivar switched_off: names of types that nobody may use; a ``*`` at the end stands for anything.
    :ivar hidden: names of parameters that a template of the operator's hides.
    """

    environment: Environment = field(default_factory=Environment)
    templates: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    switched_off: Sequence[str] = ()
    hidden: frozenset[str] = frozenset()

    @functools.cached_property
    def _base(self) -> Environment:
        return self._without(())

    def _without(self, names: Collection[str]) -> Environment:
        """Return the environment in which names of templates are types, but for those of a request's own."""
        types = {name: address for name, address in self.names.items() if name not in names}
        return dataclasses.replace(self.environment, registry={**types, **self.environment.registry})

    def under(self, environment: Environment, files: Collection[str] = ()) -> Environment:
        """Return a stack's environment with this one below it.

        :param files: names of the files that the stack has itself; they precede files of the operator's.
        """
        base = self._base if self.names.keys().isdisjoint(files) else self._without(files)
        hidden = sorted({*environment.encrypted_param_names, *self.hidden})
        return dataclasses.replace(environment, operator=base, encrypted_param_names=hidden)

    def with_templates(
        self, files: Mapping[str, str], used: dict[str, str] | None = None
    ) -> Mapping[str, str]:
        """Return a stack's files and the operator's templates, which precede older copies among those files.

        :param used: gets the templates that are read.
        """
        return _StackFiles(files, self.templates, {} if used is None else used)

    def is_switched_off(self, type_name: str) -> bool:
        """Return whether nobody may use the type; an entry that maps it to itself allows it again."""
        return self.environment.registry.get(type_name) != type_name and any(
            type_name.startswith(name[:-1]) if name.endswith("*") else type_name == name
            for name in self.switched_off
        )

    def mapped_templates(self) -> Mapping[str, str]:
        """Return the addresses of the templates to which single types are mapped, by the type."""
        mapped = self.environment.registry.items()
        return {name: to for name, to in mapped if to in self.templates and not name.endswith("*")}


class _StackFiles(Mapping[str, str]):
    """The files of a stack, and the operator's templates."""

    def __init__(
        self, own_templates: Mapping[str, str], templates: Mapping[str, str], used: dict[str, str]
    ) -> None:
        self._own = own_templates
        self._templates = templates
        self._used = used

    def __getitem__(self, name: str) -> str:
        if name in self._templates:
            self._used[name] = self._templates[name]
            return self._used[name]
        return self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._own, **self._templates})

    def __len__(self) -> int:
        return len({**self._own, **self._templates})


def merge_operator_files(
    environments: Sequence[tuple[str, str]], templates: Mapping[str, str], names: Mapping[str, str]
) -> OperatorEnvironment | None:
    """Return the environment of an operator; None: there is nothing.

    :param environments: names and texts of environment files; later ones precede.
    :param templates: texts by address; they are not checked.
    :param names: addresses of templates by names; entries of the environments may use both.
    :raises TemplateError: a file is wrong; the error names it.
    """
    if not environments and not templates:
        return None
    registry: dict[str, Json] = {}
    defaults: dict[str, Json] = {}
    off: list[str] = []
    for name, text in environments:
        document = _document(name, text)
        for key, target in (document.get("resource_registry") or {}).items():
            address = _target(name, str(key), target, templates, names)
            _enter(registry, off, str(key), address)
        defaults.update(document.get("parameter_defaults") or {})
    return OperatorEnvironment(
        environment=Environment(registry=registry, parameter_defaults=defaults),
        templates=dict(templates),
        names=dict(names),
        switched_off=tuple(off),
        hidden=hidden_names(templates.values(), depth=_NESTED),
    )


def _document(name: str, text: str) -> JsonMap:
    try:
        document = load_document(text, "environment")
        parse_environment(document)
        for section, content in document.items():
            if content and section not in SECTIONS:
                allowed = " and ".join(SECTIONS)
                raise TemplateError(f"an environment for all stacks may only have {allowed}", [section])
        if (document.get("resource_registry") or {}).get("resources"):
            message = "entries for single resources belong in the environment of a stack"
            raise TemplateError(message, ["resource_registry", "resources"])
    except TemplateError as error:
        raise TemplateError(str(error), [name]) from error
    return document


def _target(
    name: str, key: str, target: str | None, templates: Mapping[str, str], names: Mapping[str, str]
) -> str | None:
    if target is None or not is_template_name(target):
        return target
    address = names.get(target, target)
    if address not in templates:
        message = f"there is no template {target}; it must be a file:// address or a file of template_dir"
        raise TemplateError(message, [name, "resource_registry", key])
    return address


def _enter(registry: dict[str, Json], off: list[str], key: str, target: str | None) -> None:
    """Add an entry to the registry; null removes the earlier entries, and switches off the type itself."""
    if target is not None:
        registry[key] = target
        if key in off:
            off.remove(key)
        return
    prefix = key.removesuffix("*")
    for name in list(registry):
        if name == key or (key != prefix and name.startswith(prefix)):
            del registry[name]
    if key not in off:
        off.append(key)
