"""bpost: post a message to a job."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, table_of
from cli.control.messages import one_job, post, read_data
from proto.numbers import find_number


def run(context: Context) -> int:
    table = table_of("bpost")
    options, words = read_argv(context, table)
    job = one_job(options, words, table)
    given = str(options.get("i", "0"))
    if (number := find_number(given)) is None:
        raise Fail(f"{given}: Bad message index")
    body = read_data(context, str(options["a"])) if "a" in options else ""
    post(context, job, str(options.get("d", "no description")), number, body)
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
