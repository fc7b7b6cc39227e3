"""Where signals are posted: addresses that need a token of Keystone's, and those that need a signature."""

import hashlib
import hmac
import json
import urllib.parse
from collections.abc import Mapping

from ..db.ids import ResourceId, StackId
from ..resources.context import Presigned, StackFacts

KEY_BYTES = 32
PURPOSE = "signal"
"""What a signature is good for, so that it is good for nothing else."""


class SignalAddresses:
    """Makes addresses, and says whether a signature is right.  Pure.

    A signature is HMAC-SHA256 over what the address names: tenant, stack, resource and the row of that.  So
    it is known without a look at the database; whether the row lives still has to be looked up.

    :param root: under which the API is reached from outside, without a slash at its end.
    :param key: the installation's own, `KEY_BYTES` random bytes; see db/settings.py.
    """

    def __init__(self, root: str, key: bytes) -> None:
        self._root = root
        self._key = key

    def native(self, stack: StackFacts, resource_name: str) -> str:
        """For clients that the API authenticates."""
        parts = ("v1", stack.tenant, "stacks", stack.name, stack.id, "resources", resource_name, "signal")
        return "/".join([self._root, *(urllib.parse.quote(part, safe="") for part in parts)])

    def presigned(self, stack: StackFacts, resource_name: str, row: int) -> Presigned:
        """For everybody who knows it, as long as the row of the resource lives."""
        signature = self._signature(stack.tenant, stack.id, resource_name, str(row))
        return Presigned(f"{self.native(stack, resource_name)}/{row}", signature)

    def is_right(self, path: Mapping[str, str], signature: str) -> bool:
        """Whether this is the signature of what the variables of a route name; takes the same time for each
        wrong one."""
        named = (path["tenant_id"], path["stack_id"], path["resource_name"], path["row"])
        return hmac.compare_digest(self._signature(*named).encode(), signature.encode(errors="replace"))

    def _signature(self, tenant: str, stack_id: str, resource_name: str, row: str) -> str:
        text = json.dumps([PURPOSE, tenant, stack_id, resource_name, row])
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def row_of(path: Mapping[str, str]) -> tuple[StackId, ResourceId]:
    """Which row a presigned address is for.  Call it only once the signature is known to be right."""
    return StackId(path["stack_id"]), ResourceId(int(path["row"]))
