"""The commands that have subcommands, each with what it does: what badmin and lsadmin print, and the subcommands of lava."""

from __future__ import annotations

import re

BADMIN = """\
Usage: badmin [-h] [-V] command [command_options] [command_args]

    ckconfig [-v]                        check the configuration files
    reconfig [-v] [-f]                   check them, and let the master read them again
    hopen  [-C comment] [host ... | all]     open hosts to jobs
    hclose [-C comment] [host ... | all]     close hosts to new jobs
    hclose --migrate [-C comment] [host ...]  close hosts, and let jobs that can start elsewhere do so
    gpuopen  [-C comment] host:gpu[,gpu] ...  open GPUs to jobs; a GPU is its index or its UUID
    gpuclose [-C comment] host:gpu[,gpu] ...  close GPUs to new jobs
    qopen  [-C comment] [queue ... | all]    let queues take jobs
    qclose [-C comment] [queue ... | all]    let queues take no new jobs
    qact   [-C comment] [queue ... | all]    let queues start jobs
    qinact [-C comment] [queue ... | all]    let queues start no jobs
    hist | hhist | qhist | mbdhist [-t time0,time1] [-f file] [name ...]   show what was done
    showconf mbd | sbd                   show the parameters in force
    showstatus                           show the cluster in numbers
    perfmon start [period] | stop | view [-json] | setperiod period    count what the master does
    mbdrestart [-v] [-f]                 as reconfig
    lease extend time                    for so long (30m, 2h, seconds) no job is ended or taken for lost
    help                                 show this
    quit                                 end"""

QUEUE_CHANGES = {"qopen": "opened", "qclose": "closed", "qact": "activated", "qinact": "inactivated"}
"""What these of badmin's do, as it and its history say."""

LSADMIN = """\
Usage: lsadmin [-h] [-V] command [command_options] [command_args]

    ckconfig [-v]                        check the configuration files
    reconfig [-v] [-f]                   check them, and let the master read them again
    showconf lim | res [host ... | all]  show the parameters in force"""

LAVA = {
    "up": "start a cluster (or what of it is not running) and print the exports for your shell",
    "down": "end every process of the cluster, and its jobs",
    "env": "print the exports for another terminal",
    "status": "a line for each daemon; then what is wrong with the cluster, and what to do",
    "run": "submit a job file: lava's own, or a manifest of a training job",
    "jupyter": "JupyterLab as a job, and the address to open",
    "why": "why a job waits, and what would start it now; or why it ended",
    "explain": "what a reason, an exit code, a refusal, a parameter or an option means",
    "stats": "what a job or an array asked for and used, and advice",
    "report": "what users, groups, projects and queues held, used and wasted; also as a page (--html)",
    "time-left": "seconds until a running job must end; inside a job, this one",
    "completion": "what bash, zsh or fish need to complete commands, jobs, queues and hosts",
    "man": "write the manual pages into a folder",
    "top": "hosts, queues and running jobs, live",
    "watch": "a job or an array until it ends: progress, ranks, output",
    "web": "print an address that signs you in to the page",
    "token": "print a token for REST",
    "whatif": "a trace, the history or the live jobs under other policies, hosts …",
    "replay": "make a cluster's scheduling decisions again from its history",
    "db": "check, backup, restore or upgrade the store",
    "secret": "values that jobs get as variables (set, rm, ls)",
    "certs": "make certificates for the masters and hosts of a site",
}
"""The subcommands of lava; ``lava NAME --help`` has their options."""


def subcommands(usage: str) -> list[str]:
    """The names in BADMIN or LSADMIN."""
    return [name for names in re.findall(r"^    (\w+(?: \| \w+)*)", usage, re.MULTILINE) for name in names.split(" | ")]
