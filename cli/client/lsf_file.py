"""``-f FILE`` of bhist, bacct and badmin: a file in LSF's form, which this host has, on its way to the master that shows it.

Rule: only records that the command looks at are sent, deflated; what is still too long is refused by name.
"""

from __future__ import annotations

import os

from cli.client.context import Context, Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from cli.client.options import Options

STDIN = "-"
ANY = "*"
"""In place of kinds: lines of any form."""
LARGEST = 15 << 20
"""Bytes of an ask, as the master takes them."""
LONGEST = 16 << 20
"""Bytes of a line: more than any record has."""


def send(context: Context, options: Options, jobs: list[str], kinds: str = "", stdin: bool = False) -> None:
    """Put the file's lines in the place of its name. ``kinds``: the records wanted, "" all; ``stdin``: ``-`` is that.

    ``jobs``: the job ids that are asked for, [] all: records of other jobs are left out.
    """
    name = options.get("f")
    if isinstance(name, str):
        options["f"] = _packed(context, name, _wanted(jobs, kinds), stdin, kinds != ANY)


def _wanted(words: list[str], kinds: str) -> Callable[[bytes], bool]:
    if kinds == ANY:
        return lambda line: True
    known = tuple(f'"{kind}"'.encode() for kind in kinds.split())
    jobs = {os.fsencode(word.partition("[")[0]) for word in words}  # what is no text is refused when it is sent
    if not jobs or b"0" in jobs:
        return lambda line: line.startswith(known or b'"')

    def test(line: bytes) -> bool:
        # the job is the first field behind the time, or (JOB_SWITCH, JOB_MOVE) the second; JOB_MODIFY2 has it as a text
        fields = line.split(b" ", 5)[3:5]
        return line.startswith(known or b'"') and any(field.strip(b'"').partition(b"[")[0] in jobs for field in fields)

    return test


def _packed(context: Context, name: str, wanted: Callable[[bytes], bool], stdin: bool, of_records: bool) -> str:
    """``of_records``: a file that has lines, and none that is a record, is another one than was meant."""
    import base64
    import zlib

    deflate = zlib.compressobj(6)
    pieces: list[bytes] = []
    size = 0
    foreign = False
    if stdin and name == STDIN:
        context.acts()
    try:
        with open(context.stdin if stdin and name == STDIN else context.path(name), "rb", closefd=name != STDIN) as file:
            for line in lines(name, file):
                if of_records and not line.startswith((b"#", b"\n")):
                    of_records = foreign = line[:1] != b'"'
                if not wanted(line):
                    continue
                pieces.append(deflate.compress(line))
                size += len(pieces[-1])
                if size * 4 // 3 > LARGEST:
                    raise Fail(f"{name}: too long to be shown at once; name jobs, or split it")
    except (OSError, ValueError) as error:
        raise Fail(f"{name}: {getattr(error, 'strerror', None) or 'Bad file name'}") from None
    if foreign:
        raise Fail(f"{name}: no line of it is a record of lsb.events or lsb.acct")
    return base64.b64encode(b"".join(pieces) + deflate.flush()).decode()


def lines(name: str, file: BinaryIO) -> Iterator[bytes]:
    """Its lines, each with its end. Raises Fail where one is longer than any record."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise Fail(f"{name}: a line of it is longer than {LONGEST >> 20} MB")
        yield line if line.endswith(b"\n") else line + b"\n"
