"""The values of properties as Heat resolves them: it refers to some resources by other names than Stoker."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass

from ....db.rows import Resource
from ....resources.openstack.nova.launch_schema import LAUNCH_CONFIGURATION
from ....sealing.stored import RowLookup, StoredLookup, Unseal, in_clear
from ....shapes import Json, JsonMap
from ....template.errors import TemplateError
from ....template.language import is_template_name
from ....template.residual import evaluate, holds_secret
from ..mapping import names

STACK_TYPES = ("AWS::CloudFormation::Stack",)
"""Types of nested stacks to which Heat refers by an ARN, as to those whose type is a template."""
NAMED_TYPES = ("AWS::EC2::EIPAssociation", "AWS::IAM::User", LAUNCH_CONFIGURATION)
"""Types to whose resources Heat refers by the name that it makes of a UUID."""
_EQUAL_TYPES = frozenset(
    {
        "AWS::AutoScaling::ScalingPolicy",
        "AWS::CloudFormation::WaitConditionHandle",
        "AWS::EC2::EIP",
        "AWS::ElasticLoadBalancing::LoadBalancer",
        "OS::Heat::RandomString",
        "OS::Heat::SwiftSignalHandle",
        "OS::Heat::UpdateWaitConditionHandle",
    }
)
"""Types whose resources both refer to by the same value, which is no id."""


@dataclass(frozen=True)
class HeatNames:
    """The names that a stack and its resources have in Heat.

    :ivar stack_name: the stack's name, from which that of a nested one may differ at Stoker.
    :ivar uuids: UUIDs of the present resources, by their names.
    """

    project_id: str
    stack_name: str
    uuids: Mapping[str, str]

    def of_resource(self, name: str) -> str:
        """Return the name that Heat makes for what a resource is outside of its stack."""
        return names.name_of(self.stack_name, name, self.uuids[name])


class HeatLookup(RowLookup):
    """Implements template.residual.Lookup: references are Heat's, all other values Stoker's.

    :param rows: the present resources of a stack by their names.
    """

    def __init__(self, rows: Mapping[str, Resource], unseal: Unseal, names: HeatNames) -> None:
        super().__init__(rows, unseal)
        self._of_stack = rows
        self._names = names

    def reference_id(self, resource: str) -> Json:
        row = self._of_stack[resource]
        stored = in_clear(row.reference_id, self.unseal)
        if row.plugin in _EQUAL_TYPES or row.physical_id is None:
            return stored
        if row.plugin in NAMED_TYPES:
            return self._names.of_resource(resource)
        if is_template_name(row.plugin) or row.plugin in STACK_TYPES:
            if stored != row.physical_id:
                return stored  # An output of the template defines it.
            return names.arn(self._names.project_id, self._names.of_resource(resource), row.physical_id)
        return row.physical_id


@dataclass(frozen=True)
class HeatProperties:
    """The properties of a resource as Heat stores them.

    :ivar values: values by name; None: none were resolved yet.
    :ivar is_secret: whether a secret is among the values.
    """

    values: JsonMap | None
    is_secret: bool = False


def properties_of(row: Resource, rows: Mapping[str, Resource], lookup: HeatLookup) -> HeatProperties:
    """Return the properties to which a resource was last brought.

    They are computed once more, with Heat's references, of the definition that they were made of.  Where
    that gives other values than the stored ones, something has changed since, and the stored ones are true.

    :param rows: the present resources of its stack by their names.
    """
    if row.properties is None:
        return HeatProperties(None)
    stored = _as_map(evaluate(row.properties, StoredLookup(lookup.unseal)))
    declared = (row.definition or {}).get("properties") or {}
    is_secret = holds_secret(row.properties) or holds_secret(declared)
    try:
        computed = evaluate(declared, RowLookup(rows, lookup.unseal))
        if _without_nulls(computed) == _without_nulls(stored):
            return HeatProperties(_as_map(evaluate(declared, lookup)), is_secret)
    except (TemplateError, LookupError):
        pass  # It refers to a resource that is gone.
    return HeatProperties(stored, is_secret)


def _as_map(value: Json) -> JsonMap:
    return typing.cast(JsonMap, value) if isinstance(value, Mapping) else {}


def _without_nulls(value: Json) -> Json:
    if not isinstance(value, Mapping):
        return value
    return {key: item for key, item in value.items() if item is not None}
