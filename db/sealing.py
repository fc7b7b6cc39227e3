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
            self._ciphers.setdefault(_key_id(key), _cipher(key))
        self._first = _key_id(keys[0])

    @staticmethod
    def generate_key() -> str:
        """A new random key."""
        return base64.b64encode(AESSIV.generate_key(512)).decode()

    def seal(self, value: Json) -> str:
        """The token of a value: key id, a dot, base64."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        # AES-SIV takes no empty text; canonical JSON never is.
        sealed = self._ciphers[self._first].encrypt(text, None)
        return f"{self._first}.{base64.urlsafe_b64encode(sealed).decode()}"

    def open(self, token: str) -> Json:
        """The value of a token.

        :raises SealError: see there.
        """
        key_id, _, body = token.partition(".")
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


def _key_id(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:8]
