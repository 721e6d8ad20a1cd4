"""badmin ckconfig, reconfig and showconf: the site's files, read on this host by `config`, as the master reads them."""

from __future__ import annotations

import os
import time

from cli.client.client import Client, read_conf
from cli.client.context import LSF_FAILED, Context, Fail, Refused
from config.lsfconf import find_envdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from config.read.load import Loaded

CHECKING = "\nChecking configuration files ...\n\n"


def load_site(context: Context, asks_egroup: bool = False) -> Loaded:
    """The site's configuration with its problems. Raises Fail where there is no lsf.conf."""
    read_conf(context)
    folder = find_envdir(context.environ)
    if folder is None:
        raise Fail("lsb_init: Failed in an LSF library call: Unable to open file lsf.conf")
    try:
        from config.read.load import load
    except ImportError:
        # commands start without site-packages, which only this needs
        import site

        site.main()
        from config.read.load import load
    from config.programs.egroup import Egroup

    return load(folder, egroup_in=Egroup if asks_egroup else None)


def check(context: Context) -> int:
    """`badmin ckconfig`: print the problems; 255 where one is fatal."""
    loaded = _checked(context)
    return LSF_FAILED if loaded.has_errors else 0


def _checked(context: Context) -> Loaded:
    loaded = load_site(context, asks_egroup=True)
    from config.model.problems import report

    context.err(CHECKING)
    context.out(report(loaded.problems) + "\n")
    return loaded


def reconfigure(
    context: Context, client: Client, force: bool, initiated: str = "Reconfiguration initiated", verbose: bool = False
) -> int:
    """`badmin reconfig`: refused with errors; with warnings it asks first, unless ``force``. ``initiated``: the closing line."""
    loaded = load_site(context)
    from config.model.problems import report

    context.err(CHECKING)
    text = report(loaded.problems) + "\n"
    asks = loaded.has_warnings and not (loaded.has_errors or force)
    if verbose or not asks:
        context.out(text)
    if loaded.has_errors:
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
