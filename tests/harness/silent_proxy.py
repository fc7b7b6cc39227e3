"""A TCP proxy that can fall silent: connections stay open, and nothing comes through any more."""

import contextlib
import socket
import threading

from harness.ports import HOST


class SilentProxy:
    """Passes bytes on, both ways, until `silent` is set; as a firewall does that begins to drop packets.

    :param port: the port that it listens on; 0: a free one.
    :ivar silent: while it is set nothing is passed on, no connection is closed, and new ones get no answer.
    """

    def __init__(self, target: tuple[str, int], port: int = 0) -> None:
        self.silent = threading.Event()
        self._target = target
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server((HOST, port))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def restore(self) -> None:
        """Pass on again; what was open is reset, as by a peer that knows nothing of it any more."""
        self.silent.clear()
        stale = self._sockets
        self._sockets = []
        for connection in stale:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def close(self) -> None:
        """Close everything."""
        for connection in [self._listener, *self._sockets]:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            if not self.silent.is_set():
                server = socket.create_connection(self._target)
                self._sockets.append(server)
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if self.silent.is_set():
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return
