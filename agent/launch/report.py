"""The report that LSF appends to a job's output file, the order that writes it as the user, and the part that mails it.

Rule: pure; LSF's words (its header, verdicts and blank lines), because people and tools read them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from agent.launch.build import Compiled
from agent.launch.outputs import DISCARDED, OutputPaths, show
from agent.starter.protocol.orders import Append, Deliver
from agent.starter.protocol.part import NO_LIMITS, NO_RANK, NO_VARIABLES, CgroupLimits, PartSpec, TaskSpec
from proto import advice
from proto import agent_pb2 as pb
from proto.daemon import mailing

LINE = "-" * 60
LONGEST_SHOWN = 65536
_WHY = {
    "TERM_OWNER": "job killed by owner",
    "TERM_ADMIN": "job killed by root or LSF administrator",
    "TERM_FORCE_OWNER": "job killed by owner without time for cleanup",
    "TERM_FORCE_ADMIN": "job killed by root or LSF administrator without time for cleanup",
    "TERM_REQUEUE_OWNER": "job killed and requeued by owner",
    "TERM_REQUEUE_ADMIN": "job killed and requeued by root or LSF administrator",
    "TERM_RUNLIMIT": "job killed after reaching LSF run time limit",
    "TERM_CPULIMIT": "job killed after reaching LSF CPU usage limit",
    "TERM_MEMLIMIT": "job killed after reaching LSF memory usage limit",
    "TERM_SWAP": "job killed after reaching LSF swap usage limit",
    "TERM_PROCESSLIMIT": "job killed after reaching LSF process limit",
    "TERM_THREADLIMIT": "job killed after reaching LSF thread limit",
    "TERM_OUTPUTLIMIT": "job killed after reaching the limit of output that its host keeps",
    "TERM_OUTPUTDISK": "job killed because its output filled the disk on which its host keeps output",
    "TERM_DEADLINE": "job killed after deadline expires",
    "TERM_CHKPNT": "job killed after checkpointing",
    "TERM_PREEMPT": "job killed after preemption",
    "TERM_WINDOW": "job killed after queue run window closed",
    "TERM_LOAD": "job killed after load exceeds threshold",
    "TERM_ORPHAN_SYSTEM": "orphaned job killed by LSF",
    "TERM_EXTERNAL_SIGNAL": "job killed by a signal external to LSF",
}
_REQUEUED = ("TERM_REQUEUE_OWNER", "TERM_REQUEUE_ADMIN", "TERM_REQUEUE_RC")


class Use(msgspec.Struct, frozen=True):
    """What an attempt used; memory in KB, 0 is unknown."""

    cpu: float = 0.0
    max_mem: int = 0
    avg_mem: int = 0
    cpu_peak: float = 0.0
    cpu_peak_after: float = 0.0
    max_swap: int = 0
    processes: int = 0
    threads: int = 0
    gpus: tuple[pb.GpuUse, ...] = ()


class Summary(msgspec.Struct, frozen=True):
    """All that the report tells of one attempt, besides its text."""

    key: int
    name: str
    hosts: tuple[tuple[str, int], ...]
    host: str
    admin: str
    home: str
    cwd: str
    lost_cwd: str
    """The working folder that could not be entered, "" if it could."""
    dispatched: float
    started: float
    ended: float
    status: int
    reason: str
    why: str
    """One line that says more than the status: the first failing rank, or how the end was lost."""
    use: Use
    requested_mem: float = 0.0
    """MB of ``rusage[mem=…]``, 0 if none."""
    note: str = ""
    """One line that the user should read though the job ended well."""


def report(text: pb.JobText, summary: Summary, where: OutputPaths, now: float) -> tuple[str, str]:
    """(what stands before the output, what stands behind it). Straight to the file, all of it stands behind."""
    direct = not where.kept
    lines = [*_head(text, summary, now), "", "Your job looked like:", "", LINE, "# LSBATCH: User input"]
    lines += [
        _looks(text.script or text.command),
        LINE,
        "",
        *_verdict(summary),
        *_usage(text, summary),
        *_gpus(summary),
        *_asked(text, summary),
        "",
    ]
    lines += ["The output (if any) is above this job summary." if direct else "The output (if any) follows:", ""]
    before = "\n".join(lines) + "\n"
    after = ""
    if where.error and where.error != where.output:
        after = f"\n\nPS:\n\nRead file <{where.error}> for stderr output of this job.\n\n"
    return ("", f"\n{LINE}\n{before}{after}") if direct else (before, after)


def _looks(work: str) -> str:
    """What was submitted; of a long script (that unpacks itself) its beginning."""
    return work.rstrip("\n") if len(work) <= LONGEST_SHOWN else f"{work[:LONGEST_SHOWN]}\n# ({len(work)} characters in all)"


def interrupted(key: int, host: str, why: str, now: float, again: bool) -> str:
    """What stands behind the output of an attempt that was cut short; ``again``: the job runs again."""
    said = f"Job <{show(key)}> was interrupted on host <{host}> at {date(now)}: {why}."
    return f"\n{LINE}\n{said}\n" + ("It is to be run again with the same jobid.\n\n" if again else "\n")


def _head(text: pb.JobText, summary: Summary, now: float) -> list[str]:
    done = "Done" if summary.status == 0 and not summary.why else "Exited"
    cluster = f" in cluster <{text.cluster}>"
    lines = [
        f"Sender: LSF System <{summary.admin}@{summary.host}>",
        f"Subject: Job {show(summary.key)}: <{summary.name}>{cluster} {done}",
        "",
        f"Job <{summary.name}> was submitted from host <{text.from_host}> by user <{text.user}>{cluster} "
        f"at {date(text.submitted)}",
    ]
    where = [host if count == 1 and len(summary.hosts) == 1 else f"{count}*{host}" for host, count in summary.hosts]
    executed = f"Job was executed on host(s) <{where[0]}>"
    tail = f", in queue <{text.queue}>, as user <{text.user}>{cluster} at {date(summary.dispatched)}"
    if len(where) == 1:
        lines.append(executed + tail)
    else:
        lines += [executed + tail, *(" " * 28 + f"<{host}>" for host in where[1:])]
    lines.append(f"<{summary.home}> was used as the home directory.")
    if summary.lost_cwd:
        lines.append(f"<{summary.lost_cwd}> could not be entered.")
    lines.append(f"<{summary.cwd}> was used as the working directory.")
    lines.append(f"Started at {date(summary.started)}")
    lines.append(f"Terminated at {date(summary.ended)}")
    lines.append(f"Results reported at {date(now)}")
    return lines


def _verdict(summary: Summary) -> list[str]:
    lines: list[str] = []
    if summary.reason in _REQUEUED:
        lines.append("Job was killed by user or admin, and will be re-queued with the same jobid.")
    if summary.reason in _WHY:
        lines.append(f"{summary.reason}: {_WHY[summary.reason]}.")
    if summary.why:
        lines.append(f"{summary.why[0].upper()}{summary.why[1:]}.")
    lines.append(verdict(summary.status))
    if summary.note:
        lines.append(f"{summary.note[0].upper()}{summary.note[1:]}.")
    return [*lines, ""]


def verdict(status: int) -> str:
    """The sentence for a wait status."""
    if os.WIFSIGNALED(status):
        core = ", and core dumped" if os.WCOREDUMP(status) else ""
        number = os.WTERMSIG(status)
        return f"Exited with signal termination: {signal.strsignal(number) or number}{core}."
    code = os.WEXITSTATUS(status)
    return f"Exited with exit code {code}." if code else "Successfully completed."


def _usage(text: pb.JobText, summary: Summary) -> list[str]:
    use = summary.use
    requested = summary.requested_mem
    rows = [
        ("CPU time", f"{use.cpu:.2f} sec."),
        ("Max Memory", _mb(use.max_mem)),
        ("Average Memory", f"{use.avg_mem / 1024:.2f} MB" if use.avg_mem else "-"),
        ("Total Requested Memory", f"{requested:.2f} MB" if requested else "-"),
        ("Delta Memory", f"{requested - use.max_mem / 1024:.2f} MB" if requested and use.max_mem else "-"),
        ("Max Swap", _mb(use.max_swap)),
        ("Max Processes", str(use.processes or "-")),
        ("Max Threads", str(use.threads or "-")),
        ("Run time", f"{max(0.0, summary.ended - summary.started):.0f} sec."),
        ("Turnaround time", f"{max(0.0, summary.ended - text.submitted):.0f} sec."),
    ]
    return ["Resource usage summary:", "", *(f"    {name + ' :':<44} {value}" for name, value in rows)]


def _gpus(summary: Summary) -> list[str]:
    """What was used of the GPUs of this host; nothing for a job without any."""
    gpus = sorted(summary.use.gpus, key=lambda gpu: (gpu.index, gpu.uuid))
    if not gpus:
        return []
    where = f" on host <{summary.host}>" if len(summary.hosts) > 1 else ""
    lines = ["", f"GPU usage summary{where}:", ""]
    for gpu in gpus:
        name = f"GPU {gpu.index if gpu.index >= 0 else gpu.uuid} :"
        lines.append(f"    {name:<44} {', '.join(_gpu(gpu))}")
    return lines


def _asked(text: pb.JobText, summary: Summary) -> list[str]:
    """What it used of what it asked for, where it ran for a minute, and advice."""
    use = advice.Use(
        ran=max(0.0, summary.ended - summary.started),
        slots=sum(slots for _, slots in summary.hosts),
        cpu=summary.use.cpu,
        max_mem=summary.use.max_mem,
        asked_mem=summary.requested_mem * 1024,
        run_limit=float(text.limits.run),
        succeeded=summary.status == 0 and not summary.why,
        gpus=[(gpu.known, gpu.idle) for gpu in summary.use.gpus],
    )
    said = advice.sentence(use)
    told = ["", f"    {said[0].upper()}{said[1:]}."] if said else []
    if use.ran < advice.LEAST:
        return told
    rows = [("CPU", use.cpu_share, f"{use.slots} slot{'s' if use.slots > 1 else ''}")]
    if use.asked_mem:
        rows.append(("Memory", use.mem_share, f"{summary.requested_mem:.0f} MB"))
    if use.run_limit:
        rows.append(("Run limit", use.time_share, f"{use.run_limit / 60:.0f} min."))
    lines = [f"    {name + ' :':<44} {100 * share:.0f}% of {whole}" for name, share, whole in rows]
    return ["", "Used of what was asked for:", "", *lines, *told]


def _gpu(gpu: pb.GpuUse) -> Iterator[str]:
    if not gpu.known:
        yield "use is not known"
    else:
        yield f"SM {100 * gpu.used / gpu.known:.0f}% (max. {gpu.max_util}%)"
        yield f"idle {100 * gpu.idle / gpu.known:.0f}%"
        yield f"memory max. {gpu.max_mem} MB"
    if gpu.energy >= 0:
        yield f"{gpu.energy:.0f} J"
    yield f"{gpu.held:.0f} sec."


def _mb(kb: int) -> str:
    return f"{max(1, round(kb / 1024))} MB" if kb else "-"


def date(at: float) -> str:
    """``Fri Nov 20 11:33:55 2026``."""
    return _date(int(at))


@lru_cache(maxsize=1024)
def _date(at: int) -> str:
    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(at))


def order(uid: str, made: Compiled, where: OutputPaths, folder: str, pieces: tuple[str, str]) -> Append | Deliver:
    """The order that adds the report (and output that was kept so far) to the user's files, as the user."""
    before, after = pieces
    text, user = made.text, made.user.account
    path, mkdir = os.path.join(folder, where.output), bool(text.output_dir)
    if not where.kept:
        return Append(uid, user, path, after, text.umask, mkdir=mkdir)
    found = Deliver(uid, user, path, where.kept, before, after, text.umask, text.output_overwrite, mkdir)
    if not where.kept_error:
        return found
    error = os.path.join(folder, where.error)
    return found._replace(from_error=where.kept_error, error=error, error_truncate=text.error_overwrite)


