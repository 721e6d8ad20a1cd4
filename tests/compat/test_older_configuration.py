"""A configuration that an older lava stored, under other names and with texts for values, is the one that its files give now."""

from __future__ import annotations

from pathlib import Path

from config.read.load import load
from lavad.configure.resolve import resolve
from lavad.core.events import Configured
from lavad.store.codec import decode_event, encode

SITE = Path(__file__).parent / "older_site"
"""The files of a site, and the bytes of the event that they gave before its values were typed."""


def test_the_stored_configuration_is_that_of_the_files() -> None:
    event = decode_event(1, bytes.fromhex((SITE / "configured.hex").read_text().replace("\n", "")))
    assert isinstance(event, Configured)
    assert event.conf == resolve(load(str(SITE)).config)


def test_a_configuration_of_today_reads_as_it_was_written() -> None:
    event = Configured(at=1.0, conf=resolve(load(str(SITE)).config))
    assert decode_event(1, encode(event)) == event
