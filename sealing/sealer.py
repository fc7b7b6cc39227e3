"""The keys, and the encryption of values at rest by them: sealers, each for the place of its tokens."""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from ..settings import setting
from ..shapes import Json


class SealError(ValueError):
    """A token cannot be opened.

    Its key is not configured, or it was changed, or it was sealed for another place.
    """


@dataclass(frozen=True)
class SealingSettings:
    """The operator's keys."""

    keys: Sequence[str] = setting(
        "key",
        (),
        "Key that seals secrets at rest, as printed by `stoker-manage key generate`. It may be given "
        "several times: the first key seals, all of them open.",
        is_repeated=True,
        is_secret=True,
    )


class Sealer:
    """The keys; makes sealers for the places where tokens are stored.

    :param keys: base64 of 32, 48 or 64 random bytes each; the first one seals, all of them open.  So a new
        key is put in front, and the old one is kept until nothing sealed by it is left.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("at least one key is needed; `stoker-manage key generate` makes one")
        self.ciphers: dict[str, AESSIV] = {}
        for key in keys:
            self.ciphers.setdefault(fingerprint(key), _cipher(key))

    @property
    def fingerprints(self) -> list[str]:
        """Return the fingerprints of its keys; the first one belongs to the key that seals."""
        return list(self.ciphers)

    @staticmethod
    def generate_key() -> str:
        """Return a new random key."""
        return base64.b64encode(AESSIV.generate_key(512)).decode()

    def of_stack(self, project_id: str, root_id: str) -> "BoundSealer":
        """Return the sealer for the values of a stack, and of all stacks that are nested in it.

        :param root_id: id of the tree's root stack.
        """
        return BoundSealer(self, ("stack", project_id, root_id))

    def of_credential(self, root_id: str) -> "BoundSealer":
        """Return the sealer for the credential that a stack works with."""
        return BoundSealer(self, ("credential", root_id))

    def of_software(self, project_id: str) -> "BoundSealer":
        """Return the sealer for a project's software configs and deployments.

        They belong to no stack: a deployment of one stack may use a config of another one.
        """
        return BoundSealer(self, ("software", project_id))

    def of_installation(self, purpose: str) -> "BoundSealer":
        """Return the sealer for a secret of the installation's own."""
        return BoundSealer(self, ("installation", purpose))


@dataclass(frozen=True)
class BoundSealer:
    """Turns JSON values into tokens and back, by AES-SIV (RFC 5297), for one place.

    The place is the cipher's associated data: a token that was copied from another project, another tree of
    stacks or another purpose opens nothing.

    The encryption is deterministic: equal values in one place give equal tokens, so an unchanged
    secret can be recognised.  They reveal no more than that.
    """

    _sealer: Sealer
    _place: tuple[str, ...]

    def seal(self, value: Json) -> str:
        """Return the token of a value: key id, a dot, base64."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        # AES-SIV accepts no empty text; canonical JSON is never empty.
        key_id, cipher = next(iter(self._sealer.ciphers.items()))
        return f"{key_id}.{base64.urlsafe_b64encode(cipher.encrypt(text, self._data)).decode()}"

    def open(self, token: str) -> Json:
        """Return the value of a token.

        :raises SealError: its key is not configured, or it was changed or sealed for another place.
        """
        key_id, _, body = token.partition(".")
        cipher = self._sealer.ciphers.get(key_id)
        if cipher is None:
            raise SealError(f"the key {key_id} of a sealed value is not among the configured ones")
        try:
            return json.loads(cipher.decrypt(base64.urlsafe_b64decode(body), self._data))
        except (InvalidTag, ValueError) as error:
            why = "it was changed, or sealed for another stack"
            raise SealError(f"a value sealed by key {key_id} cannot be opened: {why}") from error

    @property
    def _data(self) -> list[bytes]:
        # Each part is a header of its own, so no two places become equal when joined.
        return [word.encode() for word in self._place]


def _cipher(key: str) -> AESSIV:
    try:
        return AESSIV(base64.b64decode(key, validate=True))
    except ValueError as error:
        raise ValueError("a sealing key must be base64 of 32, 48 or 64 bytes") from error


def sealed_by(token: str) -> str:
    """Return the fingerprint of the key that a token needs."""
    return token.partition(".")[0]


def fingerprint(key: str) -> str:
    """Return a short name for a key that does not reveal it."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]
