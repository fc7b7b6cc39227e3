"""The goals of stacks as Heat stores them: a template with its environment and its files; pure."""

import json
from collections.abc import Mapping

from ....sealing.stored import StoredLookup, Unseal
from ....shapes import Json, JsonMap
from ....template.residual import evaluate, holds_secret, members
from ..heat.rows import HeatTemplate

ENVIRONMENT = ("parameter_defaults", "resource_registry", "event_sinks")
"""Sections of an environment that Heat stores besides the parameters."""


def heat_template(
    contents: tuple[Json, Json, Json], parameters: Json, unseal: Unseal, *, is_generated: bool
) -> HeatTemplate:
    """Return a goal.

    :param contents: the template, the environment and the files as they are stored.
    :param parameters: the parameters of the request as they are stored.
    :param is_generated: whether the type of a group has made the template.  Heat's types name its outputs
        otherwise, and do without them until the first update.
    """
    template, environment, files = contents
    lookup = StoredLookup(unseal)
    stored = {**members(environment.get("parameters") or {}), **members(parameters)}
    hidden = sorted(name for name, value in stored.items() if holds_secret(value))
    values = {name: evaluate(value, lookup) for name, value in stored.items()}
    document: dict[str, Json] = {
        "parameters": {name: _text(value) if name in hidden else value for name, value in values.items()},
        "encrypted_param_names": hidden,
    }
    for name in ENVIRONMENT:
        document[name] = evaluate(environment.get(name) or {}, lookup)
    document["event_sinks"] = document["event_sinks"] or []
    if is_generated:
        template = {name: part for name, part in template.items() if name != "outputs"}
    return HeatTemplate(template, document, dict(files))


def has_secret_defaults(environment: JsonMap) -> bool:
    """Return whether a hidden parameter has its value from a section that Heat stores in clear."""
    return holds_secret(environment.get("parameter_defaults") or {})


def resource_names(template: HeatTemplate) -> frozenset[str]:
    """Return the names of the resources that a template declares."""
    sections = (template.template.get(key) for key in ("resources", "Resources"))
    return frozenset(name for section in sections if isinstance(section, Mapping) for name in section)


def _text(value: Json) -> str:
    """Return a hidden value as Heat encrypts it."""
    return value if isinstance(value, str) else json.dumps(value)
