"""lsb.queues and lsb.applications -> QueueConfig, ApplicationConfig."""

import re

import msgspec
from msgspec.structs import replace

from config.model.container import OF_DOCKER, Container
from config.model.problems import Place, Problems
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.site_params import SiteParams
from config.model.values import INDEX_ALIASES, Chkpnt, JobAction, JobControl, Limits, Thresholds, why_not_method
from config.text.sections import Row, Section
from config.values import values as v
from config.values.fields import Fields, fill, shortened
from config.values.parameters import APPLICATION, LIMIT_NAMES, QUEUE
from config.values.share import Owned

NORMAL = QueueConfig(
    name="normal",
    priority=30,
    description="For normal low priority jobs, running only if hosts are lightly loaded.",
)
"""The one queue of a folder without lsb.queues."""
_COMMFAIL = "IGNORE_COMMFAIL is not supported by lava: tasks behind a link that breaks end, and no others, as with KILL_TASKS"


def read_queues(
    sections: list[Section], scope: v.Scope, indices: frozenset[str], problems: Problems
) -> tuple[dict[str, QueueConfig], dict[str, Row]]:
    """-> (queues by name in the file's order, the rows they came from)."""
    queues: dict[str, QueueConfig] = {}
    origins: dict[str, Row] = {}
    for row in rows_of(sections, {"queue"}, problems):
        name = row.text("QUEUE_NAME")
        if not name_is_good(name, "queue", "QUEUE_NAME", row.place, problems):
            continue
        if name in queues:
            problems.error(row.place, f"queue {name} is defined twice; the first one holds")
            continue
        owner = f"queue {name}"
        thresholds = read_thresholds(row, indices, problems, owner)
        columns = {"QUEUE_NAME", *(index.upper() for index in indices), *(alias.upper() for alias in INDEX_ALIASES)}
        fields = fill(row, QUEUE, scope, problems, owner, columns)
        host_spec = _split_limits(fields)
        _split_owned(fields)
        _report_container(fields, problems, row, owner)
        fields["chkpnt"] = _chkpnt(fields, fields.get("chkpnt") or Chkpnt(""), problems, row.place, owner)
        fields["default_host_spec"] = fields.get("default_host_spec") or host_spec
        queues[name] = QueueConfig(name=name, thresholds=thresholds, **_kept(fields, QueueConfig))
        origins[name] = row
    return queues, origins


_SAYS_ELSE = re.compile(r"\baffinity\s*\[|\{")
"""A requirement that binds jobs itself, or one of several parts, each of which may."""


def with_cores(queues: dict[str, QueueConfig], params: SiteParams) -> dict[str, QueueConfig]:
    """The queues, with LSF_CGROUP_CORE_AUTO_CREATE those where each slot of a job has a core, if RES_REQ does not say else."""
    if not params.lsf_cgroup_core_auto_create or "cpu" not in params.lsb_resource_enforce:
        return queues
    return {
        name: queue if _SAYS_ELSE.search(queue.res_req) else replace(queue, res_req=f"{queue.res_req} affinity[core(1)]".strip())
        for name, queue in queues.items()
    }


def read_applications(sections: list[Section], scope: v.Scope, problems: Problems) -> tuple[ApplicationConfig, ...]:
    """The profiles in the file's order."""
    found: dict[str, ApplicationConfig] = {}
    for row in rows_of(sections, {"application"}, problems):
        name = row.text("NAME")
        if not name_is_good(name, "application", "NAME", row.place, problems):
            continue
        fields = fill(row, APPLICATION, scope, problems, f"application {name}", {"NAME"})
        if name in found:
            problems.error(row.place, f"application {name} is defined twice; the first one holds")
        fields["default_host_spec"] = _split_limits(fields)
        fields["job_controls"] = _all_controls(fields)
        _report_container(fields, problems, row, f"application {name}")
        if "TASK" in fields.get("memlimit_type", ()):
            text = "lava has no memory limits of tasks: TASK has no effect"
            problems.warn(row.cells["MEMLIMIT_TYPE"].place, f"application {name}: MEMLIMIT_TYPE: {text}")
        if fields.get("djob_commfail_action") == "IGNORE_COMMFAIL":
            place = row.cells["DJOB_COMMFAIL_ACTION"].place
            problems.warn(place, f"application {name}: DJOB_COMMFAIL_ACTION: {_COMMFAIL}")
        folder, initial = fields.get("chkpnt_dir", ""), fields.get("chkpnt_initperiod", 0)
        given = Chkpnt(folder, fields.get("chkpnt_period"), initial)
        fields["chkpnt"] = _chkpnt(fields, given, problems, row.place, f"application {name}")
        found.setdefault(name, ApplicationConfig(name=name, **_kept(fields, ApplicationConfig)))
    return tuple(found.values())


