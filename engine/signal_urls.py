"""Addresses of signals and of guests' metadata: with a token, or with a signature in them."""

import hashlib
import hmac
import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass

from ..db.ids import ResourceId, StackId
from ..resources.contract.guests import GuestAccess, Presigned, StackUser
from ..resources.contract.views import StackFacts
from ..settings import Form, setting

KEY_BYTES = 32
SIGNAL = "signal"
METADATA = "metadata"
GUEST = "guest"
"""The purposes that are signed, so that a signature serves no other one."""
IDENTITY = "/v1/identity/v3"
"""Path below which Stoker answers as Keystone does to the accounts that it makes itself."""
_TAIL = re.compile(r"/+(v1/*)?(waitcondition/*)?$")
"""The end of an address that Heat's options for servers may have."""
_ACCESS_KEY = re.compile(r"([0-9A-Za-z-]{1,36})\.([1-9][0-9]{0,18})")


@dataclass(frozen=True)
class GuestAddresses:
    """The addresses under which servers reach the API."""

    metadata_url: str | None = setting(
        "metadata_url",
        None,
        "Root URL under which the agents in servers reach the API to read their metadata, e.g. "
        "http://10.0.0.1:8004, or Heat's heat_metadata_server_url. Servers seldom reach what users reach. "
        "heat-cfntools need a URL without a path. A change reaches existing servers when their stacks are "
        "updated, so keep the old address in service until then.",
        form=Form.HTTP_URL,
        default_text="that of [api] public_url",
    )
    waitcondition_url: str | None = setting(
        "waitcondition_url",
        None,
        "Root URL under which servers, and services such as alarming, reach the API to send signals to "
        "addresses that carry a signature; Heat's heat_waitcondition_server_url, with /v1/waitcondition at "
        "its end, works, too.",
        form=Form.HTTP_URL,
        default_text="that of [api] public_url",
    )

    @property
    def metadata_root(self) -> str | None:
        """Return the root of addresses for metadata; None: that of the API."""
        return _root(self.metadata_url)

    @property
    def signal_root(self) -> str | None:
        """Return the root of addresses for signals; None: that of the API."""
        return _root(self.waitcondition_url)


def _root(url: str | None) -> str | None:
    return _TAIL.sub("", url) if url else None


class SignalAddresses:
    """Makes addresses and keys, and verifies their signatures; pure.

    A signature is HMAC-SHA256 over the parts of the address: project, stack, resource and its row.  So it is
    verified without the database.  The caller looks up afterwards whether the row still exists.

    :param root: address under which users reach the API, without a slash at its end.
    :param key: key of the installation, `KEY_BYTES` random bytes; see db/settings.py.
    :param signal_root: address under which servers and alarms send presigned signals; None: `root`.
    :param metadata_root: address under which servers get their metadata; None: `root`.
    """

    def __init__(
        self, root: str, key: bytes, *, signal_root: str | None = None, metadata_root: str | None = None
    ) -> None:
        self._root = root
        self._key = key
        self._signal_root = root if signal_root is None else signal_root
        self._metadata_root = root if metadata_root is None else metadata_root

    def native(self, stack: StackFacts, resource_name: str) -> str:
        """Return the address for clients that the API authenticates."""
        return _address(self._root, stack, resource_name, "signal")

    def presigned(self, stack: StackFacts, resource_name: str, row: int) -> Presigned:
        """Return the address for everyone who knows it, valid as long as the row of the resource exists."""
        signature = self._signature(SIGNAL, stack.project_id, stack.id, resource_name, str(row))
        return Presigned(_address(self._signal_root, stack, resource_name, "signal", str(row)), signature)

    def guest_access(self, stack: StackFacts, resource_name: str, row: int) -> GuestAccess:
        """Return the means by which a server's guest reads its metadata, as long as the row exists."""
        access_key = f"{stack.id}.{row}"
        signature = self._signature(METADATA, stack.project_id, stack.id, resource_name, str(row))
        address = _address(self._metadata_root, stack, resource_name, "guest", str(row))
        return GuestAccess(
            stack_name=stack.name,
            resource_name=resource_name,
            metadata_url=f"{self._metadata_root}/v1/",
            access_key=access_key,
            secret_key=self.guest_secret(access_key),
            presigned=Presigned(address, signature),
            user=self._user(METADATA, stack, resource_name, row),
        )

    def signal_user(self, stack: StackFacts, resource_name: str, row: int) -> StackUser:
        """Return the account by which clients of Heat's API signal, as long as the row exists."""
        return self._user(SIGNAL, stack, resource_name, row)

    def _user(self, purpose: str, stack: StackFacts, resource_name: str, row: int) -> StackUser:
        return StackUser(
            auth_url=f"{self._root_for(purpose)}{IDENTITY}",
            user_id=f"{stack.id}.{row}",
            password=self._signature(purpose, stack.project_id, stack.id, resource_name, str(row)),
            project_id=stack.project_id,
            stack_id=f"{stack.name}/{stack.id}",
            resource_name=resource_name,
        )

    def _root_for(self, purpose: str) -> str:
        return self._signal_root if purpose == SIGNAL else self._metadata_root

    def endpoint(self, purpose: str, project_id: str, row: int) -> str:
        """Return the endpoint of Heat's API for such an account."""
        return f"{self._root_for(purpose)}/v1/guest/{urllib.parse.quote(project_id, safe='')}/{row}"

    def purpose_of(self, path: Mapping[str, str], password: str) -> str | None:
        """Return the purpose of the account that has this password; None: no account has it.

        :param path: variables in the path of a presigned address.
        """
        return next((name for name in (METADATA, SIGNAL) if self.is_right(path, password, name)), None)

    def guest_secret(self, access_key: str) -> str:
        """Return the secret of a guest's access key; whether its row exists is not looked up."""
        return self._signature(GUEST, access_key)

    def is_right(self, path: Mapping[str, str], signature: str, purpose: str = SIGNAL) -> bool:
        """Return whether this is the signature for the variables of a route, in constant time."""
        named = (path["tenant_id"], path["stack_id"], path["resource_name"], path["row"])
        right = self._signature(purpose, *named)
        return hmac.compare_digest(right.encode(), signature.encode(errors="replace"))

    def _signature(self, *signed: str) -> str:
        return hmac.new(self._key, json.dumps(signed).encode(), hashlib.sha256).hexdigest()


def _address(root: str, stack: StackFacts, resource_name: str, *more: str) -> str:
    parts = ("v1", stack.project_id, "stacks", stack.name, stack.id, "resources", resource_name, *more)
    return "/".join([root, *(urllib.parse.quote(part, safe="") for part in parts)])


def row_of_key(access_key: str) -> tuple[StackId, ResourceId] | None:
    """Return the row that a guest's access key is for; None: the key is no guest's."""
    match = _ACCESS_KEY.fullmatch(access_key)
    return None if match is None else (StackId(match[1]), ResourceId(int(match[2])))


def row_of(path: Mapping[str, str]) -> tuple[StackId, ResourceId]:
    """Return the row that a presigned address is for; call it only after the signature was verified."""
    return StackId(path["stack_id"]), ResourceId(int(path["row"]))
