"""Builds the view that a resource's type gets, and the columns of the values that the task gives it."""

import contextlib
import logging
from dataclasses import replace

from ...db.states import DELETING, TaskKind
from ...db.work.claim import Claim
from ...engine.planning.plan import TaskDefinition, task_key
from ...engine.stored_resource import (
    is_sensitive,
    keeps_signals,
    metadata_column,
    metadata_refreshed,
    note_properties,
    note_secrets,
)
from ...resources.contract.errors import PermanentError, PropertyError
from ...resources.contract.plugin import ResourceType
from ...resources.contract.properties import (
    meanings,
    resolve_properties,
    resolve_stored,
)
from ...resources.contract.views import ResourceView, StackFacts
from ...sealing.sealer import SealError
from ...sealing.secrets import Secrets
from ...sealing.stored import StoredLookup, metadata_in_clear
from ...shapes import Json, JsonMap
from ...template.budget import Budget
from ...template.errors import TemplateError
from ...template.residual import evaluate, holds_secret, is_deferred, members, partial, references
from .computing import Computing
from .inputs import ClaimLookup, SealedLookup

LOG = logging.getLogger(__name__)
GIVEN = (TaskKind.CREATE, TaskKind.UPDATE, TaskKind.ADOPT)
"""Kinds of tasks that give a resource new properties; all others work with the ones it has."""


def make_target(
    claim: Claim, plugin: ResourceType, definition: TaskDefinition, secrets: Secrets, computing: Computing
) -> tuple[ResourceView, dict[str, Json]]:
    """Return the resource as the step sees it, and the columns with the properties that it was given.

    :raises NoTurn: its properties take long to compute, and others are first.
    :raises PropertyError: a value is wrong.
    :raises PermanentError: the resource refers to another one that is gone.
    """
    resource = claim.resource
    giving = _gives_properties(claim)
    before_definition = TaskDefinition.from_json(resource.definition)
    is_new = giving and claim.task.kind == TaskKind.CREATE
    before = {} if is_new else _readable_before(claim, plugin, secrets, computing)
    stored: dict[str, Json] = {}
    properties = before
    metadata = None
    if giving:
        sealed, properties = _resolved(definition, claim, plugin, secrets, computing)
        if definition.external_id is None:
            plugin.validate(meanings(plugin.properties_schema, properties))
        needed = sorted({source.id for source in claim.inputs.values()})
        stored = {"definition": claim.task.definition, "properties": sealed, "requires": needed}
        stored["type"] = definition.type or resource.type
        if resource.reinstated:
            stored.update(replaces=None, reinstated=False)
        is_same = before_definition.metadata == definition.metadata
        metadata, columns = _given_metadata(claim, plugin, definition, secrets, is_same=is_same)
        stored.update(columns)
    if metadata is None:
        try:
            metadata = metadata_in_clear(resource, secrets.open)
        except SealError:
            if claim.task.kind not in DELETING:
                raise
            metadata = {}
    note_properties(stored["properties"] if giving else resource.properties, properties, secrets)
    schema = plugin.update_policy_schema
    policy = evaluate(definition.update_policy, ClaimLookup(claim, secrets)) if giving else {}
    target = ResourceView(
        id=resource.id,
        name=resource.name,
        type=resource.plugin,
        stack=StackFacts(id=claim.task.stack_id, name=claim.stack_name, project_id=claim.project_id),
        properties=properties,
        previous=before if claim.task.kind == TaskKind.UPDATE else {},
        update_policy=resolve_properties(schema, policy) if giving and (policy or schema) else {},
        key=_key(claim),
        physical_id=resource.physical_id,
        attempt=_attempt(claim),
        metadata=metadata,
        data=_data(claim, plugin, secrets),
        requested_attributes=(definition if giving else before_definition).requested_attributes,
        creation_key=resource.key or "",
        template=(definition if giving else before_definition).template,
    )
    return target, {name: value for name, value in stored.items() if value != getattr(resource, name)}


def kept_properties(claim: Claim) -> Json:
    """Return the properties that the step works with, with their secrets sealed."""
    if not _gives_properties(claim):
        return claim.resource.properties or {}
    return partial(TaskDefinition.from_json(claim.task.definition).properties, SealedLookup(claim))


def _gives_properties(claim: Claim) -> bool:
    """Return whether the task gives the resource new properties.

    A task that was carried over, and has begun, continues with the properties it began with.  What it refers
    to may have changed since; the task of the new goal updates it afterwards.
    """
    if claim.task.kind not in GIVEN or not is_same_type(claim):
        return False
    return not (claim.begun and claim.task.inherited)


def is_same_type(claim: Claim) -> bool:
    """Return whether the definition has the type that the resource has."""
    plugin = (claim.task.definition or {}).get("plugin", "")
    return plugin in ("", claim.resource.plugin)


def _data(claim: Claim, plugin: ResourceType, secrets: Secrets) -> JsonMap:
    data = claim.resource.data
    if not data:
        return {}
    is_new = claim.task.kind == TaskKind.ADOPT and not is_sensitive(plugin)
    if is_new:
        return secrets.peek(data) or {}
    try:
        return secrets.open_value(data) or {}
    except SealError:
        if claim.task.kind not in DELETING:
            raise
    return {}


