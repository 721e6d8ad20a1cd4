"""The environment of a job: the submitter's, without what other launchers left in it, with LSF's variables.

Rule: ``shared`` is equal for all jobs of a kind on this host, ``on_hosts`` for those with the same slots, ``of_job`` for the
elements of an array, ``of_element`` is what differs; all are pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.launch import frameworks, gpus, launchers
from agent.launch.outputs import show
from agent.launch.site import Site, User
from proto import agent_pb2 as pb

MAX_HOSTS = 4096
"""LSB_HOSTS is left out when it would be longer, as in LSF."""

_LAUNCHERS = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDI_", "SLURM_")
_NAMES = (
    "TERM TERMCAP OLDPWD MPI_LOCALRANKID MPI_LOCALNRANKS LAVA_SOCKET LAVA_ATTEMPT LAVA_TOKEN LAVA_TASKS LAVA_MPI LAVA_COPIES"
    " LSB_JOBID LSB_JOBINDEX"
    " LSB_JOBINDEX_END LSB_JOBINDEX_STEP LSB_JOBNAME LSB_HOSTS LSB_MCPU_HOSTS LSB_DJOB_HOSTFILE LSB_DJOB_RANKFILE"
    " LSB_DJOB_NUMPROC LSB_MAX_NUM_PROCESSORS LSB_OUTPUTFILE LSB_ERRORFILE LSB_INPUTFILE LSB_JOBFILENAME"
    " LSB_CHKFILENAME LSB_EFFECTIVE_RSRCREQ LSB_RESTART LSB_RESTART_COUNT LSB_CHKPNT_DIR LSB_CHKPNT_PERIOD"
    " LSB_EXIT_REQUEUE LSB_JOBEXIT_STAT LSB_JOBEXIT_INFO LSB_INTERACTIVE LSB_JOBPEND LSB_BATCH_JID"
    " LSB_BIND_CPU_LIST LSB_BIND_MEM_LIST LSB_BIND_MEM_POLICY LSB_AFFINITY_HOSTFILE"
    " LSF_PM_TASKID LS_JOBPID LSB_QUEUE LSB_PROJECT_NAME LSB_SUB_RES_REQ"
    " LSB_APPLICATION_NAME LSB_JOB_GROUP LAVA_CKPT_DIR LAVA_CKPT_SIGNAL LAVA_CKPT_GENERATION LAVA_CKPT_PART LSB_OUTDIR"
    " LAVA_TIME_LEFT_FILE LAVA_SAY"
)
_DROPPED = frozenset(_NAMES.split())
_SETTINGS = ("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_")
"""Parameters of Open MPI: a user's own, but those that a launcher set for its ranks."""
_OF_A_RANK = ("OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMIX_RANK")
_OF_THIS_JOB = frozenset((*launchers.BY_BLAUNCH, *launchers.own("")))
_TRAPS = "trap # 15 10 12 2 1"


def inherited(env: Mapping[str, str]) -> dict[str, str]:
    """What is carried over from the submission: all but the variables of other launchers and of an outer job.

    MPICH aborts when it finds two launchers' variables side by side.
    """
    kept = () if any(name in env for name in _OF_A_RANK) else _SETTINGS
    return {
        name: value
        for name, value in frameworks.inherited(env).items()
        if name not in _DROPPED
        and (not name.startswith(_LAUNCHERS) or (name.startswith(kept) and name not in _OF_THIS_JOB))
        and not gpus.is_own(name)
        and name.isprintable()
    }


def given(text: pb.JobText) -> Mapping[str, str]:
    """All variables that the job brings along: of its submission (``frameworks.inherited``), else of its application profile."""
    own = frameworks.inherited(text.env)
    return {**text.env_vars, **own} if text.env_vars else own


def shared(text: pb.JobText, user: User, site: Site) -> dict[str, str]:
    """The variables that all elements of one submission have on this host."""
    own = {n: value for n, value in text.env_vars.items() if n not in _DROPPED and not gpus.is_own(n)}
    env = own | inherited(text.env)
    env.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    env.setdefault("HOME", text.home or user.home)
    env.setdefault("SHELL", text.shell or user.shell)
    env["USER"] = env["LOGNAME"] = user.name
    return env | of_host(text, user, site)


