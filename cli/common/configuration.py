"""badmin ckconfig, reconfig and showconf: the site's files, read on this host.

Rule: `config` reads them, for the master and here alike.
"""

from __future__ import annotations

import os
import time

from cli.common.client import Client, read_conf
from cli.common.fail import LSF_FAILED, Fail, Refused
from config.lsfconf import find_envdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.common.context import Context
    from config.load import Loaded

CHECKING = "\nChecking configuration files ...\n\n"


def load_site(context: Context) -> Loaded:
    """The whole configuration and its problems."""
    read_conf(context)
    folder = find_envdir(context.environ)
    if folder is None:
        raise Fail("lsb_init: Failed in an LSF library call: Unable to open file lsf.conf")
    try:
        from config.load import load
    except ImportError:
        # A command starts without site-packages; this is the one that needs them.
        import site

        site.main()
        from config.load import load
    return load(folder)


def check(context: Context) -> int:
    """`badmin ckconfig`."""
    loaded = _checked(context)
    return LSF_FAILED if loaded.has_errors else 0


def _checked(context: Context) -> Loaded:
    loaded = load_site(context)
    from config.check import report

    context.err(CHECKING)
    context.out(report(loaded.problems) + "\n")
    return loaded


def reconfigure(context: Context, client: Client, force: bool) -> int:
    """`badmin reconfig`: with errors never, with warnings after a question."""
    loaded = _checked(context)
    if loaded.has_errors:
        context.err("There are fatal errors.\n\nReconfiguration aborted.\n")
        return LSF_FAILED
    if loaded.problems and not force and not _agreed(context):
        context.err("Reconfiguration aborted.\n")
        return LSF_FAILED
    try:
        ok = client.change({"ask": "reconfig"})
    except Refused as refused:
        raise Refused(f"Failed: {refused.text}", refused.status) from None
    text = str(ok.get("text") or "").strip("\n")
    initiated = "Reconfiguration initiated"
    context.out(f"{text}\n" if initiated in text else f"{text}\n{initiated}\n".lstrip("\n"))
    return 0


def _agreed(context: Context) -> bool:
    context.out("There are warning errors.\n\nDo you want to reconfigure? [y/n] ")
    answer = os.read(context.stdin, 4096)
    if not answer.endswith(b"\n"):
        context.out("\n")
    return answer.strip().lower() in (b"y", b"yes")


def show(context: Context, daemon: str) -> int:
    """`badmin showconf mbd`: programs drop its first line and split the others at ` = `."""
    loaded = load_site(context)
    from config.showconf import showconf

    now = time.strftime("%a %b %e %H:%M:%S %Y")
    for line in showconf(loaded.config, os.uname().nodename, now, daemon):
        context.out(line + "\n")
    return 0
