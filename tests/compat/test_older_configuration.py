"""A configuration that an older lava stored, under other names and with texts for values, is the one that its files give now."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from config.read.load import load
from lavad.configure.resolve import resolve
from lavad.core.events import Configured
from lavad.store.codec import decode_event, encode

SITE = Path(__file__).parent / "older_site"
"""The files of a site, and the bytes of the event that they gave before its values were typed."""


def test_the_stored_configuration_is_that_of_the_files() -> None:
    event = decode_event(1, bytes.fromhex((SITE / "configured.hex").read_text().replace("\n", "")))
    assert isinstance(event, Configured)
    today = resolve(load(str(SITE)).config)
    # its profile has a CHKPNT_METHOD that lava has not, which is named today and was taken then
    (stored,) = (app.chkpnt for app in event.conf.apps if app.name == "fluent")
    apps = tuple(replace(app, chkpnt=stored) if app.name == "fluent" else app for app in today.apps)
    # a plain WEIGHT is one of slots and of GPUs today
    queues = tuple(replace(queue, gpu_weight=None) for queue in today.queues)
    assert event.conf == replace(today, apps=apps, queues=queues)


def test_a_configuration_of_today_reads_as_it_was_written() -> None:
    event = Configured(at=1.0, conf=resolve(load(str(SITE)).config))
    assert decode_event(1, encode(event)) == event
