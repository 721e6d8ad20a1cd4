"""The commands that have subcommands, each with what it does: what badmin and lsadmin print, and the subcommands of lava."""

from __future__ import annotations

import re

from proto.commands import SUBCOMMANDS

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

LAVA = {row.name: row.help for row in SUBCOMMANDS.values()}
"""The subcommands of lava; ``lava NAME --help`` has their options."""


def subcommands(usage: str) -> list[str]:
    """The names in BADMIN or LSADMIN."""
    return [name for names in re.findall(r"^    (\w+(?: \| \w+)*)", usage, re.MULTILINE) for name in names.split(" | ")]
