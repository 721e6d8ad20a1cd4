"""Every reason with which a job was ended, every exit code with a meaning, and what hosts say that do not start a job."""

from __future__ import annotations

import signal

from lavad.core.lang.states import TermReason
from lavad.queries.explain.entry import Entry, Kind
from lavad.queries.facts.jobfacts import TERM_TEXTS

_T = TermReason
_MORE_MEMORY = "ask for more: bsub -M auto, or -M SIZE, with -R rusage[mem=SIZE]; lava why JOB says how much it had"

_ENDED: dict[TermReason, tuple[str, str]] = {
    _T.TERM_OWNER: ("Its owner ended it (bkill).", "-"),
    _T.TERM_ADMIN: ("An administrator ended it (bkill).", "bhist -l JOB says who, and with bkill -C why"),
    _T.TERM_FORCE_OWNER: ("Its owner ended it at once (bkill -r).", "-"),
    _T.TERM_FORCE_ADMIN: ("An administrator ended it at once (bkill -r).", "bhist -l JOB says who"),
    _T.TERM_RUNLIMIT: (
        "It had run as long as its run limit allows (-W, or RUNLIMIT of its queue).",
        "bsub -W LONGER, or a queue with a longer RUNLIMIT; or let it write checkpoints (-k)",
    ),
    _T.TERM_CPULIMIT: ("It had used all the CPU time of its limit (-c).", "bsub -c MORE, or leave -c out"),
    _T.TERM_MEMLIMIT: ("It used more memory on a host than its limit (-M, or MEMLIMIT of its queue).", _MORE_MEMORY),
    _T.TERM_SWAP: ("It used more memory and swap together than its limit (-v).", "bsub -v MORE, or leave -v out"),
    _T.TERM_PROCESSLIMIT: ("It had more processes than its limit (-p).", "bsub -p MORE; does it start processes without end?"),
    _T.TERM_THREADLIMIT: ("It had more threads than its limit (-T).", "bsub -T MORE, or OMP_NUM_THREADS=SLOTS"),
    _T.TERM_OUTPUTLIMIT: ("It wrote more without -o than its host keeps.", "bsub -o FILE, or write less"),
    _T.TERM_OUTPUTDISK: ("The disk on which its host keeps output was full.", "bsub -o FILE on a disk with room"),
    _T.TERM_DEADLINE: ("Its termination time came (-t).", "bsub -t LATER"),
    _T.TERM_REQUEUE_OWNER: ("Its owner put it back in its queue (brequeue).", "-"),
    _T.TERM_REQUEUE_ADMIN: ("An administrator put it back in its queue (brequeue).", "bhist -l JOB says who"),
    _T.TERM_REQUEUE_RC: ("It ended with an exit code of REQUEUE_EXIT_VALUES.", "bqueues -l shows these codes"),
    _T.TERM_CHKPNT: ("It was ended once its checkpoint was written (bchkpnt -k).", "brestart starts it again from there"),
    _T.TERM_CWD_NOTEXIST: ("Its working folder could not be entered on its host.", "bsub -cwd FOLDER that all hosts see"),
    _T.TERM_UNKNOWN: (
        "How it ended is not known: its host was lost, or its processes were.",
        "bsub -r lets such jobs run again elsewhere",
    ),
    _T.TERM_ZOMBIE: ("It was ended while its host could not be reached.", "-"),
    _T.TERM_PREEMPT: (
        "A job of a queue that may preempt its queue took its place, and its own ends such jobs (TERMINATE_WHEN=PREEMPT).",
        "another queue; in one with JOB_CONTROLS=SUSPEND[brequeue] it would run again",
    ),
    _T.TERM_LOAD: ("The load of its host was above the threshold at which jobs are ended.", "bqueues -l shows it"),
    _T.TERM_EXTERNAL_SIGNAL: ("A process that is not lava's sent it a signal.", "who did is not known to lava"),
    _T.TERM_OTHER: ("The text behind it says why.", "lava why JOB"),
    _T.TERM_ORPHAN_SYSTEM: (
        "A job that it depended on ended in a way that its condition does not take (-ti, or ORPHAN_JOB_TERM_GRACE_PERIOD).",
        "bhist -l JOB",
    ),
    _T.TERM_WINDOW: (
        "The run window of its queue closed (TERMINATE_WHEN=WINDOW).",
        "bqueues -l shows the windows; a shorter job, or another queue",
    ),
}