def _given_metadata(
    claim: Claim, plugin: ResourceType, definition: TaskDefinition, secrets: Secrets, *, is_same: bool
) -> tuple[Json, dict[str, Json]]:
    """Return the metadata that the task gives the resource, and their columns; None: they stay.

    :param is_same: the template has the same metadata as before: the data of signals stay.
    """
    resource = claim.resource
    if claim.task.kind == TaskKind.ADOPT and resource.metadata is not None:
        metadata = secrets.peek(resource.metadata)
        return metadata, {"metadata": _adopted_metadata(metadata, definition, claim, secrets)}
    if resource.metadata is None or not is_same:
        generation = resource.generation + (resource.metadata is not None)
        columns = {"metadata": partial(definition.metadata, SealedLookup(claim)), "generation": generation}
        return evaluate(definition.metadata, ClaimLookup(claim, secrets)), columns
    # An attempt at a creation has the metadata of the first one.
    if claim.task.kind == TaskKind.CREATE or keeps_signals(plugin) or not references(definition.metadata):
        return None, {}
    refreshed = metadata_refreshed(resource.metadata, definition.metadata, SealedLookup(claim))
    if refreshed == resource.metadata:
        return None, {}
    columns = {"metadata": refreshed, "generation": resource.generation + 1}
    return metadata_in_clear(replace(resource, metadata=refreshed), secrets.open), columns


def _adopted_metadata(metadata: Json, definition: TaskDefinition, claim: Claim, secrets: Secrets) -> Json:
    """Return metadata of another stack's resource as it is stored: the template's own secrets sealed."""
    if evaluate(definition.metadata, ClaimLookup(claim, secrets)) == metadata:
        return partial(definition.metadata, SealedLookup(claim))
    return metadata_column(metadata, secrets)


def _readable_before(claim: Claim, plugin: ResourceType, secrets: Secrets, computing: Computing) -> JsonMap:
    """Return the properties that were last given to the type.

    A deletion continues without those that a lost key has sealed: else nobody could delete the stack.
    """
    try:
        return properties_before(claim, plugin, secrets, computing)
    except SealError as error:
        if claim.task.kind not in DELETING:
            raise
        LOG.warning("Resource %s is deleted without a value: %s", claim.resource.name, error)
    values: dict[str, Json] = {}
    for name, part in members(claim.resource.properties).items():
        with contextlib.suppress(SealError):
            values[name] = evaluate(part, StoredLookup(secrets.open))
    return resolve_stored(plugin.properties_schema, values)


def properties_before(claim: Claim, plugin: ResourceType, secrets: Secrets, computing: Computing) -> JsonMap:
    """Return the properties that were last given to the type.

    A creation of which nothing was stored may have made something all the same.  Its properties follow from
    its definition again, for all it refers to is still there.
    """
    resource = claim.resource
    if resource.properties is None and claim.task.kind in DELETING:
        begun_with = TaskDefinition.from_json(resource.definition)
        try:
            return _resolved(begun_with, claim, plugin, secrets, computing)[1]
        except (PermanentError, PropertyError, TemplateError):
            if resource.physical_id is None:
                raise
            # What was to be adopted is there also where its properties are wrong.
            return resolve_stored(plugin.properties_schema, {})
    values = evaluate(resource.properties or {}, StoredLookup(secrets.open))
    return resolve_stored(plugin.properties_schema, values)


def _resolved(
    definition: TaskDefinition, claim: Claim, plugin: ResourceType, secrets: Secrets, computing: Computing
) -> tuple[Json, JsonMap]:
    """Return the properties as they are stored, and as they are given to the type.

    A thing that the template names by ``external_id`` is there already, so none of them is required.
    """

    def compute(budget: Budget) -> tuple[Json, JsonMap]:
        return _evaluated(definition, claim, plugin, secrets, budget)

    return computing.result_of(claim.project_id, compute)


def _evaluated(
    definition: TaskDefinition, claim: Claim, plugin: ResourceType, secrets: Secrets, budget: Budget
) -> tuple[Json, JsonMap]:
    properties = definition.properties
    sealed = partial(properties, SealedLookup(claim), budget)
    secret = {name for name, value in members(sealed).items() if is_deferred(value)}
    values = evaluate(properties, ClaimLookup(claim, secrets), budget)
    if holds_secret(sealed):
        note_secrets(sealed, values, secrets)
    if definition.external_id is not None:
        return sealed, resolve_stored(plugin.properties_schema, values)
    return sealed, resolve_properties(plugin.properties_schema, values, secret)


def never_made(claim: Claim, plugin: ResourceType, secrets: Secrets, computing: Computing) -> bool:
    """Return whether the creation failed before its type was called: a reference fails."""
    if claim.resource.properties is not None or claim.resource.physical_id is not None:
        return False
    try:
        properties_before(claim, plugin, secrets, computing)
    except (PermanentError, PropertyError, TemplateError):
        return True
    return False


def _attempt(claim: Claim) -> int:
    """Return the number of the attempt at the action.

    A task that creates the replacement of its resource has had attempts at the update before.  Until the
    creation has begun, nothing is lost that the type would have to search for, or wait for.
    """
    is_first = claim.task.kind == TaskKind.CREATE and claim.resource.action == "INIT"
    return 1 if is_first else claim.task.attempt


def _key(claim: Claim) -> str:
    """Return the idempotency key of the step's action.

    A creation has the resource's own key, other actions one each, the same for every attempt.  What a
    snapshot has made is found by the key with which it was made.
    """
    if claim.task.kind in (TaskKind.CREATE, TaskKind.DELETE_SNAPSHOT) and claim.resource.key:
        return claim.resource.key
    return task_key(claim.task.id)
