"""The options of bsub and bmod: one row each, with its names and what bmod may do with it. brestart takes some of them.

The commands take their option tables, the names in esubs' parameter files and the keys of job files from here; the master
takes what bmod resets, what may change while a job runs, and bmod's words in the history. The master's reader of a value
stands beside it as ``@reads("mig")`` (lavad.core.decide.submit).

Rule: standard library only and quick to import, since every bsub waits for it; the names in one text are split by blanks.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypedDict, Unpack

    Takes = Literal["flag", "value", "values"]
    Form = Literal["text", "duration", "date", "size"]
    Running = Literal["no", "always", "if allowed"]

    class _Given(TypedDict, total=False):
        """What a row of the table may say of an option besides its name and what it takes."""

        only: str
        bmod: Takes
        unsupported: str
        ignored: str
        same_as: str
        rival: str
        sent: bool
        options_file: bool
        esub: str
        json: str
        jsdl: str
        jsdl_lsf: str
        form: Form
        fields: str
        no_reset: str
        shown: str
        running: Running
        reset_running: Running


FLAG: Takes = "flag"
VALUE: Takes = "value"
VALUES: Takes = "values"
"""A value, and each use of the option adds one."""

TEXT: Form = "text"
DURATION: Form = "duration"
"""``[hour:]minute``: seconds in esubs' files and in JSDL."""
DATE: Form = "date"
"""``[[month:]day:]hour:minute``: seconds since 1970 in esubs' files."""
SIZE: Form = "size"
"""A size in memory or on disk: bytes in JSDL."""

NO: Running = "no"
ALWAYS: Running = "always"
IF_ALLOWED: Running = "if allowed"
"""With LSB_MOD_ALL_JOBS=Y."""


class Option:
    """One option.

    ``only``: the command that alone has it, "bsub" or "bmod"; ``bmod``: what it takes in bmod,
    where that differs. ``unsupported``: why lava has not what LSF has; ``ignored``: the value with which such an option asks
    for nothing and is accepted. ``same_as``: it means another option. ``rival``: of the two, the one given last counts.
    ``sent``: whether the master gets it; others are carried out by the command itself. ``options_file``: it names a file with
    the options of a job or of several, which take its place.
    ``esub``: variables in esubs' parameter files; ``json``: keys in job files in JSON and YAML beside the option's own name;
    ``jsdl`` and ``jsdl_lsf``: the element of JSDL, or of LSF's extension of it; ``form``: what its value is.
    ``fields``: what bmod sets back to its default with the ``n`` form (fields of Spec, JobText, and limits.* of Limits);
    ``no_reset``: why there is no such form ("": LSF has none either). ``shown``: its name in the history of a job.
    ``running``: whether it may change while the job runs, ``reset_running``: whether the ``n`` form may.
    """

    only = ""
    unsupported = ""
    ignored = ""
    same_as = ""
    rival = ""
    sent = True
    options_file = False
    esub = ""
    json = ""
    jsdl = ""
    jsdl_lsf = ""
    form: Form = TEXT
    fields = ""
    no_reset: str | None = None
    shown = ""
    running: Running = NO

    # What a row does not say is an attribute of the class: a bsub makes all of them at its start.
    def __init__(self, name: str, takes: Takes, **given: Unpack[_Given]) -> None:
        self.name = name
        self.takes = self.bmod = takes
        self.__dict__.update(given)
        self.reset_running: Running = given.get("reset_running", self.running)

    @property
    def has_reset(self) -> bool:
        """Whether bmod takes it with an ``n`` behind it, and resets it."""
        return not self.only and not self.unsupported and self.no_reset is None


_APS = "values of APS come from the queue alone; -sp is a job's own priority, btop puts it before others"
_CSM = "it is for IBM's Cluster Systems Manager"
_DATA = "there is no data manager"
_EXTERNAL = "there is no external scheduler"
_POWER = "it is for IBM Power hosts"