_CODES: dict[int, tuple[str, str, str]] = {
    0: ("Successfully completed", "The program said that all went well.", "-"),
    1: (
        "Exited with exit code 1",
        "The program failed; what it says of that is in its output.",
        "read its output: the file of -o and -e, or bpeek JOB",
    ),
    2: (
        "Exited with exit code 2",
        "The program failed; shells and many tools end so where they were called wrongly.",
        "read its output",
    ),
    99: (
        "Exited with exit code 99",
        "Of a pre-execution command: the job is to be ended (LSB_PRE_ABORT).",
        "ask whoever wrote the command",
    ),
    126: (
        "Exited with exit code 126",
        "The command was found, but could not be executed.",
        "chmod +x FILE; is its first line (#!) a program of that host? Is the disk mounted noexec?",
    ),
    127: (
        "Exited with exit code 127",
        "The command, or a library that it needs, was not found on the host.",
        "give its whole path, load its module in the script, or see that all hosts have it",
    ),
    255: (
        "Exited with exit code 255",
        "The program ended with -1; or lava could not go on with the job, and then its report says why.",
        "read its output; bhist -l JOB",
    ),
}

_SIGNALS: dict[signal.Signals, tuple[str, str]] = {
    signal.SIGHUP: ("Its terminal or its session ended.", "-"),
    signal.SIGINT: ("It was interrupted: bkill begins with this signal.", "bhist -l JOB says whether somebody ended it"),
    signal.SIGQUIT: ("Somebody asked it to end with a core dump.", "-"),
    signal.SIGILL: (
        "It ran an instruction that the processor does not have.",
        "compile it for the oldest processor among the hosts, or select their model",
    ),
    signal.SIGABRT: (
        "It ended itself: an assertion, an exception that nobody caught, or a broken heap.",
        "read its output; run it in a debugger",
    ),
    signal.SIGBUS: (
        "Memory that it uses went away: a mapped file was cut, or /dev/shm is full.",
        "is the disk or /dev/shm full?",
    ),
    signal.SIGFPE: ("It divided integers by zero, or such.", "run it in a debugger"),
    signal.SIGKILL: (
        "It was killed: by bkill, by a limit, or by the kernel as the host had no memory left.",
        "lava why JOB says which where lava knows; else ask for more memory (-M, rusage[mem])",
    ),
    signal.SIGSEGV: (
        "It used memory that is not its own: an error of the program, or its stack was too small.",
        "run it in a debugger; bsub -S unlimited for a larger stack",
    ),
    signal.SIGPIPE: ("What it wrote to had ended.", "-"),
    signal.SIGTERM: ("It was asked to end: by bkill after INT, or by lava at a limit.", "lava why JOB"),
    signal.SIGXCPU: ("It had used its CPU time (-c).", "bsub -c MORE"),
    signal.SIGXFSZ: ("It wrote a file larger than its limit (-F).", "bsub -F MORE"),
    signal.SIGUSR2: ("It was warned of its run limit and does not catch this signal.", "bsub -W LONGER, or catch it"),
}

