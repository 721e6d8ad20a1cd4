"""``lava status`` of a cluster of ``lava up``: its daemons, what is wrong with it, and what to do."""

from __future__ import annotations

from cli.local.daemons import find_pid
from cli.local.folder import CannotUp, Folder
from cli.local.probe import query


def status_lines(folder: Folder) -> list[str]:
    """One line for each daemon of the cluster, running or not. Raises CannotUp where none was made."""
    shape = folder.find_shape()
    if shape is None:
        raise CannotUp(f"{folder.path}: no cluster was made here")
    lines = []
    names = folder.master_names(shape.masters)
    serving = _serving(folder, names)
    for name in names:
        pid = find_pid(folder, name)
        role = "master" if name == serving else "standby"
        lines.append(f"{role} lavad {pid or '-'} {name if pid else 'down'}")
    for kind in ("agent", "starter"):
        for host in shape.hosts:
            pid = find_pid(folder, f"{kind}-{host}")
            lines.append(f"{kind} {host} {pid or '-'} {'up' if pid else 'down'}")
    if shape.web >= 0:
        pid = find_pid(folder, "web")
        lines.append(f"web {shape.web} {pid or '-'} {'up' if pid else 'down'}")
    return lines


def status_words(folder: Folder) -> str:
    """What is wrong with the cluster and what to do, a line each; "" where all is well."""
    shape = folder.find_shape()
    again = f"lava up --dir {folder.path}"
    if shape is None:
        return ""
    names = folder.master_names(shape.masters)
    down = [
        name
        for name in [*names, *(f"{kind}-{host}" for host in shape.hosts for kind in ("agent", "starter"))]
        if not find_pid(folder, name)
    ]
    text = f"Daemons that do not run: {', '.join(down)}\n  What to do: {again}\n" if down else ""
    serving = _serving(folder, names)
    if not serving:
        return f"{text}No master answers: commands wait, jobs go on\n  What to do: {again}; {folder.log} says why it ended\n"
    return text + (query(folder.run / f"{serving}.sock", "status", {}) or "")


def _serving(folder: Folder, names: list[str]) -> str:
    """The master that answers, "" if none does."""
    return next((name for name in names if query(folder.run / f"{name}.sock", "lsid", {}) is not None), "")
