"""The ports of the tests' servers."""

import itertools

import pytest
from harness import ports


def test_a_port_is_given_once_on_a_host_also_while_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ports.free_port()
    monkeypatch.setattr(ports, "_guards", dict(ports._guards))  # noqa: SLF001 - as in another process
    drawn = itertools.chain([first, first], itertools.count(ports.LOWEST))
    monkeypatch.setattr(ports.random, "randrange", lambda *_: next(drawn))
    assert ports.free_port() != first
