"""A collector of OpenTelemetry on a port of its own: takes spans by OTLP over HTTP, and keeps them as they came."""

from __future__ import annotations

import gzip
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

MEDIA = "application/x-protobuf"


class Collector:
    """Use it in a ``with``. ``refuse``: answer 503 while it is set."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.refuse = False
        self.refused = 0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if collector.refuse or self.path != "/v1/traces" or self.headers["Content-Type"] != MEDIA:
                    collector.refused += 1
                    self.send_response(503 if collector.refuse else 404)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                how = self.headers.get("Content-Encoding", "")
                body = gzip.decompress(body) if how == "gzip" else zlib.decompress(body) if how == "deflate" else body
                collector.take(ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", MEDIA)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def take(self, request: ExportTraceServiceRequest) -> None:
        for of in request.resource_spans:
            self.resources.append({one.key: one.value.string_value for one in of.resource.attributes})
            self.spans += [span for scope in of.scope_spans for span in scope.spans]

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def values(span: Any) -> dict[str, Any]:
    """The attributes of a span."""
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}
