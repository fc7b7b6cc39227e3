"""The resource types that are installed.

Types come from entry points of the group ``stoker.resource_types``.  Each entry point is a mapping from
type name to a class derived from `ResourceType`, or a package whose types say their own names::

    [options.entry_points]
    stoker.resource_types =
        acme = acme_stoker.types:RESOURCE_TYPES
"""

import dataclasses
import functools
import importlib.metadata
import logging
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType

from stevedore import ExtensionManager

from ..shapes import Json, JsonMap, TypeIdentity
from ..template.budget import Budget
from ..template.language import ResourceDefinition, is_template_name, type_identity
from ..template.operator_environment import OperatorEnvironment
from ..template.residual import Lookup, evaluate, is_deferred, is_failing, members, references
from ..template.sandbox import evaluator
from ..template.sandbox.errors import EvaluationError, LimitReached
from .contract.errors import AbsentType, UnknownType
from .contract.implied import ImpliedDependency
from .contract.plugin import NOT_KNOWN, ResourceType
from .heat_types import HEAT_TYPES, absent, advice
from .nested.base import NestedType
from .nested.provider import ProviderTemplate
from .type_folders import types_in

LOG = logging.getLogger(__name__)

NAMESPACE = "stoker.resource_types"
PROVIDER = ProviderTemplate()
_SWITCHED_OFF = ". The operator of this service has switched it off (environment_dir)"
STATUSES = ("UNKNOWN", "SUPPORTED", "DEPRECATED", "UNSUPPORTED", "HIDDEN")


class ResourceRegistry:
    """Resource types by name.  Immutable; may be used by all threads.

    :param types: classes by type name; one instance of each serves all resources of the type.
    :param defaults: defaults of properties, by their `Property.default_option`; and ``region_name``, the name
        of the own region.
    :param plugins: instances that serve types beside those of the classes.
    :param template_types: types that the operator has made of templates, by name.
    :param off_names: names of types that the operator has switched off.
    :ivar operator: the environment below that of each stack; None: there is none.
    :ivar default_timeouts: seconds that one action may take, by the type that says so.
    """

    def __init__(
        self,
        types: Mapping[str, type[ResourceType]],
        defaults: JsonMap | None = None,
        *,
        plugins: Mapping[str, ResourceType] | None = None,
        operator: OperatorEnvironment | None = None,
        template_types: Mapping[str, ResourceType] | None = None,
        off_names: Collection[str] = (),
    ) -> None:
        configured = {name: _configured(types[name](), defaults or {}) for name in sorted(types)}
        self._types = {**configured, **(plugins or {})}
        self.default_timeouts = _default_timeouts(self._types)
        self.operator = operator
        self._template_types = template_types or {}
        self._off_names = off_names

    @classmethod
    def installed(cls, namespace: str = NAMESPACE, defaults: JsonMap | None = None) -> "ResourceRegistry":
        """Return the registry of the types of all installed entry points.

        A plugin that cannot be loaded is logged and skipped: one broken package must not affect the
        others.  Of two plugins with the same type name the one whose entry point sorts first wins, so that
        all conductors agree.
        """
        manager: ExtensionManager[object] = ExtensionManager(namespace, on_load_failure_callback=_log_failure)
        types: dict[str, type[ResourceType]] = {}
        for extension in sorted(manager, key=lambda item: str(item.name)):
            for name, declared in _declared(str(extension.name), extension.plugin).items():
                if name in types:
                    LOG.error("Resource type %s of plugin %s is registered already", name, extension.name)
                else:
                    types[name] = declared
        return cls(types, defaults)

    def with_operator(
        self, operator: OperatorEnvironment, template_types: Mapping[str, ResourceType]
    ) -> "ResourceRegistry":
        """Return the registry of an installation whose operator has an environment for all stacks.

        It has all types: stacks may still have resources of one that was switched off.

        :param template_types: types that the operator has made of templates, by name.
        """
        return ResourceRegistry({}, plugins=self._types, operator=operator, template_types=template_types)

    @functools.cached_property
    def usable(self) -> "ResourceRegistry":
        """Return the types that new resources may have: those that the operator has not switched off."""
        if self.operator is None:
            return self
        off_names = frozenset(filter(self.operator.is_switched_off, self._types))
        usable = {name: item for name, item in self._types.items() if name not in off_names}
        return ResourceRegistry({}, plugins=usable, off_names=off_names)

    @functools.cached_property
    def offered(self) -> "ResourceRegistry":
        """Return the usable types, with those that the operator has made of templates."""
        if self.operator is None:
            return self
        offered = dict(sorted({**self.usable._types, **self._template_types}.items()))
        return ResourceRegistry({}, plugins=offered)

    def get(self, name: str) -> ResourceType:
        """Return the type; for the name of a template the type of nested stacks.

        :raises UnknownType: there is no such type; the error says which would be right, or how it is added.
        """
        plugin = self._types.get(name)
        if plugin is not None:
            return plugin
        if is_template_name(name):
            return PROVIDER
        if name in HEAT_TYPES:
            raise AbsentType(absent(name, self.names()))
        hint = advice(name, self.names()) if name not in self._off_names else _SWITCHED_OFF
        raise UnknownType(f"The Resource Type ({name}) could not be found{hint}")

    def is_nested(self, name: str) -> bool:
        """Return whether the resources of the type are nested stacks."""
        try:
            return isinstance(self.get(name), NestedType)
        except UnknownType:
            return False

    def is_stored_here(self, name: str) -> bool:
        """Return whether the things of the type, such as nested stacks, are rows of Stoker's own."""
        try:
            return self.get(name).stored_here
        except UnknownType:
            return False

    def is_deployment(self, name: str) -> bool:
        """Return whether the resources of the type wait for a signal with outputs of a server."""
        try:
            return self.get(name).takes_outputs
        except UnknownType:
            return False

    def with_variant(
        self, definition: ResourceDefinition, secrets: Lookup, budget: Budget
    ) -> ResourceDefinition:
        """Return a resource with the variant of its type that its properties choose.

        :param secrets: opens the tokens of hidden parameters.
        """
        chosen = chosen_type(self.get(definition.type), definition, secrets, budget)
        return dataclasses.replace(definition, type=chosen)

    def service_of(self, name: str) -> str | None:
        """Return the service that the type needs; None: it needs none, or there is no such type."""
        try:
            return self.get(name).service
        except UnknownType:
            return None

    @property
    def uses_credentials(self) -> bool:
        """True if the steps of any type call `session()`."""
        return any(item.uses_credentials for item in self._types.values())

    @functools.cached_property
    def listed(self) -> "Mapping[str, ResourceType]":
        """Return the types whose things a service lists, by name: their drift is observed."""
        return {name: item for name, item in self._types.items() if item.collection() is not None}

    @functools.cached_property
    def following_signals(self) -> Sequence[str]:
        """Return the names of the types whose attributes follow the signals to other resources."""
        return [name for name, item in self._types.items() if item.follows_signals]

    @functools.cached_property
    def remembered(self) -> Mapping[str, Sequence[str]]:
        """Return the keys of data that count when an update is checked, by the names of the types."""
        nested = {name: item for name, item in self._types.items() if isinstance(item, NestedType)}
        return {name: item.remembered for name, item in nested.items() if item.remembered}

    @functools.cached_property
    def implied_dependencies(self) -> Sequence[ImpliedDependency]:
        """Return the implied dependencies that any type declares, each once."""
        return list(
            dict.fromkeys(each for item in self._types.values() for each in item.implied_dependencies)
        )

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def names(self) -> list[str]:
        """Return the names of all types that are not hidden, sorted."""
        return [name for name, item in self._types.items() if not item.support_status.hidden]

    def matching(
        self, pattern: str | None = None, version: str | None = None, support_status: str | None = None
    ) -> list[str]:
        """Return names as Heat's ``GET /resource_types`` filters them; None means any.

        :param pattern: regular expression for the beginning of the name; an invalid one matches nothing.
        :param version: the OpenStack version that brought the type.
        :raises ValueError: there is no such support status, or the expression takes too long.
        """
        if support_status is not None and support_status not in STATUSES:
            raise ValueError(f"Invalid support status and should be one of {', '.join(STATUSES)}")
        names = self.names()
        try:
            matches = evaluator.current().filter_by_start(pattern, names) if pattern else names
        except LimitReached as error:
            raise ValueError(f'the regular expression "{pattern:.200}" {error}') from error
        except EvaluationError:
            return []
        return [
            name
            for name in matches
            if version in (None, self._types[name].support_status.version)
            and support_status in (None, self._types[name].support_status.status)
        ]


