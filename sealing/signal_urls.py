"""The addresses of signals: those that need a token of Keystone, and those that carry a signature."""

import hashlib
import hmac
import json
import urllib.parse
from collections.abc import Mapping

from ..db.ids import ResourceId, StackId
from ..resources.context import Presigned, StackFacts

KEY_BYTES = 32
PURPOSE = "signal"
"""The purpose that is signed, so that a signature serves no other one."""


class SignalAddresses:
    """Makes addresses and verifies their signatures; pure.

    A signature is HMAC-SHA256 over what the address names: project, stack, resource and the row of that.  So
    it is verified without the database.  The caller looks up afterwards whether the row still exists.

    :param root: under which the API is reached from outside, without a slash at its end.
    :param key: the installation's own, `KEY_BYTES` random bytes; see db/settings.py.
    """

    def __init__(self, root: str, key: bytes) -> None:
        self._root = root
        self._key = key

    def native(self, stack: StackFacts, resource_name: str) -> str:
        """Return the address for clients that the API authenticates."""
        parts = ("v1", stack.project_id, "stacks", stack.name, stack.id, "resources", resource_name, "signal")
        return "/".join([self._root, *(urllib.parse.quote(part, safe="") for part in parts)])

    def presigned(self, stack: StackFacts, resource_name: str, row: int) -> Presigned:
        """Return the address for everyone who knows it, valid as long as the row of the resource exists."""
        signature = self._signature(stack.project_id, stack.id, resource_name, str(row))
        return Presigned(f"{self.native(stack, resource_name)}/{row}", signature)

    def is_right(self, path: Mapping[str, str], signature: str) -> bool:
        """Return whether this is the signature for the variables of a route, in constant time."""
        named = (path["tenant_id"], path["stack_id"], path["resource_name"], path["row"])
        return hmac.compare_digest(self._signature(*named).encode(), signature.encode(errors="replace"))

    def _signature(self, project_id: str, stack_id: str, resource_name: str, row: str) -> str:
        text = json.dumps([PURPOSE, project_id, stack_id, resource_name, row])
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def row_of(path: Mapping[str, str]) -> tuple[StackId, ResourceId]:
    """Return the row that a presigned address is for; call it only after the signature was verified."""
    return StackId(path["stack_id"]), ResourceId(int(path["row"]))
