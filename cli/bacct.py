"""bacct: sum up jobs that have ended."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.client.fail import Fail
from cli.options import lsf_file
from cli.options.listing import run_listing
from cli.options.options import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.options.options import Options

LARGEST = 1 << 20


def run(context: Context) -> int:
    """Ask and print."""
    table = Table(
        "bacct",
        "b d e l w x E UF gpu aff cname",
        "C D S f N P q m u J M app sla U G g Lp rcacct rcalloc",
        "[job_ID | job_ID[index_list]] ...",
        refused="cname rcacct rcalloc",
    )
    return run_listing(context, table, change=_with_files)


def _with_files(context: Context, options: Options, words: list[str]) -> None:
    """``-f FILE`` and ``-M FILE``."""
    lsf_file.send(context, options, words, "JOB_FINISH", stdin=True)
    _with_hosts(context, options)


def _with_hosts(context: Context, options: Options) -> None:
    """``-M FILE``: the hosts that the file names, beside those of ``-m``."""
    name = options.pop("M", None)
    if not isinstance(name, str):
        return
    try:
        with open(context.path(name), encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise Fail(f"{name}: {getattr(error, 'strerror', None) or 'Bad file name'}") from None
    hosts = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    if not hosts or len(text) > LARGEST:
        raise Fail(f"{name}: {'no host is in it' if not hosts else f'larger than {LARGEST} characters'}")
    options["m"] = " ".join([str(options.get("m", "")), *hosts]).strip()


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
