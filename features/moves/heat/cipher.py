"""Opens and encrypts values with Heat's option ``auth_encryption_key``.

Each value has the name of its method.  Newer releases of Heat write the first one only.

* ``cryptography_decrypt_v1``: Fernet, whose key is the first 32 characters as base64.
* ``oslo_decrypt_v1``: AES-CBC, with a padding of zeros, their number but one, and a zero.
* ``heat_decrypt``: AES-CFB.
"""

import base64
import json

from cryptography.exceptions import InvalidKey
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ....shapes import Json

KEY_LENGTH = 32
BLOCK = 16
"""Bytes of a block of AES, and of the initial value in front of a text."""
FERNET = "cryptography_decrypt_v1"
CBC = "oslo_decrypt_v1"
CFB = "heat_decrypt"


class WrongKey(Exception):
    """A value cannot be opened: another key has encrypted it, or no key is known."""


class HeatCipher:
    """Opens and encrypts values with one key.

    :param key: Heat's ``auth_encryption_key``; None: nothing can be opened.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key
        self._fernet: Fernet | None = None

    def open(self, method: str | None, text: str | None) -> str | None:
        """Return the text of a value; one without a method is not encrypted, as Heat itself reads it.

        :raises WrongKey: it cannot be opened.
        """
        if not method or text is None:
            return text
        if self._key is None:
            raise WrongKey("a value is encrypted, and no encryption key was given")
        try:
            return self._bytes(method, text).decode()
        except (InvalidToken, InvalidKey, ValueError) as error:
            raise WrongKey("a value was encrypted with another key than the one that was given") from error

    def encrypt(self, text: str) -> tuple[str, str]:
        """Return the method and the encrypted text, as Heat stores both.

        :raises WrongKey: no key was given.
        """
        if self._key is None:
            raise WrongKey("a value is to be encrypted, and no encryption key was given")
        return FERNET, self._with_fernet().encrypt(text.encode()).decode()

    def encrypt_json(self, value: Json) -> tuple[str, str]:
        """Return the method and the encrypted text of a JSON value.

        :raises WrongKey: no key was given.
        """
        return self.encrypt(json.dumps(value))

    def open_json(self, pair: Json) -> Json:
        """Return the JSON value of a pair of a method and a text.

        :raises WrongKey: it cannot be opened.
        """
        method, text = pair
        opened = self.open(method, text)
        try:
            return None if opened is None else json.loads(opened)
        except ValueError as error:
            raise WrongKey("a value was encrypted with another key than the one that was given") from error

    def _bytes(self, method: str, text: str) -> bytes:
        if method == FERNET:
            return self._with_fernet().decrypt(text.encode())
        key = str(self._key)[:KEY_LENGTH].encode()
        whole = base64.b64decode(text)
        start = whole[:BLOCK]
        rest = whole[BLOCK:]
        if method == CFB:
            return _opened_cfb(key, whole)
        if method == CBC:
            decryptor = Cipher(algorithms.AES(key), modes.CBC(start)).decryptor()
            padded = decryptor.update(rest) + decryptor.finalize()
            # The last byte is the number of zeros before it; one more zero belongs to the padding.
            return padded[: -padded[-1] - 1]
        raise ValueError(f"no method {method}")

    def _with_fernet(self) -> Fernet:
        if self._fernet is None:
            key = str(self._key)
            whole = key * 2 if len(key) < KEY_LENGTH else key
            self._fernet = Fernet(base64.b64encode(whole[:KEY_LENGTH].encode()))
        return self._fernet


def _opened_cfb(key: bytes, whole: bytes) -> bytes:
    """Return the text of AES-CFB, a mode that newer releases of the library lack.

    Each block is the exclusive or of the text and of the block before it, encrypted.
    """
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    pads = encryptor.update(whole[: len(whole) - len(whole) % BLOCK])
    return bytes(byte ^ pad for byte, pad in zip(whole[BLOCK:], pads, strict=False))