def _configured(plugin: ResourceType, defaults: JsonMap) -> ResourceType:
    plugin.configure(defaults)
    mapped = {
        name: dataclasses.replace(prop, default=defaults[prop.default_option])
        for name, prop in plugin.properties_schema.items()
        if prop.default_option in defaults
    }
    if mapped:
        plugin.properties_schema = {**plugin.properties_schema, **mapped}
    return plugin


def _default_timeouts(types: Mapping[str, ResourceType]) -> Mapping[str, float]:
    return {name: item.default_timeout for name, item in types.items() if item.default_timeout is not None}


def _log_failure(_manager: object, entry: importlib.metadata.EntryPoint, error: BaseException) -> None:
    LOG.error(
        "Resource types of plugin %s (%s) are left out: %s",
        entry.name,
        entry.value,
        error,
    )


def _declared(plugin: str, types: object) -> dict[str, type[ResourceType]]:
    if isinstance(types, ModuleType):
        return dict(types_in(types))
    if not isinstance(types, Mapping):
        LOG.error("Plugin %s is left out: it must be a mapping of names to resource types", plugin)
        return {}
    good: dict[str, type[ResourceType]] = {}
    for name, declared in types.items():
        if isinstance(name, str) and isinstance(declared, type) and issubclass(declared, ResourceType):
            good[name] = declared
        else:
            LOG.error("Plugin %s: %s is left out: it is not a class derived from ResourceType", plugin, name)
    return good


def chosen_type(
    plugin: ResourceType, definition: ResourceDefinition, secrets: Lookup, budget: Budget
) -> TypeIdentity:
    """Return a resource's type: its own one, a variant that its properties choose, or a new name.

    A variant is a type of its own that users know by the name of another one; the row of the resource has
    both names.  So an update that changes the choice replaces the resource, as if the environment mapped its
    type to another.

    :param plugin: the resource's type.
    :param secrets: opens the tokens of hidden parameters.
    """
    if plugin.renamed_to:
        return type_identity(plugin.renamed_to)
    if definition.external_id is not None or not plugin.chosen_by:
        return definition.type
    parts = members(definition.properties)
    choice = parts.get(plugin.chosen_by) if parts or not definition.properties else NOT_KNOWN
    variant = plugin.variant(_known_part(choice, secrets, budget))
    return definition.type if variant is None else type_identity(variant)


def _known_part(tree: Json, secrets: Lookup, budget: Budget) -> Json:
    """Return the known part of a value: hidden parameters are known, values of other resources are not."""
    if tree is NOT_KNOWN:
        return tree
    if parts := members(tree):
        return {name: _known_part(value, secrets, budget) for name, value in parts.items()}
    if not is_deferred(tree) or not (references(tree) or is_failing(tree)):
        return evaluate(tree, secrets, budget)
    return NOT_KNOWN