def small_part(uid: str, order: pb.Order, made: Compiled) -> PartSpec:
    """One process as the job's user, with nothing else of the job's."""
    return made.template._replace(
        uid=uid,
        cwd="/",
        key=order.key,
        attempt=order.attempt,
        title=f"{show(order.key)} report",
        env=NO_VARIABLES,
        tasks=(TaskSpec(NO_RANK, {}),),
        pre_exec=None,
        post_exec=None,
        stdin="/dev/null",
        nice=0,
        rlimits=NO_LIMITS,
        cgroup=CgroupLimits(pids=limits.pids) if (limits := made.template.cgroup) else None,
        label=False,
        stderr=DISCARDED,
    )


def command_part(
    uid: str, order: pb.Order, made: Compiled, what: str, folder: str, line: str, env: Mapping[str, str]
) -> PartSpec:
    """A command of the user's beside the job, by the shell, in a folder. ``what``: its name in messages."""
    return small_part(uid, order, made)._replace(
        title=f"{show(order.key)} {what}",
        cwd=folder or "/",
        cwd_else=("/",),
        env=env,
        argv=("/bin/sh", "-c", line),
        stdout=DISCARDED,
    )


def mail(uid: str, order: pb.Order, made: Compiled, program: str, pieces: tuple[str, str, str]) -> PartSpec:
    """The part that mails. ``pieces``: what stands before, the file that comes then ("": none), what stands behind."""
    text = made.text
    before, kept, after = pieces
    admin = text.admins[0] if text.admins else "lsfadmin"
    head = (mailing.head(admin, text.report_mail) + before)[:_MAX_ARGUMENT]
    send = mailing.words(program, admin, text.report_mail)
    argv = ("/bin/sh", "-c", _MAIL, "sh", head, kept, after, *send)
    return small_part(uid, order, made)._replace(argv=argv, stdout=DISCARDED)


