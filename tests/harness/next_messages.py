"""This code as that of a next release, made up, whose cancel has an argument that 1.0 lacks."""

import dataclasses

import pytest
from stoker.cli.programs import status
from stoker.rpc import contract, server

NEXT = "1.1"


def speak_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Understand NEXT, in which the argument ``request`` of a cancel came."""
    cancel = contract.MESSAGES["cancel"]
    arguments = {**cancel.arguments, "request": NEXT}
    monkeypatch.setitem(contract.MESSAGES, "cancel", dataclasses.replace(cancel, arguments=arguments))
    monkeypatch.setattr(contract, "VERSIONS", {**contract.VERSIONS, NEXT: "conductors of the next release"})
    for module in (contract, server, status):
        monkeypatch.setattr(module, "VERSION", NEXT)
