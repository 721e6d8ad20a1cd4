"""bpost: post a message to a job."""

from __future__ import annotations

import os

from cli.client.client import Client, read_conf
from cli.client.context import Context, start
from cli.client.fail import Fail, Refused
from cli.control.selection import check_id
from cli.options.options import read_letters, show_help, table_of

LARGEST = 64 << 10


def run(context: Context) -> int:
    """Post it."""
    table = table_of("bpost")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if len(words) != 1:
        raise Fail(table.usage())
    job = check_id(words[0])
    number = str(options.get("i", "0"))
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise Fail(f"{number}: Bad message index")
    body = _data(context, str(options["a"])) if "a" in options else ""
    text = str(options.get("d", "no description"))
    frame = {"ask": "post", "job": job, "text": text, "number": int(number), "body": body}
    try:
        Client(context, read_conf(context)).change(frame)
    except Refused as refused:
        text = refused.text.removeprefix(f"{job}: ")
        raise Refused(f"lsb_jobmsg(): {text}", refused.status) from None
    context.out(f"Message to job {job} posted all right.\n")
    return 0


def _data(context: Context, name: str) -> str:
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


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
