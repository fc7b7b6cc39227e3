"""The stored form of software configs, and of the values of deployments: sealed as a whole.

Each of a deployment's configs holds an address that takes signals, and most hold passwords.  With the value
is stored which texts in it are secrets of a template.  So a guest gets the value, and a user sees it without
the secrets.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..shapes import Json, JsonMap
from ..template.residual import sealed, token_of
from .redaction import MASK, SecretTexts
from .sealer import BoundSealer


@dataclass(frozen=True)
class SoftwareValue:
    """A value with the secrets in it.

    :ivar secrets: texts of the secrets; a number counts as its digits.
    """

    value: Json
    secrets: frozenset[str] = frozenset()

    def masked(self) -> Json:
        """Return the value without its secrets."""
        return _masked(self.value, SecretTexts(self.secrets)) if self.secrets else self.value


NOTHING = SoftwareValue(None)


def config_body(config: Json, inputs: Iterable[Json], outputs: Iterable[Json], options: JsonMap) -> Json:
    """Return the body of a config, which is stored as a whole."""
    return {
        "config": config,
        "inputs": [dict(item) for item in inputs],
        "outputs": [dict(item) for item in outputs],
        "options": dict(options),
    }


def stored(sealer: BoundSealer, value: Json, secrets: Collection[str] = ()) -> Json:
    """Return a value as it is stored.

    :param sealer: sealer of the project.
    """
    return sealed(sealer.seal({"value": value, "secrets": sorted(secrets)}))


def opened(sealer: BoundSealer, row_value: Json) -> SoftwareValue:
    """Return the value that a column holds; NOTHING for one that holds none.

    :raises SealError: the stored value cannot be opened.
    """
    token = token_of(row_value)
    if token is None:
        return NOTHING
    document = sealer.open(token)
    return SoftwareValue(document["value"], frozenset(document["secrets"]))


def _masked(value: Json, secrets: SecretTexts) -> Json:
    if isinstance(value, str):
        return secrets.redacted(value)
    if isinstance(value, Mapping):
        return {secrets.redacted(key): _masked(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, secrets) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return MASK if secrets.has(str(value)) else value
    return value
