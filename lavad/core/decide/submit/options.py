"""The options of bsub and bmod, from their raw text to fields of ``Spec`` and ``JobText``. One small reader an option.

Rule: an option that is not in the table is refused by its name; none is ignored or misread. Error texts are LSF's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lavad.core.decide.base.draft import Draft, text_of
from lavad.core.decide.submit import frameworks, interactive, options_files, options_lsf, software
from lavad.core.decide.submit.gpu_rusage import settle_gpus
from lavad.core.decide.submit.tasks import settle_tasks
from lavad.core.job.spec import Checkpoint, Limits
from lavad.core.lang import gpureq, secrets, when
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.resreq import text as resreq
from lavad.core.site.conf import Conf

_MEMORY = re.compile(r"(\d{1,15})(?:\.\d+)?([KMGTPEZ]?)B?!?", re.ASCII | re.IGNORECASE)
_UNITS = {"K": 1, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4, "E": 1024**5, "Z": 1024**6}
MAX_SLOTS = 2**31 - 1
MAX_TEXT = 2**16


def _texts(value: OptionValue) -> list[str]:
    return value if isinstance(value, list) else [text_of("R", value)]


def _texts_of(value: OptionValue) -> list[str]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_SLOTS:
        raise Refused("The number of processors must be a positive integer")
    return int(text)


def _slots(draft: Draft, value: OptionValue) -> None:
    least, _, most = text_of("n", value).partition(",")
    slots = _positive(least.strip())
    top = _positive(most.strip()) if most else slots
    if top < slots:
        raise Refused(f"{least},{most}: The maximum number of processors is less than the minimum")
    draft.set(slots=slots, max_slots=top)


def _resreq(draft: Draft, value: OptionValue) -> None:
    try:
        merged = resreq.merge(_texts(value), draft.conf.params.resreq_unit_mb)
        parsed = resreq.parse(merged)
    except resreq.ResReqError as error:
        raise Refused(str(error)) from None
    missing = resreq.unsupported(parsed)
    if missing:
        raise Refused(f"Bad resource requirement: {missing} is not supported by lava")
    unknown = resreq.unknown_names(parsed, draft.known_resources)
    if unknown:
        raise Refused(f"unknown resource <{unknown[0]}>: Bad resource requirement syntax")
    kinds = resreq.unit_types(parsed)
    wrong = next((kind for kind in kinds if kind not in (*draft.conf.params.unit_types, "")), None)
    if wrong is not None or (kinds and not draft.conf.params.units):
        raise Refused(f"Bad resource requirement: cu[]: no compute units{f' of type <{wrong}>' if wrong else ''} are configured")
    draft.set(resreq=merged)


def _hosts(draft: Draft, value: OptionValue) -> None:
    words = text_of("m", value).split()
    if not words:
        raise Refused("Bad host name, host group name or cluster name")
    for word in words:
        name = base_host(word)
        if name not in draft.known_hosts:
            raise Refused(f"{name}: Bad host name, host group name or cluster name")
    draft.set(hosts=tuple(words))


def base_host(word: str) -> str:
    """The host or group name of a ``-m`` word: without ``+n`` and ``!``."""
    return word.rstrip("!").partition("+")[0]


def _time_limit(draft: Draft, option: str, title: str, value: OptionValue) -> tuple[int, str]:
    text = text_of(option, value)
    try:
        seconds, host = when.parse_limit(text)
    except when.WhenError:
        raise Refused(f"{text}: Bad {title} specification") from None
    models = {name for name, _ in draft.conf.models}
    if host is not None and host not in draft.known_hosts and host not in models:
        raise Refused(f"{host}: Bad host specification")
    return seconds, host or ""


def _run_limit(draft: Draft, value: OptionValue) -> None:
    seconds, host = _time_limit(draft, "W", "RUNLIMIT", value)
    draft.limit(run=seconds or None)
    draft.set(run_host=host)


def _cpu_limit(draft: Draft, value: OptionValue) -> None:
    seconds, host = _time_limit(draft, "c", "CPULIMIT", value)
    draft.limit(cpu=seconds or None)
    draft.set(cpu_host=host)


def memory_kb(option: str, value: OptionValue, conf: Conf) -> int:
    """A size: a number in the site's unit (LSF_UNIT_FOR_LIMITS) or with a unit of its own; ``!`` behind it is allowed."""
    text = text_of(option, value)
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise Refused(f"{text}: Bad {_SIZES[option][1]} specification")
    unit = _UNITS[match[2].upper()] if match[2] else conf.params.unit_kb
    return int(match[1]) * unit


_SIZES = {
    "M": ("mem", "MEMLIMIT"),
    "v": ("swap", "SWAPLIMIT"),
    "D": ("data", "DATALIMIT"),
    "F": ("file", "FILELIMIT"),
    "S": ("stack", "STACKLIMIT"),
    "C": ("core", "CORELIMIT"),
}


def _size(option: str) -> Callable[[Draft, OptionValue], None]:
    def read(draft: Draft, value: OptionValue) -> None:
        kb = memory_kb(option, value, draft.conf)
        draft.limit(**{_SIZES[option][0]: kb if kb or option == "C" else None})

    return read


