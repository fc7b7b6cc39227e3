"""Connections that the tests cut, hold and slow down."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator

import pytest
from harness import proctree
from harness.ports import HOST, free_port
from harness.tcp_link import Link, Links, LinkState

SHORT = 0.3
"""Seconds in which an answer comes where nothing keeps it back."""


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that sends back what it gets; its port."""

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(100):
                connection.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server((HOST, 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def link(echo: int) -> Iterator[Link]:
    """A link to it; nobody listens at its first target."""
    links = Links()
    yield links.add((HOST, free_port()), (HOST, echo))
    links.close()


def connected(link: Link) -> socket.socket:
    connection = socket.create_connection((HOST, link.port), timeout=60)
    connection.sendall(b"first")
    assert connection.recv(100) == b"first"
    return connection


def test_an_open_and_a_slow_link_pass_bytes_on(link: Link) -> None:
    with connected(link) as connection:
        link.set(LinkState.SLOW)
        connection.sendall(b"second")
        assert connection.recv(100) == b"second"


def test_a_link_resets_the_connections_of_the_clients_that_it_refuses(link: Link) -> None:
    with connected(link) as refused, connected(link) as other:
        port = refused.getsockname()[1]
        assert proctree.has_port(os.getpid(), port)
        assert not proctree.has_port(os.getppid(), port)
        link.refuse(lambda client: client == port)
        with pytest.raises(ConnectionResetError):
            refused.recv(100)
        other.sendall(b"second")
        assert other.recv(100) == b"second"
        link.refuse(lambda client: True)
        with pytest.raises(ConnectionResetError), socket.create_connection((HOST, link.port)) as later:
            later.recv(100)


def test_a_cut_link_resets_old_and_new_connections(link: Link) -> None:
    with connected(link) as connection:
        link.set(LinkState.CUT)
        with pytest.raises(OSError, match="reset"):
            connection.recv(100)
    with pytest.raises(OSError, match="reset"):
        connected(link)
    link.set(LinkState.OPEN)
    connected(link).close()


@pytest.mark.parametrize("state", [LinkState.HELD, LinkState.SILENT])
def test_a_held_link_delivers_later_and_a_silent_one_resets_then(link: Link, state: LinkState) -> None:
    with connected(link) as connection:
        link.set(state)
        connection.sendall(b"second")
        connection.settimeout(SHORT)
        with pytest.raises(TimeoutError):
            connection.recv(100)
        connection.settimeout(60)
        link.set(LinkState.OPEN)
        if state == LinkState.HELD:
            assert connection.recv(100) == b"second"
        else:
            with pytest.raises(OSError, match="reset"):
                connection.recv(100)
