"""The policy of a resource for drift, which an environment sets: ``stoker: {drift: …}``."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..shapes import Json, JsonMap
from .errors import TemplateError
from .language import Path
from .scalars import written
from .suggestions import closest

DRIFT = "drift"
KEYS = ("heal", "allow_replace", "ignore")


@dataclass(frozen=True)
class DriftPolicy:
    """The reaction to differences between a resource and its thing in the cloud.

    :ivar heal: an update may repair them.
    :ivar allow_replace: such an update may make another thing in the place of this one.
    :ivar ignore: names of properties that others manage: their differences are none.
    """

    heal: bool = False
    allow_replace: bool = False
    ignore: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: JsonMap) -> "DriftPolicy":
        """Return the policy of settings that passed `check_drift`."""
        return cls(
            heal=bool(settings.get("heal")),
            allow_replace=bool(settings.get("allow_replace")),
            ignore=frozenset(settings.get("ignore") or ()),
        )


def check_drift(value: object, path: Path) -> None:
    """Check the settings for drift of one resource.

    :raises TemplateError: they are wrong; the text names the right ones.
    """
    if not isinstance(value, Mapping):
        raise TemplateError(f"must be a map of: {', '.join(KEYS)}; not {written(value)}", path)
    for name, setting in value.items():
        here = (*path, str(name))
        if name not in KEYS:
            raise TemplateError(f'"{name}" is not one of: {", ".join(KEYS)}{closest(str(name), KEYS)}', path)
        if setting is None:
            continue
        if name == "ignore":
            if not isinstance(setting, list) or not all(isinstance(item, str) for item in setting):
                text = f"must be a list of names of properties, such as [tags]; not {written(setting)}"
                raise TemplateError(text, here)
        elif not isinstance(setting, bool):
            raise TemplateError(f"must be true or false, not {written(setting)}", here)


def with_drift(under: JsonMap, over: JsonMap) -> dict[str, Json]:
    """Return both as one map: what `over` says wins, and the ignored properties add up."""
    ignored = {*(under.get("ignore") or ()), *(over.get("ignore") or ())}
    merged = {**under, **{name: value for name, value in over.items() if value is not None}}
    return {**merged, **({"ignore": sorted(ignored)} if ignored else {})}
