"""The rounds of the HTTP server's thread: which connections each asks, and serves."""

import socket
from collections.abc import Iterator

import pytest
from stoker.cli.http.polled import PolledMap


class Connection:
    """A connection that notes what the server's thread does with it."""

    accepting = False

    def __init__(self, polled: PolledMap) -> None:
        self.socket, self.client = socket.socketpair()
        self.calls: list[str] = []
        polled[self.socket.fileno()] = self

    def readable(self) -> bool:
        self.calls.append("asked")
        return True

    def writable(self) -> bool:
        return False

    def handle_read_event(self) -> None:
        self.calls.append(self.socket.recv(10).decode())

    def handle_close(self) -> None:
        self.calls.append("closed")

    def close(self) -> None:
        self.socket.close()
        self.client.close()


@pytest.fixture
def polled() -> PolledMap:
    return PolledMap()


@pytest.fixture
def connections(polled: PolledMap) -> Iterator[list[Connection]]:
    connections = [Connection(polled) for _ in range(3)]
    yield connections
    for connection in connections:
        connection.close()


def calls(polled: PolledMap, connections: list[Connection]) -> list[list[str]]:
    """Return the calls of one round, for each connection."""
    for connection in connections:
        connection.calls.clear()
    polled.serve(0)
    return [list(connection.calls) for connection in connections]


def test_a_round_asks_only_connections_that_may_have_changed(
    polled: PolledMap, connections: list[Connection]
) -> None:
    assert calls(polled, connections) == [["asked"]] * 3
    connections[1].client.send(b"data")
    assert calls(polled, connections) == [[], ["data"], []]
    assert calls(polled, connections) == [[], ["asked"], []]
    polled.touch_all()
    assert calls(polled, connections) == [["asked"]] * 3
    assert calls(polled, connections) == [[]] * 3


def test_a_connection_is_visited_in_each_round_while_a_worker_answers(
    polled: PolledMap, connections: list[Connection]
) -> None:
    polled.serve(0)
    descriptor = connections[0].socket.fileno()
    with polled.answering(descriptor):
        with polled.answering(descriptor):  # Its next request, which another worker has taken already.
            assert calls(polled, connections) == [["asked"], [], []]
        assert calls(polled, connections) == [["asked"], [], []]
    assert calls(polled, connections) == [["asked"], [], []]
    assert calls(polled, connections) == [[]] * 3


def test_a_connection_that_was_removed_is_polled_no_more(
    polled: PolledMap, connections: list[Connection]
) -> None:
    polled.serve(0)
    del polled[connections[0].socket.fileno()]
    connections[0].close()
    assert calls(polled, connections) == [[]] * 3
