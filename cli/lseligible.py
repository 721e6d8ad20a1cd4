"""lseligible: whether a task may run on another host, by the task lists lsf.task, lsf.task.CLUSTER and ~/.lsftask.

Rule: a later list overrides an earlier one, so a user's own overrides the site's. Without any list nothing is eligible.
"""

from __future__ import annotations

import glob
import os

from cli.client.client import BASE, read_conf
from cli.client.context import LSF_FAILED, Context, Fail, start
from cli.client.options import read_letters, show_help, table_of
from config.lsfconf import find_envdir

USAGE = "lseligible: [-h] [-V] [-q] [-r] [-s] task_name"
RUNS_HERE = 1


def run(context: Context) -> int:
    """0: the task may run on another host; 1: it has to run here."""
    table = table_of("lseligible")
    try:
        options, words = read_letters(table, context.argv)
    except Fail as fail:
        raise Fail(f"{fail.text.splitlines()[0]}\n{USAGE}") from None
    if "-help" not in options and ("h" in options or "help" in options or (len(words) != 1 and "V" not in options)):
        context.err(f"{USAGE}\n")
        return LSF_FAILED
    show_help(context, table, options)
    remote, local = _lists(context)
    name, _, asked = words[0].partition("/")
    task = os.path.basename(name) if not asked else name
    eligible = task in remote or ("r" in options and task not in local)
    if "s" not in options:
        needs = remote.get(task, "")
        if "q" in options:
            context.out(f"{needs}\n")
        else:
            context.out(f"ELIGIBLE {needs}\n" if eligible else "NON-ELIGIBLE\n")
    return 0 if eligible else RUNS_HERE


def _lists(context: Context) -> tuple[dict[str, str], set[str]]:
    """(remote tasks with their resource requirements, local tasks). Raises Fail."""
    conf = read_conf(context, BASE)
    folder = conf.get("LSF_CONFDIR") or find_envdir(context.environ) or ""
    files = [os.path.join(folder, "lsf.task"), *sorted(glob.glob(os.path.join(glob.escape(folder), "lsf.task.*")))]
    files.append(os.path.join(context.environ.get("HOME", "/"), ".lsftask"))
    remote: dict[str, str] = {}
    local: set[str] = set()
    for path in files:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                _add(file.read(), remote, local)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Fail(f"{path}: {error.strerror}") from None
    return remote, local


def _add(text: str, remote: dict[str, str], local: set[str]) -> None:
    section = ""
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        words = line.lower().split()
        if words[:1] == ["begin"]:
            section = words[1] if len(words) > 1 else ""
        elif words[:1] == ["end"]:
            section = ""
        elif line and section in ("remotetasks", "localtasks"):
            drop = line.startswith("-")
            name, _, needs = line.lstrip("+- \t").strip("\"'").partition("/")
            if drop:
                remote.pop(name, None) if section == "remotetasks" else local.discard(name)
            elif section == "remotetasks":
                remote[name] = needs
            else:
                local.add(name)


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