def _chkpnt(fields: Fields, given: Chkpnt, problems: Problems, place: Place, owner: str) -> Chkpnt | None:
    """The checkpoints of a queue or profile with its CHKPNT_METHOD; None: it says nothing of them that can be."""
    method = fields.get("chkpnt_method", "")
    if why := why_not_method(method):
        problems.warn(place, f"{owner}: CHKPNT_METHOD: {shortened(why)}: its jobs are not checkpointed")
        return None
    return replace(given, method=method) if given.dir or method else None


def _report_container(fields: Fields, problems: Problems, row: Row, owner: str) -> None:
    """What of CONTAINER cannot be done here."""
    box: Container | None = fields.get("container")
    if box is None:
        return
    place = row.cells["CONTAINER"].place
    if not box.runner:
        problems.warn(place, f"{owner}: CONTAINER: lava cannot run containers of {shortened(box.kind)}: its jobs are refused")
    elif box.left_out:
        problems.warn(place, f"{owner}: CONTAINER: without effect: {shortened(', '.join(box.left_out))}")
    if box.kind in OF_DOCKER:
        problems.note(place, f"{owner}: CONTAINER: images of {box.kind} are run by podman, inside of the job")


def _kept(fields: Fields, record: type[msgspec.Struct]) -> Fields:
    """Without the parameters that are only checked (``without_effect``) or have become part of another field."""
    return {name: value for name, value in fields.items() if name in record.__struct_fields__}


def _split_limits(fields: Fields) -> str:
    """RUNLIMIT to THREADLIMIT become the fields `limits` and `defaults`; the host or model that a time is given for."""
    bounds = {LIMIT_NAMES[name]: fields[name] for name in LIMIT_NAMES if name in fields}
    fields["limits"] = Limits(**{name: one.maximum for name, one in bounds.items()})
    fields["defaults"] = Limits(**{name: one.default for name, one in bounds.items()})
    return next((bounds[name].host_spec for name in ("run", "cpu") if name in bounds and bounds[name].host_spec), "")


def _split_owned(fields: Fields) -> None:
    """WEIGHT, CAPABILITY and GUARANTEE become a field for slots and one for GPUs."""
    for name in ("weight", "capability", "guarantee"):
        owned: Owned = fields.pop(name, Owned())
        fields |= {field: value for field, value in ((name, owned.slots), (f"gpu_{name}", owned.gpus)) if value is not None}


def _all_controls(fields: Fields) -> tuple[JobControl, ...]:
    """JOB_CONTROLS, and the three parameters of profiles that each set one of them."""
    found = {control.action: control for control in fields.get("job_controls", ())}
    for action in JobAction:
        what = fields.get(f"{action.lower()}_control")
        if what:
            found[action] = JobControl(action, what)
    return tuple(found.values())


def read_thresholds(row: Row, indices: frozenset[str], problems: Problems, owner: str) -> Thresholds:
    """The columns or keys that are load indices or numeric resources of lsf.shared."""
    sched: list[tuple[str, float]] = []
    stop: list[tuple[str, float]] = []
    for key, cell in row.cells.items():
        index = INDEX_ALIASES.get(key.lower(), cell.name if cell.name in indices else key.lower())
        if index not in indices or cell.value in ("", "-"):
            continue
        try:
            bounds = v.threshold(cell.value)
        except ValueError as wrong:
            problems.error(cell.place, f"{owner}: {cell.name}: {shortened(str(wrong))}")
            continue
        for found, bound in zip((sched, stop), bounds, strict=True):
            if bound is not None:
                found.append((index, bound))
    return Thresholds(tuple(sched), tuple(stop))


def rows_of(sections: list[Section], names: set[str], problems: Problems) -> list[Row]:
    """All rows of the sections so named; another section is a warning."""
    rows: list[Row] = []
    for section in sections:
        if section.name.lower() in names:
            rows += section.rows
        else:
            problems.warn(section.place, f"section {shortened(section.name)} is not supported and has no effect")
    return rows


def name_is_good(name: str, what: str, column: str, place: Place, problems: Problems) -> bool:
    """Reports a missing or impossible name. Names end up in tables and paths: no blanks, no slashes."""
    if not name:
        problems.error(place, f"a {what} has no {column}")
    elif len(name) > 255 or not name.isprintable() or any(char in name for char in " \t/\"'`$&|;<>()[]{}*?~\\,#=@"):
        problems.error(place, f"{what} name '{shortened(name)}' holds characters that a name cannot have")
    elif what == "queue" and name in ("all", "none", "others", "default_queue"):
        problems.error(place, f"queue name '{name}' is a keyword")
    else:
        return True
    return False
