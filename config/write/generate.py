"""The configuration that `lava up` and `lava init` write: the files of samples/, made to fit the hosts.

Rule: a line of a sample that ends in `#@NAME@` is an example of what is written in its place, so the samples load
as they stand. A file that exists is never touched.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from config.lsfconf import parse_lsf_conf
from config.model.cluster import DEFAULT_CLUSTER

SAMPLES = Path(__file__).parents[1] / "samples"
_MARK = re.compile(r"#@([A-Z]+)@\s*$")


def write_cluster(
    confdir: str | os.PathLike[str],
    name: str,
    hosts: Sequence[tuple[str, int | None]],
    admins: Sequence[str],
    extra_lsf_conf: Mapping[str, str],
) -> None:
    """Write a configuration folder; `hosts` are (name, slots), slots None is the number of CPUs.

    `extra_lsf_conf` are further lines of lsf.conf, instead of those of the sample where both name one. Raises OSError
    where the folder cannot be written, ValueError for a name that cannot be one.
    """
    _check_names(name, hosts, admins)
    folder = Path(confdir)
    folder.mkdir(parents=True, exist_ok=True)
    lines = _lines_for(name, hosts, admins)
    for sample in sorted(SAMPLES.iterdir()):
        is_cluster_file = sample.name == f"lsf.cluster.{DEFAULT_CLUSTER}"
        text = adapted(sample.read_text(encoding="utf-8"), lines)
        if sample.name == "lsf.conf":
            text = with_parameters(text, extra_lsf_conf)
        _write_new(folder / (f"lsf.cluster.{name}" if is_cluster_file else sample.name), text)
    _link_configdir(folder, name)


def adapted(text: str, lines: Mapping[str, Sequence[str]]) -> str:
    """The text with each marked line replaced by the lines for its mark."""
    out: list[str] = []
    for line in text.splitlines():
        mark = _MARK.search(line)
        out += lines[mark.group(1)] if mark else [line]
    return "\n".join(out) + "\n"


def with_parameters(text: str, extra: Mapping[str, str]) -> str:
    """lsf.conf with `extra` at its end, and without the sample's own lines of those names."""
    kept = [line for line in text.splitlines() if line.partition("=")[0].strip() not in extra]
    if extra:
        kept += ["", "# --- this cluster " + "-" * 82, *(f"{key}={_quoted(key, extra[key])}" for key in extra)]
    return "\n".join(kept) + "\n"


def _lines_for(name: str, hosts: Sequence[tuple[str, int | None]], admins: Sequence[str]) -> dict[str, list[str]]:
    cluster_rows = [f"{host:<15} !       !       1       ()" for host, _ in hosts]
    batch_rows = [
        f"{host:<15} {'!' if slots is None else slots:<7} ()      ()      ()      ()      ()      ()" for host, slots in hosts
    ]
    return {
        "MASTERS": [f'LSF_MASTER_LIST="{hosts[0][0]}"'],
        "ADMINS": [f"Administrators = {' '.join(admins)}"],
        "CLUSTER": [name],
        "HOSTS": cluster_rows,
        "SLOTS": batch_rows,
    }


def _check_names(name: str, hosts: Sequence[tuple[str, int | None]], admins: Sequence[str]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}", name):
        raise ValueError(f"'{name}' is not a cluster name")
    if not hosts:
        raise ValueError("a cluster needs at least one host")
    for host, slots in hosts:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,253}", host) or (slots is not None and slots < 0):
            raise ValueError(f"'{host}' with {slots} slots is not a host")
    for admin in admins:
        if not re.fullmatch(r"[^\s#=\"()\\]+", admin):
            raise ValueError(f"'{admin}' is not a user name")


def _quoted(key: str, value: str) -> str:
    """The value as lsf.conf holds it; proven by reading it back."""
    for text in (value, f'"{value}"', f"'{value}'"):
        if parse_lsf_conf(f"{key}={text}")[0] == [(key, value, 1)]:
            return text
    raise ValueError(f"{key}: the value cannot be written into lsf.conf")


def _write_new(path: Path, text: str) -> None:
    """Whole or not at all, and never over an existing file."""
    if path.exists():
        return
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def _link_configdir(folder: Path, name: str) -> None:
    """LSF's own place of the lsb files, LSF_CONFDIR/lsbatch/NAME/configdir: other programs look there."""
    link = folder / "lsbatch" / name / "configdir"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() and not link.exists():
        link.symlink_to(os.path.join("..", ".."), target_is_directory=True)
