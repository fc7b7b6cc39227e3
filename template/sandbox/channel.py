"""Messages over a stream socket: four bytes of length, then the body."""

import socket
import struct
import time

SECONDS = struct.Struct("!d")
"""CPU time.  Before a request it is the limit, which has to be set before anything of the request is read;
before an answer it is the time that the evaluation took."""
MEMORY = "memory"
"""The text of an answer's limit that the pool puts into words."""
CONTROL = 4096
"""Bytes of a message between the daemon and its fork server, at the most."""
_LENGTH = struct.Struct("!I")
_CHUNK = 65536


class TooLong(Exception):
    """The peer announced a message above the limit."""


def send(sock: socket.socket, body: bytes, deadline: float | None = None) -> None:
    """Send one message.

    :param deadline: moment of the monotonic clock at which sending fails; None: no limit.
    :raises TimeoutError: the deadline passed.
    :raises OSError: the peer is gone.
    """
    unsent = memoryview(_LENGTH.pack(len(body)) + body)
    while unsent:
        _wait_until(sock, deadline)
        unsent = unsent[sock.send(unsent) :]


def receive(sock: socket.socket, most: int, deadline: float | None = None) -> bytes | None:
    """Return one message; None: the peer closed the connection before it was whole.

    :raises TimeoutError: the deadline passed.
    :raises TooLong: the message has more than `most` bytes.
    :raises OSError: the connection broke.
    """
    head = _exactly(sock, _LENGTH.size, deadline)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > most:
        raise TooLong(f"{length} bytes")
    return _exactly(sock, length, deadline)


def _exactly(sock: socket.socket, count: int, deadline: float | None) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        _wait_until(sock, deadline)
        chunk = sock.recv(min(_CHUNK, count - len(parts)))
        if not chunk:
            return None
        parts += chunk
    return bytes(parts)


def _wait_until(sock: socket.socket, deadline: float | None) -> None:
    if deadline is None:
        sock.settimeout(None)
    elif (seconds := deadline - time.monotonic()) > 0:
        sock.settimeout(seconds)
    else:
        raise TimeoutError
