"""Encryption of secrets at rest."""

import base64
import hashlib
import json
import typing
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

Json = typing.Any


class SealError(ValueError):
    """A token cannot be opened: its key is not among the configured ones, or it was changed."""


class Sealer:
    """Turns JSON values into tokens and back, by AES-SIV (RFC 5297).

    The encryption is deterministic: equal values give equal tokens, so that an unchanged secret is seen
    to be unchanged and equal environments are stored once.  It says no more than that.

    :param keys: base64 of 32, 48 or 64 random bytes each; the first one seals, all of them open, so a new
        key is put in front and the old one kept until nothing sealed by it is left.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("at least one key is needed; `stoker-manage key generate` makes one")
        self._ciphers: dict[str, AESSIV] = {}
        for key in keys:
            self._ciphers.setdefault(fingerprint(key), _cipher(key))

    @property
    def fingerprints(self) -> list[str]:
        """Those of its keys; the first one is that of the key that seals."""
        return list(self._ciphers)

    @staticmethod
    def generate_key() -> str:
        """A new random key."""
        return base64.b64encode(AESSIV.generate_key(512)).decode()

    def seal(self, value: Json) -> str:
        """The token of a value: key id, a dot, base64."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        # AES-SIV takes no empty text; canonical JSON never is.
        key_id, cipher = next(iter(self._ciphers.items()))
        sealed = cipher.encrypt(text, None)
        return f"{key_id}.{base64.urlsafe_b64encode(sealed).decode()}"

    def open(self, token: str) -> Json:
        """The value of a token.

        :raises SealError: see there.
        """
        key_id, body = sealed_by(token), token.partition(".")[2]
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise SealError(f"the key {key_id} of a sealed value is not among the configured ones")
        try:
            return json.loads(cipher.decrypt(base64.urlsafe_b64decode(body), None))
        except (InvalidTag, ValueError) as error:
            raise SealError(f"a value sealed by key {key_id} cannot be opened") from error


def _cipher(key: str) -> AESSIV:
    try:
        return AESSIV(base64.b64decode(key, validate=True))
    except ValueError as error:
        raise ValueError("a sealing key must be base64 of 32, 48 or 64 bytes") from error


def sealed_by(token: str) -> str:
    """The fingerprint of the key that a token needs."""
    return token.partition(".")[0]


def fingerprint(key: str) -> str:
    """A short name for a key that does not tell it."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]