def _processes(draft: Draft, value: OptionValue) -> None:
    text = text_of("p", value)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_SLOTS:
        raise Refused(f"{text}: Bad PROCESSLIMIT specification")
    draft.limit(processes=int(text))


def _priority(draft: Draft, value: OptionValue) -> None:
    text = text_of("sp", value)
    most = draft.conf.params.max_user_priority
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= (most or 2**31 - 1):
        raise Refused("Bad user priority")
    if most is None:
        raise Refused("Bad user priority: MAX_USER_PRIORITY is not set in lsb.params")
    draft.set(priority=int(text))


def _gpu(draft: Draft, value: OptionValue) -> None:
    try:
        req = gpureq.parse(text_of("gpu", value))
    except gpureq.GpuReqError as error:
        raise Refused(str(error)) from None
    missing = gpureq.unsupported(req)
    if missing:
        raise Refused(f"GPU requirement {missing[0]} is not supported by lava")
    draft.set(gpu=req)


def _checkpoint(draft: Draft, value: OptionValue) -> None:
    folder, period, initial, method = "", 0, 0, ""
    for word in text_of("k", value).split():
        if not folder:
            folder = word
        elif word.startswith("method="):
            method = word[7:]
        elif word.startswith("init="):
            initial = _minutes(word[5:]) * 60
        else:
            period = _minutes(word) * 60
    if not folder:
        raise Refused("Checkpoint directory is missing")
    if method and not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", method):
        raise Refused(f"{method}: Bad checkpoint method")
    if method not in ("", "app"):
        raise Refused(f"{method}: this checkpoint method is not supported by lava")
    draft.set(checkpoint=Checkpoint(folder=folder, period=period, method=method or "app", initial=initial))


