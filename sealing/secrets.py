"""The secrets of one step: a value that was opened for it is not stored or shown in clear again."""

from collections.abc import Iterator, Mapping

from ..shapes import Json, JsonMap
from ..template.residual import mapping, quote, sealed
from .redaction import SecretTexts
from .sealer import BoundSealer
from .stored import in_clear


class Secrets:
    """Opens sealed values, remembers their secrets, and finds these again.  For one step.

    It finds a secret within a longer text, in all forms of sealing/redaction.py, but not a value that a
    plugin made of a secret in another way.  Then the type's schema has to call that attribute sensitive, or
    name the property that it passes on.

    :ivar properties: the resource's properties that hold secrets, by name, in clear.
    :ivar stored: the same as they are stored, with their secrets sealed.
    """

    def __init__(self, sealer: BoundSealer) -> None:
        self._sealer = sealer
        self._texts: set[str] = set()
        self._collections: set[int] = set()
        self._blanks: set[type] = set()
        self._cached: SecretTexts | None = None
        self.properties: Mapping[str, Json] = {}
        self.stored: Mapping[str, Json] = {}

    def open(self, token: str) -> Json:
        """Return the value of a token in clear.

        :raises SealError: the key is not there.
        """
        value = self._sealer.open(token)
        self.add(value)
        return value

    def open_value(self, value: Json) -> Json:
        """Return a stored reference, attribute or data in clear."""
        return in_clear(value, self.open)

    def peek(self, value: Json) -> Json:
        """Return in clear a value that is sealed only until it is known whether it is a secret."""
        return in_clear(value, self._sealer.open)

    def add(self, value: Json) -> None:
        """Remember a value as a secret, with each map and list in it."""
        self._texts.update(_texts(value, keys=False))
        self._collections.update(_collections(value))
        self._blanks.update(map(type, _blanks(value)))
        self._cached = None

    @property
    def _secret_texts(self) -> SecretTexts:
        if self._cached is None:
            self._cached = SecretTexts(self._texts)
        return self._cached

    def seal(self, value: Json) -> Json:
        """Return a value sealed, as it is stored."""
        return None if value is None else sealed(self._sealer.seal(value))

    def protect(self, value: Json) -> Json:
        """Return a value as it is stored: quoted, and each part sealed that is a secret or holds one.

        A map of which a key holds a secret is sealed as a whole.  So is a map or a list that is a secret by
        itself: its keys, its size, and what in it is neither a text nor a number are no less secret.
        """
        if not self.holds(value):
            return quote(value)
        is_secret = self.is_collection(value)
        if isinstance(value, list | tuple) and not is_secret:
            return [self.protect(item) for item in value]
        if isinstance(value, Mapping) and not is_secret and not self.holds(list(value)):
            return mapping({key: self.protect(item) for key, item in value.items()})
        return self.seal(value)

    def protect_whole(self, value: Json) -> Json:
        """Return a value as it is stored: sealed if a secret is anywhere in it, else quoted."""
        return self.seal(value) if self.holds(value) else quote(value)

    def protect_each(self, values: JsonMap) -> dict[str, Json]:
        """Return values by name, each as `protect` returns it."""
        if not self.holds(list(values.values())):
            return {name: quote(value) for name, value in values.items()}
        return {name: self.protect(value) for name, value in values.items()}

    def holds(self, value: Json) -> bool:
        """Return whether a secret is in a value."""
        if not self._collections.isdisjoint(_collections(value) if self._collections else ()):
            return True
        return bool(self._texts) and any(map(self._secret_texts.is_in, _texts(value, keys=True)))

    def is_collection(self, value: Json) -> bool:
        """Return whether a value is a map or a list that is a secret, with its keys and its size."""
        return isinstance(value, Mapping | list | tuple) and _digest(value, []) in self._collections

    def hides(self, value: Json) -> bool:
        """Return whether a value is to be hidden as a whole: a map or a list that is a secret, or a blank.

        A boolean, an empty text, list or map has nothing by which it could be found again.  Once a secret is
        one, or has one in it, all of its sort are hidden.  If of the booleans only the equal ones were, a
        reader who knows one of the others would know the secret.
        """
        return type(value) in self._blanks if _is_blank(value) else self.is_collection(value)

    def redact(self, text: str) -> str:
        """Return the text without the secrets."""
        return self._secret_texts.redacted(text, may_be_cut=True)

    def found_in(self, value: Json) -> frozenset[str]:
        """Return the secrets that are in a value, or are it."""
        if not self.holds(value):
            return frozenset()
        texts = list(_texts(value, keys=True))
        return frozenset(secret for secret in self._texts if any(map(SecretTexts([secret]).is_in, texts)))


def _texts(value: Json, *, keys: bool) -> Iterator[str]:
    """Yield all texts and numbers in a value, as texts."""
    if isinstance(value, Mapping):
        if keys:
            yield from map(str, value)
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, keys=keys)
    elif value is not None and not isinstance(value, bool) and value != "":
        yield str(value)


def _is_blank(value: Json) -> bool:
    """Return whether a value is a boolean, or empty; None is no value."""
    return isinstance(value, bool) or (value is not None and value in ("", [], {}))


def _blanks(value: Json) -> Iterator[Json]:
    """Yield the booleans in a value, and what is empty in it, or the value itself."""
    if _is_blank(value):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _blanks(item)


def _collections(value: Json) -> list[int]:
    """Return the digests of all maps and lists in a value but the empty ones."""
    digests: list[int] = []
    _digest(value, digests)
    return digests


def _digest(value: Json, collections: list[int]) -> int:
    """Return a digest of a value, the same for equal ones; another value that has it is sealed in vain.

    :param collections: gets the digests of the maps and lists in the value.
    """
    if isinstance(value, Mapping):
        digest = hash(frozenset((key, _digest(item, collections)) for key, item in value.items()))
    elif isinstance(value, list | tuple):
        digest = hash(tuple(_digest(item, collections) for item in value))
    else:
        return hash(value)
    if value:
        collections.append(digest)
    return digest