_STARTS: dict[str, tuple[str, str, str]] = {
    "cwd": ("working folder …: …", "The host cannot enter its working folder.", "bsub -cwd FOLDER that all hosts see"),
    "output": (
        "output file …: …",
        "The host cannot open its output file (-o, -e).",
        "does the folder exist there, and may you write in it?",
    ),
    "input": (
        "input file …: …",
        "The host cannot open its input file (-i).",
        "is it there on that host? -is FILE sends it with the job",
    ),
    "files": (
        "…",
        "The host cannot reach a file system that it needs; it is tried elsewhere.",
        "an administrator looks at the mounts of that host",
    ),
    "secret": ("secret …: …", "A secret that it asks for cannot be read.", "lava secret ls; lava secret set"),
    "checkpoint": (
        "checkpoint folder …: …",
        "The host cannot use its checkpoint folder (-k).",
        "a folder that all hosts see, with room",
    ),
    "restart": (
        "…",
        "The host has no programs of its checkpoint method (-k), or cannot make its restart from a checkpoint ready.",
        "mend what the host says (bhist -l JOB): the programs in LSF_SERVERDIR, the copies, the room; it is tried again",
    ),
    "pre_exec": (
        "the pre-execution command …",
        "Its pre-execution command failed; it is tried again.",
        "read its output; bmod -E",
    ),
    "pre_abort": (
        "the pre-execution command ended the job …",
        "Its pre-execution command exited with 99, or a file of -f could not be copied: the job is not to run.",
        "ask whoever wrote the command; bsub -f with paths that the host can read and write",
    ),
    "no_user": (
        "user … is not known on host …",
        "The host has no such user.",
        "an administrator adds the user there, or closes the host",
    ),
    "not_allowed": (
        "…",
        "The host runs no jobs of this user: root without LSF_ROOT_USER=Y in its lsf.conf, or others as its agent is not root's.",
        "submit as another user",
    ),
    "gpu": (
        "host …: …",
        "The host cannot give it its GPUs as asked (MPS, exclusive mode).",
        "bhosts -gpu -l HOST; an administrator looks at its driver",
    ),
    "ports": (
        "… free ports are needed between … and …",
        "The host has too few free ports for its ranks.",
        "nothing: it is tried again elsewhere",
    ),
    "lookup": (
        "host … cannot look up user … now: …",
        "The host's directory of users does not answer.",
        "nothing: it is tried again; an administrator looks at the directory",
    ),
    "spool": (
        "host …: …",
        "The host cannot make the user's folder for kept output.",
        "an administrator looks at LAVA_OUTPUTDIR of that host",
    ),
    "nomem": ("…", "The host had no memory, processes or disk left to start it.", "an administrator looks at that host"),
    "jobfile": (
        "…",
        "The host cannot write the job's script into its folder.",
        "nothing: it is tried again; an administrator looks at that host's disk",
    ),
    "starter": (
        "the starter of … was restarted",
        "The host's starter ended; nothing of the job ran.",
        "nothing: it starts again",
    ),
    "stale": (
        "…",
        "The order to start it came too late to be safe.",
        "nothing: it starts again; are the clocks of the hosts right?",
    ),
    "bad": (
        "host … cannot start job …",
        "The host does not understand the job, or cannot set it up.",
        "an administrator looks at its log",
    ),
    "order": (
        "the order to start it cannot be sent: …",
        "The job is too large, or its environment is broken.",
        "submit it with a smaller script or environment (-env none)",
    ),
}


def entries() -> list[Entry]:
    """Reasons, exit codes (those of signals as 128 + N) and refusals of hosts."""
    found = [
        Entry(Kind.END, reason.name, None, TERM_TEXTS[reason], *_ENDED[reason]) for reason in TermReason if reason is not _T.NONE
    ]
    found += [Entry(Kind.EXIT, "", code, text, means, do) for code, (text, means, do) in sorted(_CODES.items())]
    for number, (means, do) in sorted(_SIGNALS.items()):
        found.append(Entry(Kind.EXIT, number.name, 128 + number, f"Exited by signal {number.value}", means, do))
    return found + [Entry(Kind.START, code, None, *said) for code, said in _STARTS.items()]
