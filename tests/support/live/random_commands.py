"""Commands as careless users and administrators type them, by a seed: submissions, changes, questions, new configuration."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[3]
QUEUES = ("normal", "high", "low", "last")
ADDED = """
Begin Queue
QUEUE_NAME=high
PRIORITY=80
PREEMPTION=PREEMPTIVE[low]
FAIRSHARE=USER_SHARES[[default,1]]
End Queue
Begin Queue
QUEUE_NAME=low
# changes
DESCRIPTION=another parameter comes and goes here
PRIORITY=10
BACKFILL=Y
RERUNNABLE=Y
EXCLUSIVE=Y
REQUEUE_EXIT_VALUES=5
End Queue
Begin Queue
QUEUE_NAME=last
PRIORITY=20
SLOT_RESERVE=MAX_RESERVE_TIME[5]
PREEMPTION=PREEMPTABLE
End Queue
"""
"""Queues beside those of ``lava up``; the line behind ``# changes`` is replaced."""

_CHANGES = (
    "UJOB_LIMIT=2",
    "QJOB_LIMIT=1",
    "PJOB_LIMIT=1",
    "RES_REQ=span[hosts=1]",
    "PREEMPTION=PREEMPTABLE[high]",
    "NICE=5",
    "FAIRSHARE=USER_SHARES[[default,1]]",
    "HOSTS=host1 host2",
    "GANG=N",
    "MIG=1",
    "CHKPNT=/tmp",
    "RUN_WINDOW=1:00-2:00",
    "USERS=nobody",
    "WEIGHT=2",
    "GUARANTEE=2",
    "ROUND_ROBIN_POLICY=Y",
    "TERMINATE_WHEN=PREEMPT",
    "PRE_EXEC=/bin/false",
    "JOB_CONTROLS=SUSPEND[TERMINATE]",
    "HOSTLIMIT_PER_JOB=1",
)
_OPTIONS = (
    "-J '{name}[1-{many}]'",
    "-J '{name}[1-{many}]%2'",
    "-J {name}",
    "-n {few}",
    "-n 2,6",
    "-r",
    "-H",
    "-g /g{few}/x",
    "-q {queue}",
    "-W 1",
    "-x -q low",
    "-ti -w 'done(a)'",
    "-w 'ended({id})'",
    "-w 'done({name})'",
    "-w 'exit({id}, 3)'",
    "-Q 3",
    "-Q 'all ~0'",
    "-Q 'EXCLUDE(3)'",
    "-E true",
    "-E false",
    "-Ep true",
    "-ar -n 1,4",
    "-o {folder}/out.%J -N",
    "-gpu num={few}",
    "-gpu 'num=1:mode=exclusive_process'",
    "-gpu gmem=30G:j_exclusive=no",
    "-gpu mig=1",
    "-sp {many}",
    "-R 'span[ptile=1]'",
    "-R 'span[hosts=1]'",
    "-R 'rusage[mem=50:duration=1:decay=1]'",
    "-R '2*{{span[hosts=1]}}+1*{{select[ncpus>0]}}'",
    "-R 'affinity[core(1)]'",
    "-R 'cu[type=rack]'",
    "-k '{folder}/ck method=app'",
    "-U root#{few}",
    "-J 'e[1-4]' -w 'done(a[*])'",
    "-a pytorch",
)
_COMMANDS = ("sleep 0.2", "sleep 1", "sleep 3", "exit 3", "true", "false", "'kill -9 $$'", "sleep 8", "'sleep 1; exit 3'")
_ABOUT_JOBS = (
    "bkill",
    "bkill -r",
    "bkill -d",
    "bkill -s STOP",
    "bkill -s CONT",
    "bkill -s USR1",
    "bkill -C why",
    "bstop",
    "bresume",
    "bswitch {queue}",
    "btop",
    "bbot",
    "brequeue",
    "brequeue -a",
    "brequeue -e",
    "brequeue -d",
    "brequeue -H",
    "bmod -n {few}",
    "bmod -w 'ended({id})'",
    "bmod -wn",
    "bmod -J xx",
    "bmod -q {queue}",
    "bmod -W 2",
    "bmod -R 'span[hosts=1]'",
    "bmod -Rn",
    "bmod -Jn%1",
    "bmod -Z 'sleep 1'",
    "bmod -sp {many}",
    "bmod -bn",
    "bmod -gpu num=1",
    "bmod -gpun",
    "bmod -r",
    "bmod -P zz",
    "bmod -g /g3",
    "bmod -o /dev/null",
    "bmig",
    "bmig -f",
    "bchkpnt",
    "bchkpnt -k",
    "bchkpnt -p 1",
    "brun -m host{few}",
    "bresize request 4",
    "bresize request -h 4",
    "bresize release all",
    "bresize release host2",
    "bresize cancel",
    "brestart {folder}/ck",
    "bpost -d hello",
    "bread",
    "bstatus -d x",
    "bhist -l",
    "bjobs -l",
    "bjobs -script",
    "bjobs -env",
    "bjdepinfo -l",
    "bjdepinfo -c -r5",
    "bpeek",
    "bacct -l",
    "lava why",
    "lava why",
    "lava why",
)
_OTHERS = (
    "bhist -a",
    "bjobs -u all -a",
    "bjobs -u all -p3",
    "bjobs -A -u all",
    "bjobs -WL -u all",
    "bjobs -sum -u all",
    "bjobs -o all -u all",
    "bjobs -u all -a -json -o 'jobid stat exec_host pend_reason run_time gpu_alloc dependency'",
    "bacct -u all",
    "bqueues -l",
    "bhosts -l",
    "bhosts -x",
    "busers all",
    "bjgroup",
    "bjgroup -s",
    "bgmod -L {few} /g1",
    "bgdel /g3/x",
    "blimits",
    "bslots",
    "brsvs -l",
    "bparams -l",
    "badmin hist",
    "badmin showstatus",
    "bhist -T .-1,. -l",
    "badmin hclose -C x host{few}",
    "badmin hopen all",
    "badmin qinact {queue}",
    "badmin qact all",
    "badmin qclose {queue}",
    "badmin qopen all",
    "bkill -g /g1/x 0",
    "bkill -J a 0",
    "bstop -g /g2/x 0",
    "bresume 0",
    "bswitch -q normal {queue} 0",
    "brsvadd -n {few} -u root -b 23:50 -e 23:59 -m 'host1 host2'",
    "brsvdel root#{few}",
    "brsvmod -n {few} root#{few}",
    "lava run {root}/examples/roles/mpijob.yaml",
    "bsub -n 4 -R 'span[ptile=2]' 'blaunch hostname; sleep 1'",
    "bsub -a mpi -n 4 -o /dev/null {python} {root}/examples/greeting/greeting.py",
)


