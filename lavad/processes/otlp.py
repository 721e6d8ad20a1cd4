"""Spans sent by OTLP over HTTP with the SDK of OpenTelemetry, an optional package (extra ``otel``): imported when traces are on.

Variables of the SDK (OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER …) work as documented.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span as Made
from opentelemetry.trace import StatusCode, set_span_in_context

from lavad.processes.spans import Span
from proto.version import VERSION

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class _Ids(IdGenerator):
    """The same for the same job however often it is told of, so that what is sent twice is there once."""

    seed = ""
    count = 0

    def generate_trace_id(self) -> int:
        return self._number(16)

    def generate_span_id(self) -> int:
        self.count += 1
        return self._number(8)

    def _number(self, size: int) -> int:
        text = f"{self.seed} {self.count if size == 8 else ''}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size).digest(), "big") or 1


class _Kept(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self.spans.append(span)


class Exporter:
    """Makes spans of the SDK and sends them."""

    def __init__(self, address: str) -> None:
        """``address``: LAVA_TRACES; one that is no address leaves it to the variables."""
        if "://" in address:
            os.environ[ENDPOINT] = address
        named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        self._exporter = OTLPSpanExporter()
        self._kept, self._ids = _Kept(), _Ids()
        resource = Resource.create({} if named else {SERVICE_NAME: "lava"})
        provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        provider.add_span_processor(self._kept)
        self._tracer = provider.get_tracer("lava", VERSION)

    def add(self, seed: str, spans: Sequence[Span]) -> None:
        """The spans of a job, to be sent; ``seed`` tells it from all others."""
        self._ids.seed, self._ids.count = seed, 0
        made: list[Made] = []
        for span in spans:
            within = set_span_in_context(made[span.parent]) if span.parent >= 0 else None
            one = self._tracer.start_span(span.name, within, attributes=span.values, start_time=_nanoseconds(span.begin))
            for note in span.notes:
                one.add_event(note.name, note.values, _nanoseconds(note.at))
            if span.error:
                one.set_status(StatusCode.ERROR, span.error)
            made.append(one)
        for one, span in zip(made, spans, strict=True):
            one.end(_nanoseconds(max(span.begin, span.end)))

    @property
    def waiting(self) -> int:
        """Spans that are not sent."""
        return len(self._kept.spans)

    def send(self) -> bool:
        """Whether the collector has all that was added; takes OTEL_EXPORTER_OTLP_TIMEOUT (10 s) at most."""
        if self._kept.spans and self._exporter.export(tuple(self._kept.spans)) is not SpanExportResult.SUCCESS:
            return False
        self._kept.spans.clear()
        return True

    def drop(self) -> int:
        """Forget what is not sent; how many spans."""
        count = self.waiting
        self._kept.spans.clear()
        return count


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)
