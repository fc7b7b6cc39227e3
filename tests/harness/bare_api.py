"""An API without collaborators: the use of one is an error."""

import collections
import dataclasses
import typing

from stoker.api.authenticator import NoAuthentication
from stoker.api.operations import Services
from stoker.api.settings import ApiLimits
from stoker.api.strangers import Strangers
from stoker.engine.signal_urls import SignalAddresses

ADDRESSES = SignalAddresses("", b"key")


class CollaboratorUsed(Exception):
    """A handler has used a collaborator."""


class Tripwire:
    """A collaborator that nobody may use."""

    def __getattr__(self, name: str) -> typing.Any:
        raise CollaboratorUsed(name)


def bare_services() -> Services:
    """Return services without any collaborator, for everybody."""
    parts: dict[str, typing.Any] = {field.name: Tripwire() for field in dataclasses.fields(Services)}
    parts |= {"metrics": None, "limits": ApiLimits(), "auth": NoAuthentication(), "ec2": None}
    parts |= {"count_request": Services.count_request, "count_key": Services.count_key}
    parts["strangers"] = Strangers()
    parts["columns"] = ()
    parts["features"] = collections.defaultdict(Tripwire)
    return Services(**parts)