def of_host(text: pb.JobText, user: User, site: Site) -> dict[str, str]:
    """Those of ``shared`` that no submission sets: what LSF says of the submission and of this host."""
    env = {
        "PWD": text.cwd,
        "LS_SUBCWD": text.submit_cwd or text.cwd,
        "LSB_QUEUE": text.queue,
        "LSB_PROJECT_NAME": text.project,
        "LSB_SUB_HOST": text.from_host,
        "LSB_SUB_USER": text.user,
        "LSB_JOB_EXECUSER": user.name,
        "LSB_UNIXGROUP": user.group,
        "LSB_EXIT_PRE_ABORT": "99",
        "LSB_JOBEXIT_STAT": "0",
        "LSB_TRAPSIGS": _TRAPS,
        "LSB_EXEC_CLUSTER": text.cluster,
        "LSFUSER": user.name,
        "LS_EXEC_T": "START",
        "LSF_EAUTH_CLIENT": "user",
        "LSF_EAUTH_SERVER": f"mbatchd@{text.cluster}",
        "HOSTNAME": site.host,
        "HOSTTYPE": "linux",
        "LAVA_SOCKET": site.socket,
        "LAVA_HOST": site.host,
    }
    env |= _folders(site)
    env |= _optional(text)
    return env


def _folders(site: Site) -> dict[str, str]:
    """Where LSF is: MPI libraries look for LSF_BINDIR, commands for LSF_ENVDIR."""
    found = {"LSF_ENVDIR": site.conf_dir}
    for name in ("LSF_BINDIR", "LSF_LIBDIR", "LSF_SERVERDIR", "LSF_LOGDIR"):
        if value := site.conf.get(name):
            found[name] = value
    if "LSF_LIBDIR" in found:
        found["XLSF_UIDDIR"] = f"{found['LSF_LIBDIR']}/uid"
    return found


def _optional(text: pb.JobText) -> dict[str, str]:
    """Variables that only some submissions have."""
    found: dict[str, str] = {}
    for name, value in (
        ("LSB_EFFECTIVE_RSRCREQ", text.effective_resreq),
        ("LSB_SUB_RES_REQ", text.resreq),
        ("LSB_APPLICATION_NAME", text.app),
        ("LSB_JOB_GROUP", text.group),
        ("LSB_EXIT_REQUEUE", text.requeue_exit_values),
        ("LSB_OUTDIR", text.output_dir),
    ):
        if value:
            found[name] = value
    if text.djob_disabled:
        found["LSB_DJOB_DISABLED"] = "Y"
    if text.array_end:
        found["LSB_JOBINDEX_END"] = str(text.array_end)
        found["LSB_JOBINDEX_STEP"] = str(text.array_step or 1)
    if text.checkpoint_folder and text.checkpoint_period:
        found["LSB_CHKPNT_PERIOD"] = str(text.checkpoint_period)
    return found


def own(text: pb.JobText, key: int, start: pb.Start, files: tuple[str, str]) -> dict[str, str]:
    """The variables of one element. ``files``: its host file and its rank file."""
    return of_job(text, key) | on_hosts(text, start, files) | of_element(text, key, start)


def of_job(text: pb.JobText, key: int) -> dict[str, str]:
    """Those that are equal for all elements of a job."""
    job = key & 0xFFFFFFFF
    return {"LSB_JOBID": str(job), "LSB_ACCT_FILE": f"/tmp/.{int(text.submitted)}.{job}.acct"}


def on_hosts(text: pb.JobText, start: pb.Start, files: tuple[str, str]) -> dict[str, str]:
    """Those that are equal on the same slots and GPUs of the same hosts."""
    slots = sum(host.slots for host in start.hosts)
    env = {
        "LSB_MCPU_HOSTS": "".join(f"{host.host} {host.slots} " for host in start.hosts),
        "LSB_DJOB_HOSTFILE": files[0],
        "LSB_DJOB_RANKFILE": files[1],
        "LSB_DJOB_NUMPROC": str(slots),
        "LSB_MAX_NUM_PROCESSORS": str(slots),
    }
    hosts = " ".join(host.host for host in start.hosts for _ in range(host.slots))
    if len(hosts) <= MAX_HOSTS:
        env["LSB_HOSTS"] = hosts
    return env | gpus.of_part(text, start)


def of_element(text: pb.JobText, key: int, start: pb.Start) -> dict[str, str]:
    """Those of this element and attempt alone."""
    env = {
        "LSB_BATCH_JID": show(key),
        "LSB_JOBINDEX": str(key >> 32),
        "LSB_JOBNAME": text.name if "[" in text.name else start.name,
    }
    if token := start.token:
        env["LAVA_TOKEN"] = token
    if start.restart_count or start.restart >= 0:
        env["LSB_RESTART"] = "Y"
        env["LSB_RESTART_COUNT"] = str(start.restart_count)
    return env


def checkpoint(folder: str, start: pb.Start, signal_name: str, part: str = "") -> dict[str, str]:
    """The variables of a checkpointable job; ``folder`` is this job's own, or of its ``part`` on this host."""
    env = {"LSB_CHKPNT_DIR": folder, "LAVA_CKPT_DIR": folder, "LAVA_CKPT_SIGNAL": signal_name}
    if start.restart >= 0:
        env["LAVA_CKPT_GENERATION"] = str(start.restart)
    if part:
        env["LAVA_CKPT_PART"] = str(start.place)
    return env
