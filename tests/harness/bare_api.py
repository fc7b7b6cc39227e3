"""An API whose collaborators are not there: whoever asks one is found out."""

import dataclasses
import typing

from stoker.api.context import Services
from stoker.api.request import ApiLimits, NoAuthentication
from stoker.engine.signal_urls import SignalAddresses

ADDRESSES = SignalAddresses("", b"key")


class Asked(Exception):
    """Somebody has asked the database."""


class Tripwire:
    """In the place of all that a handler could work with."""

    def __getattr__(self, name: str) -> typing.Any:
        raise Asked(name)


def bare_services() -> Services:
    """Return services without any collaborator, for everybody."""
    parts: dict[str, typing.Any] = {field.name: Tripwire() for field in dataclasses.fields(Services)}
    parts |= {"metrics": None, "limits": ApiLimits(), "auth": NoAuthentication(), "ec2": None}
    parts["count_request"] = Services.count_request
    return Services(**parts)