class Careless:
    """Types commands. ``reconfigure`` is called with a new parameter for queue ``low`` before ``badmin reconfig``."""

    def __init__(self, seed: int, folder: Path, python: str, reconfigure: Callable[[str], None]) -> None:
        self._random = random.Random(seed)
        self._folder = folder
        self._python = python
        self._reconfigure = reconfigure
        self._ids = ["0", "99999"]

    def types(self) -> str:
        """The next command line."""
        pick = self._random.random()
        if pick < 0.4:
            options = self._random.sample(_OPTIONS, self._random.choice((0, 1, 1, 2, 3)))
            return self._filled(" ".join(["bsub", *options, self._random.choice(_COMMANDS)]))
        if pick < 0.75:
            return self._filled(f"{self._random.choice(_ABOUT_JOBS)} '{{id}}{{element}}'")
        if pick < 0.78:
            self._reconfigure(self._random.choice(_CHANGES))
            return "badmin reconfig"
        return self._filled(self._random.choice(_OTHERS))

    def sees(self, output: str) -> None:
        """Remember what was submitted, for later commands."""
        self._ids += re.findall(r"^Job <(\d+)> is submitted", output)

    def _filled(self, line: str) -> str:
        chance = self._random
        element = chance.choice(("", "", "", "", "[1]", "[2-3]"))
        return line.format(
            name=chance.choice("abcd"),
            many=chance.randint(1, 12),
            few=chance.randint(1, 3),
            queue=chance.choice(QUEUES),
            id=chance.choice(self._ids[-40:]),
            element=element,
            folder=self._folder,
            root=ROOT,
            python=self._python,
        )
