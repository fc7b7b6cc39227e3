"""Builds the view that a resource's type gets, and the columns of the values that the task gives it."""

from dataclasses import replace

from ...db.states import DELETING, TaskKind
from ...db.work.claim import Claim
from ...engine.planning.plan import TaskDefinition, task_key
from ...engine.stored_resource import (
    StoredResource,
    is_sensitive,
    keeps_signals,
    metadata_column,
    metadata_refreshed,
    note_properties,
    note_secrets,
    outline,
)
from ...resources.contract.errors import PermanentError, PropertyError
from ...resources.contract.plugin import ResourceType
from ...resources.contract.properties import (
    meanings,
    resolve_properties,
    resolve_stored,
)
from ...resources.contract.views import ResourceView, StackFacts
from ...sealing.secrets import Secrets
from ...sealing.stored import metadata_in_clear
from ...shapes import Json, JsonMap
from ...template.budget import new_budget
from ...template.errors import LimitExceeded, TemplateError
from ...template.residual import (
    ResidualTooCostly,
    evaluate,
    holds_secret,
    is_deferred,
    members,
    partial,
    references,
)
from .inputs import ClaimLookup, SealedLookup

GIVEN = (TaskKind.CREATE, TaskKind.UPDATE, TaskKind.ADOPT)
"""Kinds of tasks that give a resource new properties; all others work with the ones it has."""


class NeverMade(PermanentError):
    """There is nothing to delete: the properties cannot be computed, so the type was not called."""


def make_target(
    claim: Claim, plugin: ResourceType, definition: TaskDefinition, secrets: Secrets
) -> tuple[ResourceView, dict[str, Json]]:
    """Return the resource as the step sees it, and the columns with the properties that it was given.

    :raises NeverMade: the resource that is to be deleted was never created.
    :raises NoTurn: its properties take long to compute, and others are first.
    :raises PropertyError: a value is wrong.
    :raises PermanentError: the resource refers to another one that is gone.
    """
    resource = claim.resource
    giving = _gives_properties(claim)
    is_new = giving and claim.task.kind == TaskKind.CREATE
    stored_resource = _stored_resource(claim, plugin, secrets)
    before = {} if is_new else _properties_before(claim, stored_resource, secrets)
    stored: dict[str, Json] = {}
    properties = before
    metadata = None
    if giving:
        sealed, properties = _resolved(definition, claim, plugin, secrets)
        if definition.external_id is None:
            plugin.validate(meanings(plugin.properties_schema, properties))
        needed = sorted({source.id for source in claim.inputs.values()})
        stored = {"definition": claim.task.definition, "properties": sealed, "requires": needed}
        stored["type"] = definition.type or resource.type
        if resource.reinstated:
            stored.update(replaces=None, reinstated=False)
        metadata, columns = _given_metadata(claim, plugin, definition, secrets)
        stored.update(columns)
    if metadata is None:
        metadata = stored_resource.metadata()
    note_properties(stored["properties"] if giving else resource.properties, properties, secrets)
    current = definition if giving else TaskDefinition.from_json(resource.definition)
    schema = plugin.update_policy_schema
    policy = evaluate(definition.update_policy, ClaimLookup(claim, secrets)) if giving else {}
    target = replace(
        outline(resource, stored_resource.stack, properties),
        previous=before if claim.task.kind == TaskKind.UPDATE else {},
        update_policy=resolve_properties(schema, policy) if giving and (policy or schema) else {},
        key=_key(claim),
        attempt=_attempt(claim),
        metadata=metadata,
        data=_data(stored_resource, claim.task.kind, secrets),
        requested_attributes=current.requested_attributes,
        creation_key=resource.key or "",
        template=current.template,
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
    return not (claim.task.inherited and claim.begun)


def is_same_type(claim: Claim) -> bool:
    """Return whether the definition has the type that the resource has."""
    plugin = (claim.task.definition or {}).get("plugin", "")
    return plugin in ("", claim.resource.plugin)


def _stored_resource(claim: Claim, plugin: ResourceType, secrets: Secrets) -> StoredResource:
    stack = StackFacts(id=claim.task.stack_id, name=claim.stack_name, project_id=claim.project_id)
    return StoredResource(
        claim.resource, stack, plugin, secrets.open, is_deleting=claim.task.kind in DELETING
    )


def _data(resource: StoredResource, kind: TaskKind, secrets: Secrets) -> JsonMap:
    if not resource.row.data:
        return {}
    if kind == TaskKind.ADOPT and not is_sensitive(resource.plugin):
        return secrets.peek(resource.row.data) or {}
    return resource.data()


def _given_metadata(
    claim: Claim, plugin: ResourceType, definition: TaskDefinition, secrets: Secrets
) -> tuple[Json, dict[str, Json]]:
    """Return the metadata that the task gives the resource, and their columns; None: they stay.

    Where the template has the same metadata as before the data of signals stay.
    """
    resource = claim.resource
    if claim.task.kind == TaskKind.ADOPT and resource.metadata is not None:
        metadata = secrets.peek(resource.metadata)
        return metadata, {"metadata": _adopted_metadata(metadata, definition, claim, secrets)}
    before = TaskDefinition.from_json(resource.definition) if resource.metadata is not None else None
    if before is None or before.metadata != definition.metadata:
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


def _properties_before(claim: Claim, resource: StoredResource, secrets: Secrets) -> JsonMap:
    """Return the properties that were last given to the type."""
    if claim.resource.properties is not None or claim.task.kind not in DELETING:
        return resource.properties()
    return resource.opened(
        lambda: _begun_with(claim, resource.plugin, secrets),
        lambda: resolve_stored(resource.plugin.properties_schema, {}),
    )


def _begun_with(claim: Claim, plugin: ResourceType, secrets: Secrets) -> JsonMap:
    """Return the properties of a creation of which nothing was stored.

    It may have made something all the same.  Its properties follow from its definition again, for all it
    refers to is still there.

    :raises NeverMade: the creation failed before its type was called: a reference fails.
    """
    definition = TaskDefinition.from_json(claim.resource.definition)
    try:
        return _resolved(definition, claim, plugin, secrets)[1]
    except (LimitExceeded, ResidualTooCostly):
        # The creation may have had more time.  What it has made is found by its key.
        return resolve_stored(plugin.properties_schema, {})
    except (PermanentError, PropertyError, TemplateError) as error:
        if claim.resource.physical_id is None:
            raise NeverMade(str(error)) from error
        # What was to be adopted is there also where its properties are wrong.
        return resolve_stored(plugin.properties_schema, {})


def _resolved(
    definition: TaskDefinition, claim: Claim, plugin: ResourceType, secrets: Secrets
) -> tuple[Json, JsonMap]:
    """Return the properties as they are stored, and as they are given to the type.

    A thing that the template names by ``external_id`` is there already, so none of them is required.
    """
    properties = definition.properties
    with new_budget() as budget:
        sealed = partial(properties, SealedLookup(claim), budget)
        secret = {name for name, value in members(sealed).items() if is_deferred(value)}
        values = evaluate(properties, ClaimLookup(claim, secrets), budget)
    if holds_secret(sealed):
        note_secrets(sealed, values, secrets)
    if definition.external_id is not None:
        return sealed, resolve_stored(plugin.properties_schema, values)
    return sealed, resolve_properties(plugin.properties_schema, values, secret)


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
