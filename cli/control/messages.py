"""Messages to jobs: bpost sends them, and bstatus as the status that a job shows outside."""

from __future__ import annotations

import os

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, Refused

LARGEST = 64 << 10
"""Bytes of the data that a message carries."""


def post(context: Context, job: str, text: str, number: int = 0, body: str = "") -> None:
    """Send a message and print what LSF prints."""
    frame = {"ask": "post", "job": job, "text": text, "number": number, "body": body}
    try:
        Client(context, read_conf(context)).change(frame)
    except Refused as refused:
        why = refused.text.removeprefix(f"{job}: ")
        raise Refused(f"lsb_jobmsg(): {why}", refused.status) from None
    context.out(f"Message to job {job} posted all right.\n")


def read_data(context: Context, name: str) -> str:
    """The text of a file that goes with a message."""
    descriptor = os.open(context.path(name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, LARGEST + 1)
    finally:
        os.close(descriptor)
    if len(data) > LARGEST:
        raise Fail(f"{name}: larger than {LARGEST} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Fail(f"{name}: not a text in UTF-8") from None
