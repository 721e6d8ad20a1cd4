"""badmin ckconfig, reconfig and showconf: the site's files, read on this host as the master reads them.

Rule: what checks them is a program of lavad's, as mbatchd checks those of LSF: it knows the languages that stand in them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from cli.client.client import Client, read_conf
from cli.client.context import LSF_FAILED, Context, Fail, Refused
from config.lsfconf import find_envdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from config.read.load import Loaded

CHECKING = "\nChecking configuration files ...\n\n"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_CODE = f"import sys; sys.path.insert(0, {_ROOT!r}); from lavad.configure.__main__ import main; sys.exit(main(sys.argv[1:]))"


class Checked:
    """What is wrong with the files: the text of `badmin ckconfig`, and whether there are errors, and warnings."""

    def __init__(self, report: str, errors: bool, warnings: bool) -> None:
        self.report, self.errors, self.warnings = report, errors, warnings


def _folder(context: Context) -> str:
    """That of lsf.conf. Raises Fail where there is none."""
    read_conf(context)
    folder = find_envdir(context.environ)
    if folder is None:
        raise Fail("lsb_init: Failed in an LSF library call: Unable to open file lsf.conf")
    return folder


def _check(context: Context, asks_egroup: bool) -> Checked:
    """Raises Fail where there is no lsf.conf."""
    words = [_folder(context), *(["egroup"] if asks_egroup else [])]
    call = [sys.executable, "-I", "-c", _CODE, *words]
    try:
        ran = subprocess.run(
            call, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", env=dict(context.environ), check=True
        )
        return Checked(**json.loads(ran.stdout))
    except subprocess.CalledProcessError as failed:
        raise Fail(f"The configuration cannot be checked: {failed.stderr.strip().rpartition(chr(10))[2]}") from None
    except (OSError, ValueError) as error:
        raise Fail(f"The configuration cannot be checked: {error}") from None


def load_site(context: Context) -> Loaded:
    """The site's configuration. Raises Fail where there is no lsf.conf."""
    folder = _folder(context)
    try:
        from config.read.load import load
    except ImportError:
        # commands start without site-packages, which only this needs
        import site

        site.main()
        from config.read.load import load
    return load(folder)


def check(context: Context) -> int:
    """`badmin ckconfig`: print the problems; 255 where one is fatal."""
    checked = _check(context, asks_egroup=True)
    context.err(CHECKING)
    context.out(checked.report + "\n")
    return LSF_FAILED if checked.errors else 0


def reconfigure(
    context: Context, client: Client, force: bool, initiated: str = "Reconfiguration initiated", verbose: bool = False
) -> int:
    """`badmin reconfig`: refused with errors; with warnings it asks first, unless ``force``. ``initiated``: the closing line."""
    checked = _check(context, asks_egroup=False)
    context.err(CHECKING)
    text = checked.report + "\n"
    asks = checked.warnings and not (checked.errors or force)
    if verbose or not asks:
        context.out(text)
    if checked.errors:
        context.err("There are fatal errors.\n\nReconfiguration aborted.\n")
        return LSF_FAILED
    if asks and not _agreed(context, "" if verbose else text):
        context.err("Reconfiguration aborted.\n")
        return LSF_FAILED
    try:
        ok = client.change({"ask": "reconfig"})
    except Refused as refused:
        context.out(f"Failed: {refused.text}\n")
        return refused.status
    text = str(ok.get("text") or "").strip("\n")
    text = text.replace("Reconfiguration initiated", initiated)
    context.out(f"{text}\n" if initiated in text else f"{text}\n{initiated}\n".lstrip("\n"))
    return 0


def _agreed(context: Context, text: str) -> bool:
    """LSF's two questions: whether to see the messages (unless ``text`` is ""), and whether to go on."""
    context.out("There are warning errors.\n\n")
    if text:
        context.out("Do you want to see detailed messages? [y/n] ")
        if says_yes(context):
            context.out(text)
    context.out("Do you want to reconfigure? [y/n] ")
    return says_yes(context)


def restart_base(context: Context, force: bool) -> int:
    """`lsadmin reconfig`: asks as LSF does, for all hosts or one by one; any yes reconfigures lava's one master."""
    if not force:
        context.out("Do you really want to restart LIMs on all hosts? [y/n] ")
        force = says_yes(context, end="")
    if not force:
        for host in load_site(context).config.hosts:
            context.out(f"Restart LIM on <{host.name}> ? [y/n] ")
            force = says_yes(context, end="") or force
    return reconfigure(context, Client(context, read_conf(context)), force=True) if force else 0


def says_yes(context: Context, end: str = "\n") -> bool:
    """Whether the next line of stdin says yes; no byte behind it is read. At the end of stdin: no, and ``end`` is printed."""
    answer = b""
    while not answer.endswith(b"\n"):
        byte = os.read(context.stdin, 1)
        if not byte:
            context.out(end)
            break
        answer += byte
    return answer.strip().lower() in (b"y", b"yes")


def show(context: Context, daemon: str, host: str = "") -> int:
    """`badmin showconf`: programs skip its first line and split the others at ` = `. Every ``host`` has the cluster's files."""
    loaded = load_site(context)
    known = ("", "all", *(row.name for row in loaded.config.hosts))
    if host not in known and loaded.config.default_host is None:  # else hosts may join that no file names
        raise Fail(f"{host}: Bad host name, host group name or cluster name")
    from config.write.showconf import showconf

    now = time.strftime("%a %b %e %H:%M:%S %Y")
    for line in showconf(loaded.config, os.uname().nodename if host in ("", "all") else host, now, daemon):
        context.out(line + "\n")
    return 0
