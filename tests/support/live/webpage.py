"""One more page beside a cluster's own, with parameters of its own; and a site's reverse proxy before it."""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


@contextmanager
def page(cluster: Cluster, folder: Path, conf: str) -> Iterator[str]:
    """Its address, while it runs; ``conf``: lines for lsf.conf."""
    folder.mkdir()
    shutil.copy(cluster.folder.conf / "lsf.conf", folder)
    with (folder / "lsf.conf").open("a") as file:
        file.write(f"\n{conf}\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["--conf", str(folder), "--run", str(cluster.folder.run), "--address", place]
    words += ["--address-file", str(folder / "address"), "--log", str(folder / "log")]
    process = subprocess.Popen([sys.executable, "-m", "web.main", *words], cwd=Path(__file__).parents[3])
    try:
        wait_until((folder / "address").exists, 30, "the page")
        yield f"{'https' if 'LAVA_WEB_CERT' in conf else 'http'}://{place}"
    finally:
        process.terminate()
        process.wait(30)


class Proxy:
    """Signs everybody in as ``user`` over https, as a site's reverse proxy does, and passes requests on to ``target``."""

    def __init__(self, target: str, user: str, secret: str, tls: Path) -> None:
        place = urllib.parse.urlsplit(target).netloc

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                dropped = ("x-remote-user", "x-lava-proxy-secret", "connection")
                headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
                headers |= {"X-Remote-User": user, "X-Lava-Proxy-Secret": secret}
                link = http.client.HTTPConnection(place, timeout=60)
                link.request(self.command, self.path, body or None, headers)
                answer = link.getresponse()
                data = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                link.close()

            do_POST = do_DELETE = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "master.crt", tls / "master.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