def _minutes(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 10**6:
        raise Refused(f"{text}: Bad checkpoint period")
    return int(text)


def _point(draft: Draft, option: str, value: OptionValue) -> float:
    text = text_of(option, value)
    try:
        return when.parse_point(text, draft.local).timestamp()
    except when.WhenError:
        raise Refused(f"{text}: Bad time specification") from None


def _begin(draft: Draft, value: OptionValue) -> None:
    draft.set(begin=_point(draft, "b", value))


def _deadline(draft: Draft, value: OptionValue) -> None:
    draft.set(deadline=_point(draft, "t", value))


_LIBRARIES = ("openmpi", "intelmpi", "mpich")
"""The MPI libraries whose own launcher ``mpirun.lsf`` starts, once."""


def _launch(draft: Draft, value: OptionValue) -> None:
    """``-a``: lava's built-in ways to start tasks; a site's own esub has been run by the command already."""
    texts = _texts(value)
    steps: list[software.Step] = []
    for name, inside in [found for text in texts for found in frameworks.names(text)]:
        if name in frameworks.WORDS:
            draft.set(launch=frameworks.launch_of(name, inside, draft.text.command))
            continue
        if name in software.NAMES:
            steps.append(software.step_of(name, inside))
            continue
        if name in _LIBRARIES:
            draft.set(launch=name)
            continue
        if name not in ("mpi",):
            raise Refused(f"{name}: no such esub, and lava has no application of this name")
        first = draft.text.command.split(None, 1)[0].rpartition("/")[2] if draft.text.command.strip() else ""
        if first.startswith(("mpirun", "mpiexec", "srun", "prun", "orterun")):
            raise Refused(
                f"{first}: -a mpi starts every rank itself; give the program alone (bsub -a mpi -n N PROGRAM), "
                f"or leave -a mpi out (bsub -n N {first} …)"
            )
        draft.set(launch="mpi")
    draft.say(esub=" ".join(word for text in texts for word in text.split()), software=software.in_order(steps))


def _file(field: str, overwrite: bool | None = None) -> Callable[[Draft, OptionValue], None]:
    def read(draft: Draft, value: OptionValue) -> None:
        path = text_of(field[0], value)
        if not path or "\0" in path or len(path) > 4095:
            raise Refused(f"{path[:80]}: Bad file name")
        draft.say(**{field: path})
        if overwrite is not None:
            draft.say(**{f"{field}_overwrite": overwrite})

    return read


def _input(draft: Draft, value: OptionValue) -> None:
    _file("input")(draft, value)
    draft.say(input_data="")


def _say(field: str) -> Callable[[Draft, OptionValue], None]:
    def read(draft: Draft, value: OptionValue) -> None:
        draft.say(**{field: value if isinstance(value, bool) else text_of(field, value)})

    return read


def _spec_text(field: str, option: str) -> Callable[[Draft, OptionValue], None]:
    def read(draft: Draft, value: OptionValue) -> None:
        text = text_of(option, value)
        if not text.isprintable():
            raise Refused(f"-{option} {text!r}: only characters that can be printed")
        draft.set(**{field: text})

    return read


def _flag(**fields: Any) -> Callable[[Draft, OptionValue], None]:
    def read(draft: Draft, value: OptionValue) -> None:
        if value:
            draft.set(**fields)

    return read


def _job_name(draft: Draft, value: OptionValue) -> None:
    draft.name = text_of("J", value)


def _queues(draft: Draft, value: OptionValue) -> None:
    draft.queues = tuple(text_of("q", value).split())


def _hold(draft: Draft, value: OptionValue) -> None:
    draft.held = bool(value)


def _cwd(draft: Draft, value: OptionValue) -> None:
    """A relative folder is one below the folder of submission."""
    folder = text_of("cwd", value)
    if not folder.startswith("/"):
        words = [draft.text.cwd.rstrip("/"), *(word for word in folder.split("/") if word not in ("", "."))]
        folder = "/".join(words) or "/"
    draft.say(cwd=folder, cwd_given=True)


def _login_shell(draft: Draft, value: OptionValue) -> None:
    shell = text_of("L", value)
    if not shell.startswith("/") or "\0" in shell or len(shell) > 4095:
        raise Refused(f"{shell[:80]}: Login shell must be an absolute path")
    draft.say(login_shell=shell)


def _secrets(draft: Draft, value: OptionValue) -> None:
    """``"VARIABLE[=file] ..."``: only the names come here; without a file it is the one that ``lava secret`` keeps."""
    draft.say(secrets=secrets.read(text_of("secret", value), draft.text.home))


def _never(draft: Draft, value: OptionValue) -> None:
    if value:
        draft.set(rerunnable=False, never_rerun=True)


def _nothing(draft: Draft, value: OptionValue) -> None:
    """Options that the command itself carries out."""


READERS: Mapping[str, Callable[[Draft, OptionValue], None]] = {
    "J": _job_name, "q": _queues, "H": _hold, "n": _slots, "R": _resreq, "m": _hosts, "W": _run_limit, "c": _cpu_limit,
    **{option: _size(option) for option in _SIZES}, "p": _processes, "sp": _priority, "gpu": _gpu, "k": _checkpoint,
    "b": _begin, "t": _deadline, "a": _launch, "o": _file("output", False), "oo": _file("output", True),
    "e": _file("error", False), "eo": _file("error", True), "i": _input, "outdir": _file("output_dir"),
    "cwd": _cwd, "L": _login_shell, "E": _say("pre_exec"), "Ep": _say("post_exec"), "Jd": _say("description"),
    "u": _say("mail_user"), "secret": _secrets,
    "B": _say("notify_start"), "N": _say("notify_end"), "P": _spec_text("project", "P"),
    "G": _spec_text("user_group", "G"), "x": _flag(exclusive=True), "r": _flag(rerunnable=True, never_rerun=False), "rn": _never,
    "label": _say("label"), "rankfiles": _say("rank_files"), "K": _nothing, "env": _nothing,
    "w": options_lsf.condition, "ti": options_lsf.orphan, "g": options_lsf.group, "app": options_lsf.app,
    "Q": options_lsf.requeue, "nnodes": options_lsf.nodes,
    "T": options_files.threads, "is": options_files.spooled, "f": options_files.copies, "ul": options_files.user_limits,
    "Ne": options_files.notify("exit"), "Nd": options_files.notify("done"), "Ns": options_files.notify("start"),
    "notify": options_files.notify(), "hostfile": options_files.hostfile, "ptl": options_files.pend_limit("ptl", "pend_limit"),
    "eptl": options_files.pend_limit("eptl", "eligible_limit"),
    "We": options_lsf.estimate, "We+": options_lsf.estimate_more, "Wep": options_lsf.estimate_share,
    "hl": options_lsf.host_limits, "mig": options_lsf.migrate,
    **{name: interactive.mode(name) for name in ("I", "Ip", "Is")}, "tty": interactive.tee,
    "ar": options_lsf.autoresize, "rnc": options_lsf.resize_command,
    "wa": options_lsf.warn_action, "wt": options_lsf.warn_time,
    "U": options_lsf.reservation,
}  # fmt: skip


def read_options(draft: Draft, options: Mapping[str, OptionValue]) -> None:
    """Apply all options to the draft; raises Refused for the first that is wrong or unknown."""
    for option, value in sorted(options.items(), key=lambda item: item[0] == "nnodes"):
        if any(len(text) > MAX_TEXT for text in _texts_of(value)) and option != "is":
            raise Refused(f"-{option}: The value is too long")
        reader = READERS.get(option)
        if reader is None:
            raise Refused(f"option -{option} is not supported by lava")
        reader(draft, value)
    settle_tasks(draft, "n" in options)
    settle_gpus(draft)
    spec = draft.spec
    if spec.cpu_host and spec.run_host and spec.cpu_host != spec.run_host:
        raise Refused(f"More than one host_spec is specified: <{spec.cpu_host}> and <{spec.run_host}>")


def with_defaults(limits: Limits, defaults: Limits) -> Limits:
    """The job's limits, a queue's defaults where it has none."""
    own = msgspec.structs.asdict(limits)
    return Limits(**{name: getattr(defaults, name) if value is None else value for name, value in own.items()})
