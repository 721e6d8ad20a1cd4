"""Messages to jobs: bpost sends them, and bstatus as the status that a job shows outside."""

from __future__ import annotations

import os

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, Refused
from cli.control.selection import check_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options, Table
    from cli.control.selection import Selection

LARGEST = 64 << 10
"""Bytes of the data that a message carries."""


def post(context: Context, target: Selection, text: str, number: int = 0, body: str = "") -> None:
    """Send a message and print what LSF prints."""
    job = "".join(target.get("ids", ""))
    frame = {"ask": "post", "job": job, "text": text, "number": number, "body": body}
    if "name" in target:
        frame["select"] = target
    try:
        ok = Client(context, read_conf(context)).change(frame)
    except Refused as refused:
        why = refused.text.removeprefix(f"{job}: ")
        raise Refused(why if why.startswith("Job <") else f"lsb_jobmsg(): {why}", refused.status) from None
    context.out(f"Message to job {ok.get('job', job)} posted all right.\n")


def one_job(options: Options, words: list[str], table: Table) -> Selection:
    """The job that a message is for: the id, or the name of -J. Raises Fail."""
    if len(words) + ("J" in options) != 1:
        raise Fail(table.usage())
    return {"name": str(options["J"])} if "J" in options else {"ids": [check_id(words[0])]}


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
