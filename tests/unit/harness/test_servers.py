"""Servers that all tests of a run share are changed by none."""

import pickle
from collections.abc import Callable

import pytest
from harness.rabbitmq import RabbitMQ
from harness.server import Server


@pytest.mark.parametrize(
    "change",
    [Server.start, Server.stop, Server.restart, Server.kill, Server.pause, Server.resume, Server.close],
    ids=lambda change: change.__name__,
)
def test_a_server_that_another_process_has_started_is_not_changed(change: Callable[[Server], None]) -> None:
    lent = pickle.loads(pickle.dumps(RabbitMQ()))
    with pytest.raises(AssertionError, match="all tests use this RabbitMQ"):
        change(lent)
