"""Captures that lava does not repeat, why, and what it does instead: (reason, exit status, words of its output)."""

from __future__ import annotations

DIFFERS = "its job here ends sooner, and not by a kill that LSF took for a success"
OVERRIDDEN: dict[str, str | tuple[str, int, str]] = {
    # --- what LSF 10.1 does instead
    "bjobs-nojobs": ("nothing found exits 0", 0, "No unfinished job found\n"),
    "bjobs-noargs": ("nothing found exits 0", 0, "No unfinished job found\n"),
    "bjobs-mixed": ("one id is known: 0", 0, "Job <99999> is not found\n"),
    "bjobs-json": ("LSF 10.1 has -json", 0, '"COMMAND":"bjobs"'),
    "bjobs-X": ("LSF 10.1 has -x", 0, "No unfinished job found\n"),
    "bugroup-l": ("LSF 10.1 has -l", 0, "GROUP_NAME:  ugA\nUSERS:       alice bob \n"),
    "bugroup-noargs": (
        "members stand in the order of lsb.users, not in that of a hash",
        0,
        "ugA          alice bob \nugB          bob \n",
    ),
    "bjobs-V": ("the product's own name", 0, "lava "),
    "lsid-V": ("the product's own name", 0, "lava "),
    "lsadmin-showconf": ("LSF 10.1 has showconf", 255, "lim or res"),
    "bsub-badopt": ("LSF 10.1 has -Q, with a value", 255, "No command is specified. Job not submitted.\n"),
    "bsub-eo": ("LSF 10.1 has -cwd", 0, "is submitted to default queue"),
    "bsub-gpu": ("LSF 10.1 has -gpu", 0, "is submitted to default queue"),
    "bsub-same": ("LSF 10.1 has same[]", 0, "is submitted to default queue"),
    "bsub-affinity": ("LSF 10.1 has affinity[]", 0, "is submitted to default queue"),
    "bsub-R-strq": ("LSF 10.1 takes quoted strings", 0, "is submitted to default queue"),
    "bsub-R-spanh-1": ("LSF 10.1 has span[hosts=-1]", 0, "is submitted to default queue"),
    "bpost-none": ("the peer crashed", 0, "posted all right."),
    "bsub-K-kill9": ("the peer took a killed shell for a success", 137, "<<Job is finished>>"),
    "bsub-root": ("the peer died of SIGPIPE", 255, "User permission denied. Job not submitted.\n"),
    "bsub-X": ("the option is named", 255, "bsub: illegal option -- X\n. Job not submitted.\n"),
    "report-k9": DIFFERS,
    "report-peek": DIFFERS,
    "report-runner": DIFFERS,
    # --- what a moment decided
    "lsrun": ("the name that this machine has", 0, ""),
    "bjdep": ("the peer had not looked at the condition again", 0, "true"),
    "bjobs-l-modified": ("its reason is the next one within a moment, not within ten seconds", 0, "Job Name <newname>"),
    # --- known differences
    "bjobs-W": ("processes of a job that has ended are not kept", 0, "peek"),
    "bjobs-l-prio": ("the queue's run limit, which holds for the job, is shown", 0, "10.0 min of ol1"),
    "bhist-l-post": ("a changed command stands in the head of the history too", 0, "Job command changes to : sleep 9;"),
}
