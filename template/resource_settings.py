"""Settings of single resources in an environment: breakpoints, restricted actions, timeout, drift."""

import math
from collections.abc import Callable, Iterable, Mapping

from ..shapes import Json, JsonMap
from .drift import DRIFT, check_drift, with_drift
from .errors import InvalidHookName, InvalidRestriction, TemplateError
from .language import Path, ResourceSettings
from .scalars import written

HOOKS = ("pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete")
RESTRICTED = ("update", "replace")
STOKER = "stoker"
"""A map of the settings that Heat does not have.  Heat's client takes every value that is no map for the name
of a file, so they can only be in a map in a file that it reads."""
RESTORED = "restored"
"""A key in that map: properties that win over the template's, since a snapshot was restored."""
OPTIONS = ("timeout", "then", "abort")
"""Options of a breakpoint."""
ENDS = ("continue", "fail")


def check_setting(key: str, value: object, path: Path) -> None:
    """Check the value of one of SETTINGS.

    :raises TemplateError: the value is wrong; the text names the right ones.
    """
    _CHECKS[key](value, path)


def _check_stoker(value: object, path: Path) -> None:
    if not isinstance(value, Mapping):
        raise TemplateError(f"must be a map, not {written(value)}", path)
    for name, setting in value.items():
        if name not in ("timeout", "retries", DRIFT, RESTORED):
            raise TemplateError(f'"{name}" is not one of: timeout, retries, {DRIFT}', path)
        if name == RESTORED:
            _check_restored(setting, (*path, name))
        elif name == DRIFT and setting is not None:
            check_drift(setting, (*path, name))
        elif setting is not None:
            check_setting(name, setting, (*path, name))


def _check_restored(value: object, path: Path) -> None:
    if not isinstance(value, Mapping):
        raise TemplateError(f"must be a map of properties, not {written(value)}", path)


def _check_retries(value: object, path: Path) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TemplateError(f"must be a whole number, 0 or more, not {written(value)}", path)


def _check_seconds(value: object, path: Path) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise TemplateError(f"must be a number of seconds above 0, not {written(value)}", path)


def _check_restrictions(value: object, path: Path) -> None:
    for word in value if isinstance(value, list) else [value]:
        if word not in RESTRICTED:
            raise InvalidRestriction(
                f'Invalid restricted_action type "{word}" for resource, acceptable restricted_action '
                f"types are: {', '.join(RESTRICTED)}",
                path,
            )


def _check_hook_names(value: object, path: Path) -> None:
    for word in value if isinstance(value, list) else [value]:
        if word not in HOOKS:
            raise InvalidHookName(
                f'Invalid hook type "{word}" for resource breakpoint, acceptable hook types are: '
                f"{', '.join(HOOKS)}",
                path,
            )


def _check_hooks(value: object, path: Path) -> None:
    if not isinstance(value, Mapping):
        _check_hook_names(value, path)
        return
    for hook, options in value.items():
        _check_hook_names(hook, path)
        if not isinstance(options, Mapping | None):
            raise TemplateError(
                f"must be a map of: {', '.join(OPTIONS)}; not {written(options)}", (*path, hook)
            )
        for name, option in (options or {}).items():
            _check_option(name, option, (*path, hook), options or {})


def _check_option(name: str, value: object, path: Path, options: JsonMap) -> None:
    here = (*path, str(name))
    if name == "timeout":
        _check_seconds(value, here)
    elif name == "then":
        if value not in ENDS:
            raise TemplateError(f'"{value}" is not one of: {", ".join(ENDS)}', here)
        if "timeout" not in options:
            raise TemplateError("needs a timeout beside it", here)
    elif name == "abort":
        if not isinstance(value, bool):
            raise TemplateError(f"must be true or false, not {written(value)}", here)
    else:
        raise TemplateError(f'"{name}" is not one of: {", ".join(OPTIONS)}', path)


_CHECKS: Mapping[str, Callable[[object, Path], None]] = {
    "hooks": _check_hooks,
    "restricted_actions": _check_restrictions,
    "timeout": _check_seconds,
    "retries": _check_retries,
    STOKER: _check_stoker,
}
SETTINGS = tuple(_CHECKS)
"""Keys of an environment's settings of one resource."""


def combined(entries: Iterable[JsonMap]) -> ResourceSettings:
    """Return the settings of several entries, each of which wins over those before it.

    Hooks, restricted actions and properties whose drift is ignored add up.
    """
    hooks: dict[str, Json] = {}
    restricted: set[str] = set()
    timeout: float | None = None
    retries: int | None = None
    restored: dict[str, Json] = {}
    drift: dict[str, Json] = {}
    for entry in entries:
        hooks = with_hooks(hooks, entry.get("hooks"))
        restricted.update(words(entry.get("restricted_actions")))
        for part in (entry, entry.get(STOKER) or {}):
            timeout = timeout if part.get("timeout") is None else part["timeout"]
            retries = retries if part.get("retries") is None else part["retries"]
        special = entry.get(STOKER) or {}
        restored.update(special.get(RESTORED) or {})
        drift = with_drift(drift, special.get(DRIFT) or {})
    options = {hook: hook_options for hook, hook_options in hooks.items() if hook_options}
    return ResourceSettings(
        frozenset(hooks), frozenset(restricted), timeout, retries, options, restored, drift
    )


def words(value: str | list[str] | None) -> list[str]:
    """Return a list of one word, of several, or of none."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def with_hooks(under: Json, over: Json) -> dict[str, Json]:
    """Return both as a map of options; where both have options for a hook, those of `over` win."""
    merged = _as_map(under)
    for hook, options in _as_map(over).items():
        merged[hook] = options or merged.get(hook) or {}
    return merged


def _as_map(hooks: Json) -> dict[str, Json]:
    if isinstance(hooks, Mapping):
        return {hook: dict(options or {}) for hook, options in hooks.items()}
    return {hook: {} for hook in words(hooks)}