def too_large(kept: str, most: int | None, key: int, host: str) -> str:
    """What a mail says in the place of the output (the file ``kept``) of more than ``most`` KB; "" for one that it brings."""
    try:
        size = os.stat(kept).st_size if most is not None else 0
    except OSError:
        return ""
    if most is None or size <= most * 1024:
        return ""
    return (
        f"The output has {size // 1024} KB, more than a mail brings here (LSB_MAILSIZE_LIMIT: {most} KB).\n"
        f"It is in {kept} on host <{host}>; bpeek {show(key)} shows it.\n"
    )


def so_far(text: pb.JobText, summary: Summary, became: str, now: float) -> str:
    """The mail of ``-B`` and ``-notify suspend`` about a job that has not ended. ``became``: started or suspended."""
    cluster = f" in cluster <{text.cluster}>"
    hosts = " ".join(
        f"<{host}>" if count == 1 and len(summary.hosts) == 1 else f"<{count}*{host}>" for host, count in summary.hosts
    )
    return (
        f"Sender: LSF System <{summary.admin}@{summary.host}>\n"
        f"Subject: Job {show(summary.key)}: <{summary.name}>{cluster} {became}.\n\n"
        f"Job <{summary.name}> was submitted from host <{text.from_host}> by user <{text.user}>{cluster}. "
        f"Started at {date(summary.started)}\n"
        f"under user <{text.user}>, on host(s) {hosts}, while in queue <{text.queue}>.\n"
        f"Notification reported at {date(now)}\n"
    )


_MAX_ARGUMENT = 120_000
_MAIL = """\
before=$1 kept=$2 after=$3; shift 3
{ printf %s "$before"; [ -z "$kept" ] || cat -- "$kept"; printf %s "$after"; } | "$@"
"""
