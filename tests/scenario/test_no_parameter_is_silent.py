"""Every parameter that is read from any of LSF's files reaches code that decides or runs, or ckconfig names it; never both."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from config.model import cluster as model
from config.model.queue import ApplicationConfig
from config.model.site_params import SiteParams
from config.model.values import JobAction
from config.read.limits import LIMIT
from config.read.params import LSB_PARAMS, LSF_CONF
from config.values.parameters import APPLICATION, LIMIT_NAMES, QUEUE
from config.values.without_effect import KNOWN, MISSING, NEEDLESS

ROOT = Path(__file__).parents[2]
LISTED = frozenset().union(*NEEDLESS.values(), *MISSING.values())
OF_FIELDS = {
    "lsb.params": (LSB_PARAMS, SiteParams),
    "lsf.conf": (LSF_CONF, SiteParams),
    "lsb.applications": (APPLICATION, ApplicationConfig),
    "lsb.resources": (LIMIT, model.Limit),
}
KNOWN_OTHERWISE = {
    "PREEMPT_FOR": "only the ways in which lava preempts anyway are taken",
    "LSB_MEMLIMIT_ENFORCE": "it is a part of Params.job_memlimit",
    **dict.fromkeys(
        (f"{room}_FORMAT" for room in ("LSB_BHOSTS", "LSB_BQUEUES", "LSB_BUSERS", "LSF_LSHOSTS", "LSF_LSLOAD")),
        "lavad.queries.frame.columns.find_format makes the name of the command's",
    ),
    "LSF_CGROUP_CORE_AUTO_CREATE": "config.read.queues.with_cores gives it to the queues",
    "LSB_CONFDIR": "config.read.load finds the files by it",
}


PART_OF = (
    {name.upper(): "limits" for name in LIMIT_NAMES}
    | {f"{action}_CONTROL": "job_controls" for action in JobAction}
    | {f"CHKPNT_{name}": "chkpnt" for name in ("DIR", "PERIOD", "INITPERIOD", "METHOD")}
)
"""Parameters that the field of another name has become, which is used."""


SHOW_OR_KEEP = ("bparams.py", "older_conf.py")
"""Files of lavad that list all parameters, whatever becomes of them."""


@cache
def source(folders: tuple[str, ...], without: tuple[str, ...] = ()) -> str:
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py") if path.name not in without)
    return "\n".join(path.read_text() for path in files if "_pb2" not in path.name)


CASES = [(file, name) for file, (table, _) in OF_FIELDS.items() for name in table if name not in LISTED]


@pytest.mark.parametrize(("file", "name"), CASES)
def test_a_parameter_has_an_effect_or_is_named(file: str, name: str) -> None:
    field = name.lower()
    record = OF_FIELDS[file][1]
    if name in KNOWN_OTHERWISE:
        return
    field = PART_OF.get(name, field)
    assert field in record.__struct_fields__
    code = source(("lavad", "agent"))
    used = re.search(rf"\.{field}\b", code) or re.search(rf'"{field}"', code) or re.search(rf"\bdef {field}s?\b", code)
    read = re.search(rf'["\']{name}["\']', source(("agent", "cli", "lavad", "proto/daemon", "web")))
    assert used or read, f"{file}: nothing acts on {name}, and config/values/without_effect.py does not list it"


READ = {file: table for file, (table, _) in OF_FIELDS.items()} | {"lsb.queues": QUEUE}


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, table in READ.items() for name in table if name in LISTED])
def test_a_parameter_that_is_said_to_have_no_effect_has_none(file: str, name: str) -> None:
    if name not in NEEDLESS.get(file, frozenset()) | MISSING.get(file, frozenset()):
        return  # that of another file
    code = source(("lavad", "agent", "cli", "web"), SHOW_OR_KEEP)
    used = re.search(rf'\.{name.lower()}\b|["\']{name}["\']|"{name.lower()}"', code)
    assert used is None, f"{file}: {name} is used, and config/values/without_effect.py says that it has no effect"


@pytest.mark.parametrize("file", sorted(KNOWN))
def test_what_is_known_by_name_alone_is_not_read(file: str) -> None:
    assert not KNOWN[file] & set(READ.get(file, ("LSF_HOST_ADDR_RANGE", "REXPRI")))
