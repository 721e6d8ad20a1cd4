"""A proxy before a PostgreSQL socket that cuts the line when a COMMIT was carried out and its answer is on the way."""

from __future__ import annotations

import select
import socket
import threading
from pathlib import Path


class CutProxy:
    """Listens as ``folder``/.s.PGSQL.5432. While ``armed``, the answer to a COMMIT is lost with the connection."""

    def __init__(self, folder: Path, target: str) -> None:
        self.armed = False
        self._target = target
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._target)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                if client in ready:
                    asked = client.recv(65536)
                    if not asked:
                        return
                    server.sendall(asked)
                    if self.armed and b"COMMIT" in asked:
                        server.recv(65536)
                        return
                if server in ready:
                    answered = server.recv(65536)
                    if not answered:
                        return
                    client.sendall(answered)
