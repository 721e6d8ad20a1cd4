"""Where the cluster is: lsf.conf of the environment, and the sockets of the daemons on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lava_client.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

SITE_ENVDIR = "/etc/lava"
RUNDIR = "/run/lava"
OF_MASTER = "-master"
"""After the name of the run folder: that of a master under an account of its own."""


def read_conf(environ: Mapping[str, str]) -> dict[str, str]:
    """The parameters of lsf.conf below LSF_ENVDIR, else /etc/lava; {} where LAVA_SOCKET names a socket. Raises Unavailable."""
    folder = environ.get("LSF_ENVDIR") or SITE_ENVDIR
    path = os.path.join(folder, "lsf.conf")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().replace("\\\n", "").split("\n")
    except OSError as error:
        if environ.get("LAVA_SOCKET"):
            return {}
        raise Unavailable(f"no cluster: {path}: {error.strerror} (LSF_ENVDIR names the folder; lava env sets it)") from None
    found = {}
    for line in lines:
        name, equals, value = line.strip().partition("=")
        name = name.removeprefix("export ").strip()
        if equals and name.isidentifier():
            found[name] = _plain(value.strip())
    return found


def _plain(value: str) -> str:
    """A value without its quotes, or without the comment behind it."""
    if value[:1] in ("'", '"') and (end := value.find(value[0], 1)) > 0:
        return value[1:end]
    for blank in (" #", "\t#"):
        value = value.partition(blank)[0]
    return value.strip()


def find_sockets(environ: Mapping[str, str], conf: Mapping[str, str]) -> list[str]:
    """The sockets to ask, in this order: those of masters on this machine, then those of its agents."""
    given = environ.get("LAVA_SOCKET")
    if given:
        return [given]
    rundir = conf.get("LAVA_RUNDIR") or RUNDIR
    found = []
    for folder in (rundir, rundir + OF_MASTER):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        found += [(not name.startswith("lavad"), len(name), name, folder) for name in names if _is_socket(name)]
    return [os.path.join(folder, name) for _, _, name, folder in sorted(found)]


def _is_socket(name: str) -> bool:
    return name.endswith(".sock") and name.startswith(("lavad", "agent"))