# In the order in which usages show them.
# fmt: off
OPTIONS = (
    Option("B", FLAG, esub="LSB_SUB_NOTIFY_BEGIN", json="notifyJobDispatch", jsdl_lsf="NotifyStart", fields="notify_start"),
    Option("H", FLAG, only="bsub", esub="LSB_SUB_HOLD", json="hold", jsdl_lsf="Hold"),
    Option("I", FLAG, only="bsub", esub="LSB_SUB_INTERACTIVE"),
    Option("Ip", FLAG, only="bsub", esub="LSB_SUB_PTY"),
    Option("Is", FLAG, only="bsub", esub="LSB_SUB_PTY_SHELL"),
    Option("IS", FLAG, only="bsub", same_as="I"),
    Option("ISp", FLAG, only="bsub", same_as="Ip"),
    Option("ISs", FLAG, only="bsub", same_as="Is"),
    Option("IX", FLAG, only="bsub", sent=False),
    Option("K", FLAG, only="bsub"),
    Option("N", FLAG, esub="LSB_SUB_NOTIFY_END", json="notifyJobDone", jsdl_lsf="NotifyFinish", fields="notify_end",
        running=ALWAYS),
    Option("Ne", FLAG, json="notifyJobExit", fields="notify"),
    Option("Ns", FLAG, json="notifyJobStart", fields="notify"),
    Option("Nd", FLAG, fields="notify"),
    Option("r", FLAG, rival="rn", esub="LSB_SUB_RERUNNABLE", json="rerun", jsdl_lsf="Rerunnable", reset_running=IF_ALLOWED),
    Option("rn", FLAG, json="rerunNever", no_reset=""),
    Option("x", FLAG, esub="LSB_SUB_EXCLUSIVE", json="exclusive", jsdl="ExclusiveExecution", fields="exclusive"),
    Option("ul", FLAG, esub="LSB_SUB3_USER_SHELL_LIMITS", json="userLimit",
        no_reset="limits are reset one by one (-Cn -cn -Dn -Fn -Sn)"),
    Option("ar", FLAG, esub="LSB_SUB3_AUTO_RESIZABLE", json="autoResize", fields="autoresize resizable"),
    Option("hl", FLAG, json="hostLimit"),
    Option("ti", FLAG, esub="LSB_SUB4_ORPHAN_TERM_NO_WAIT"),
    Option("XF", FLAG, only="bsub", sent=False),
    Option("tty", FLAG, only="bsub"),
    Option("datachk", FLAG, unsupported=_DATA),
    Option("Zs", FLAG, bmod=VALUE, sent=False, esub="LSB_SUB2_JOB_CMD_SPOOL",
        no_reset="what was spooled before is not kept (bmod -Zs)"),
    Option("label", FLAG, fields="label"),
    Option("a", VALUES, json="appSpecific", fields="launch software esub"),
    Option("alloc_flags", VALUE, only="bsub", json="allocFlags"),
    Option("app", VALUE, esub="LSB_SUB3_APP", json="appName", jsdl="ApplicationName", fields="app", shown="Application profile"),
    Option("b", VALUE, esub="LSB_SUB_BEGIN_TIME", json="specifiedStartTime", jsdl_lsf="Start", form=DATE, fields="begin",
        shown="Start time"),
    Option("C", VALUE, esub="LSB_SUB_RLIMIT_CORE", json="coreLimit", jsdl="CoreDumpLimit", form=SIZE, fields="limits.core",
        shown="Core limit"),
    Option("c", VALUE, esub="LSB_SUB_RLIMIT_CPU", json="cpuTimeLimit", jsdl="CPUTimeLimit", form=DURATION,
        fields="limits.cpu cpu_host", shown="CPU limit", running=IF_ALLOWED),
    Option("clusters", VALUE, unsupported="there is one cluster"),
    Option("cn_cu", VALUE, unsupported=_CSM, json="computeNodeComputeUnit"),
    Option("cn_mem", VALUE, unsupported=_CSM, json="computeNodeMem"),
    Option("core_isolation", VALUE, unsupported=_POWER, ignored="0", json="coreIsolation"),
    Option("csm", VALUE, unsupported=_CSM, ignored="n"),
    Option("cwd", VALUE, esub="LSB_SUB3_CWD", jsdl="WorkingDirectory", fields="cwd_given", shown="Working directory"),
    Option("D", VALUE, esub="LSB_SUB_RLIMIT_DATA", json="dataLimit", jsdl="DataSegmentLimit", form=SIZE, fields="limits.data",
        shown="Data limit"),
    Option("data", VALUE, unsupported=_DATA),
    Option("datagrp", VALUE, unsupported=_DATA, json="dataGroup"),
    Option("E", VALUE, esub="LSB_SUB_PRE_EXEC", json="preExecCmd", jsdl_lsf="PreExecution", fields="pre_exec",
        shown="Pre-execution command"),
    Option("Ep", VALUE, esub="LSB_SUB3_POST_EXEC", json="postExecCmd", jsdl_lsf="PostExecution", fields="post_exec",
        shown="Post-execution command"),
    Option("e", VALUE, rival="eo", esub="LSB_SUB_ERR_FILE", json="errorAppendFile errorFile", jsdl="Error",
        fields="error error_overwrite",
        shown="Error file", running=IF_ALLOWED, reset_running=NO),
    Option("eo", VALUE, esub="LSB_SUB_ERR_FILE", json="errorOverwriteFile", fields="error error_overwrite", shown="Error file",
        running=IF_ALLOWED, reset_running=NO),
    Option("env", VALUE, only="bsub", sent=False, esub="LSF_SUB4_SUB_ENV_VARS"),
    Option("eptl", VALUE, esub="LSB_SUB4_ELIGIBLE_PEND_TIME_LIMIT", json="eligiblePendTimeLimit", fields="eligible_limit"),
    Option("ext", VALUE, unsupported=_EXTERNAL, esub="LSB_SUB_EXTSCHED_PARAM", json="extSched"),
    Option("extsched", VALUE, unsupported=_EXTERNAL),
    Option("F", VALUE, esub="LSB_SUB_RLIMIT_FSIZE", json="fileLimit", jsdl="FileSizeLimit", form=SIZE, fields="limits.file",
        shown="File limit"),
    Option("f", VALUES, fields="copies"),
    Option("freq", VALUE, unsupported="a host's CPU frequency is not set for a job"),
    Option("G", VALUE, esub="LSB_SUB_USER_GROUP", json="userGroup", jsdl_lsf="Group", fields="user_group", shown="User group"),
    Option("g", VALUE, esub="LSB_SUB_JOB_GROUP LSB_SUB2_JOB_GROUP", json="jobGroupName", jsdl_lsf="JobGroup", fields="group",
        shown="Job group"),
    Option("gpu", VALUE, esub="LSB_SUB4_GPU_REQ LSB_SUB6_GPU_REQ", fields="gpu_own", shown="GPU requirement"),
    Option("hostfile", VALUE, json="hostFile", fields="resreq slots max_slots host_file"),
    Option("i", VALUE, rival="is", esub="LSB_SUB_IN_FILE", json="inputFile", jsdl="Input", fields="input input_data",
        shown="Input file"),
    Option("is", VALUE, esub="LSB_SUB2_IN_FILE_SPOOL", json="inputHandleFile", fields="input input_data", shown="Input file"),
    Option("J", VALUE, esub="LSB_SUB_JOB_NAME", json="jobName", jsdl="JobName", shown="Job name", running=IF_ALLOWED,
        reset_running=NO),
    Option("Jd", VALUE, esub="LSB_SUB_JOB_DESCRIPTION", json="jobDescription", jsdl="Description", fields="description",
        shown="Job description", running=ALWAYS),
    Option("jobaff", VALUE, unsupported="hosts have no attributes; -R and -m choose hosts"),
    Option("json", VALUE, only="bsub", options_file=True),
    Option("jsdl", VALUE, only="bsub", options_file=True),
    Option("jsdl_strict", VALUE, only="bsub", options_file=True),
    Option("jsm", VALUE, unsupported=_CSM, ignored="n"),
    Option("k", VALUE, esub="LSB_SUB_CHKPNT", json="checkpoint", jsdl_lsf="Checkpoint", fields="checkpoint",
        shown="Checkpoint directory"),
    Option("L", VALUE, esub="LSB_SUB_LOGIN_SHELL", json="loginShell", jsdl_lsf="LoginShell", fields="login_shell",
        shown="Login shell"),
    Option("Lp", VALUE, unsupported="there is no License Scheduler", esub="LSB_SUB2_LICENSE_PROJECT", json="licenseProject"),
    Option("ln_mem", VALUE, unsupported=_CSM),
    Option("ln_slots", VALUE, unsupported=_CSM),
    Option("M", VALUE, esub="LSB_SUB_RLIMIT_RSS", json="memLimit", jsdl="MemoryLimit", form=SIZE, fields="limits.mem memory_auto",
        shown="Memory limit", running=IF_ALLOWED),
    Option("m", VALUE, esub="LSB_SUB_HOSTS", json="machines", fields="hosts", shown="Hosts"),
    Option("mig", VALUE, esub="LSB_SUB3_MIG", json="migThreshold", fields="migrate_after"),
    Option("n", VALUE, json="numTasks", fields="slots max_slots", shown="Processors"),
    Option("network", VALUE, unsupported="it is for IBM's Parallel Environment", esub="LSB_SUB4_NETWORK", json="networkReq"),
    Option("nnodes", VALUE, json="numNodes", fields="slots max_slots"),
    Option("notify", VALUE, fields="notify"),
    Option("o", VALUE, rival="oo", esub="LSB_SUB_OUT_FILE", json="outputAppendFile outputFile", jsdl="Output",
        fields="output output_overwrite",
        shown="Output file", running=IF_ALLOWED),
    Option("oo", VALUE, esub="LSB_SUB_OUT_FILE", json="outputOverwriteFile",
        fields="output output_overwrite", shown="Output file",
        running=IF_ALLOWED, reset_running=NO),
    Option("outdir", VALUE, esub="LSB_SUB4_OUTDIR", json="outputDir", fields="output_dir"),
    Option("P", VALUE, esub="LSB_SUB_PROJECT_NAME", json="projectName", jsdl="JobProject", fields="project", shown="Project",
        running=IF_ALLOWED),
    Option("p", VALUE, esub="LSB_SUB_RLIMIT_PROCESS", json="processLimit", jsdl="ProcessCountLimit", fields="limits.processes",
        shown="Process limit", running=IF_ALLOWED),
    Option("pack", VALUE, only="bsub", options_file=True),
    Option("ptl", VALUE, esub="LSB_SUB4_PEND_TIME_LIMIT", json="pendTimeLimit", fields="pend_limit"),
    Option("Q", VALUE, esub="LSB_SUB3_JOB_REQUEUE", json="exitCode", fields="requeue", shown="Requeue exit values",
        running=ALWAYS),
    Option("q", VALUE, esub="LSB_SUB_QUEUE", json="queueName", jsdl_lsf="Queue", shown="Job queue"),
    Option("R", VALUES, esub="LSB_SUB_RES_REQ", json="resReq", jsdl_lsf="ResourceRequirements", fields="resreq",
        shown="Resource requirement", running=ALWAYS),
    Option("rankfiles", VALUE, fields="rank_files"),
    Option("rcacct", VALUE, unsupported="no hosts are borrowed from elsewhere"),
    Option("rnc", VALUE, esub="LSB_SUB3_RESIZE_NOTIFY_CMD", json="resizeNotifCmd", fields="resize_command"),
    Option("S", VALUE, esub="LSB_SUB_RLIMIT_STACK", json="stackLimit", jsdl="StackSizeLimit", form=SIZE, fields="limits.stack",
        shown="Stack limit"),
    Option("s", VALUE, unsupported="jobs are suspended when a run window closes", esub="LSB_SUB_WINDOW_SIG", json="signal"),
    Option("secret", VALUE, fields="secrets"),
    Option("sla", VALUE, esub="LSB_SUB2_SLA", json="serviceClassName", fields="service_class", shown="Service class"),
    Option("smt", VALUE, unsupported=_POWER),
    Option("sp", VALUE, esub="LSB_SUB_USER_PRIORITY LSB_SUB2_JOB_PRIORITY", json="jobPriority", jsdl_lsf="UserPriority",
        fields="priority", shown="Job priority", running=IF_ALLOWED),
    Option("stage", VALUE, unsupported="there is no burst buffer"),
    Option("step_cgroup", VALUE, unsupported=_CSM, ignored="n"),
    Option("T", VALUE, esub="LSB_SUB_RLIMIT_THREAD", json="threadLimit", jsdl="ThreadCountLimit", fields="limits.threads",
        shown="Thread limit"),
    Option("t", VALUE, esub="LSB_SUB_TERM_TIME", json="specifiedTerminateTime", jsdl_lsf="Deadline", form=DATE, fields="deadline",
        shown="Termination time"),
    Option("U", VALUE, esub="LSB_SUB2_USE_RSV", json="rsvId", jsdl_lsf="ReservationID", fields="reservation"),
    Option("u", VALUE, esub="LSB_SUB_MAIL_USER", json="mailUser", jsdl_lsf="MailUser", fields="mail_user", shown="Mail user",
        running=ALWAYS),
    Option("v", VALUE, esub="LSB_SUB_RLIMIT_SWAP", json="swapLimit", jsdl="VirtualMemoryLimit", form=SIZE, fields="limits.swap",
        shown="Swap limit", running=IF_ALLOWED),
    Option("W", VALUE, esub="LSB_SUB_RLIMIT_RUN", json="runtimeLimit", jsdl="WallTimeLimit", form=DURATION,
        fields="limits.run run_host", shown="Run limit", running=IF_ALLOWED),
    Option("We", VALUE, esub="LSB_SUB3_RUNTIME_ESTIMATION", json="estimateRuntime", jsdl_lsf="RuntimeEstimate", form=DURATION,
        fields="estimate", running=ALWAYS),
    Option("Wep", VALUE, esub="LSB_SUB3_RUNTIME_ESTIMATION_PERC", running=ALWAYS, no_reset="an estimate is reset by -Wen"),
    Option("w", VALUE, esub="LSB_SUB_DEPEND_COND", json="dependency", jsdl_lsf="Dependencies", shown="Dependency condition"),
    Option("wa", VALUE, esub="LSB_SUB_JOB_WARNING_ACTION", json="warningAction", fields="warn_action"),
    Option("wt", VALUE, esub="LSB_SUB_JOB_ACTION_WARNING_TIME", json="warningTime", fields="warn_before"),
    Option("yaml", VALUE, only="bsub", options_file=True),
    Option("We+", VALUE, only="bmod", esub="LSB_SUB3_RUNTIME_ESTIMATION_ACC", running=ALWAYS),
    Option("Z", VALUE, only="bmod", sent=False),
    Option("aps", VALUE, only="bmod", unsupported=_APS),
    Option("apsn", FLAG, only="bmod", unsupported=_APS),
)
# fmt: on

MPI_LIBRARIES = ("openmpi", "intelmpi", "mpich")
"""What ``-a`` may name besides ``mpi``: the MPI libraries whose own launcher ``mpirun.lsf`` starts, once."""

ESUBS = "LAVA_ESUBS"
"""The variable in which a command says all that ``-a`` named: esubs of the site, which it has run, are out of the option then."""
SECRETS_FOLDER = ".lava/secrets"
"""Below the home folder: where ``lava secret set`` keeps the values that ``-secret`` names, a file each."""

BY_NAME = {option.name: option for option in OPTIONS}

_OF_OTHER_FORMS = ("pack", "json", "yaml", "jsdl", "jsdl_strict", "Zs", "I", "Ip", "Is", "IS", "ISp", "ISs")
LEFT_OUT = {"lava run": ("n", *_OF_OTHER_FORMS), "lava jupyter": ("K", *_OF_OTHER_FORMS)}
"""Subcommands that take bsub's options, but for these."""


def find_reset(name: str) -> Option | None:
    """The option that ``name`` resets in bmod (``Wn`` resets ``W``), None where it is no such form."""
    option = BY_NAME.get(name[:-1]) if name.endswith("n") else None
    return option if option is not None and option.has_reset else None
