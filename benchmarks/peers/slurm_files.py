"""What a private Slurm needs on disk: its configuration, set for throughput, and a program that submits many jobs.

Throughput: the plain scheduler, looking as soon as it may and at the whole queue; no accounting, no cgroups, no delay of jobs.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from pathlib import Path

SLOTS = 64
_QUEUES = (
    "PartitionName=run Nodes=n1 Default=YES State=UP",
    "PartitionName=held Nodes=n1 State=DOWN",
    "PartitionName=many Nodes=n1 State=UP OverSubscribe=FORCE:32",
)


def configuration(folder: Path, ports: list[int]) -> str:
    """slurm.conf for one node on this machine, with a private munge; ``ports``: of controller, node."""
    user, host = getpass.getuser(), socket.gethostname().partition(".")[0]
    values = {
        "ClusterName": "bench",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmUser": user,
        "SlurmdUser": user,
        "SlurmctldPort": ports[0],
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "AuthInfo": f"socket={folder}/munge.socket",
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": folder / "slurmd.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmdLogFile": folder / "slurmd.log",
        "SlurmctldDebug": "error",
        "SlurmdDebug": "error",
        "SlurmdParameters": "config_overrides",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "AccountingStorageType": "accounting_storage/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "JobCompType": "jobcomp/none",
        "PriorityType": "priority/basic",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "SchedulerType": "sched/builtin",
        "SchedulerParameters": "default_queue_depth=10000,batch_sched_delay=0,sched_interval=2,sched_min_interval=2",
        "PropagateResourceLimits": "NONE",
        "MaxJobCount": 1_000_000,
        "MaxArraySize": 100_001,
        "MinJobAge": 60,
        "KillWait": 2,
        "ReturnToService": 2,
        "MessageTimeout": 100,
    }
    lines = [f"{name}={value}" for name, value in values.items()]
    node = f"NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={SLOTS} RealMemory=20000 State=UNKNOWN"
    return "\n".join([*lines, node, *_QUEUES, ""])


def free_ports(count: int) -> list[int]:
    """TCP ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


_MANY = r"""
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    char *env[] = {"PATH=/usr/bin:/bin", NULL};
    long count = argc > 2 ? atol(argv[2]) : 0;
    slurm_init(NULL);
    for (long at = 0; at < count; at++) {
        char name[32], output[32], script[64];
        job_desc_msg_t job;
        submit_response_msg_t *answer = NULL;
        snprintf(name, sizeof name, "step%ld", at);
        snprintf(output, sizeof output, "step.%ld", at);
        snprintf(script, sizeof script, "#!/bin/sh\n./step %ld\n", at);
        slurm_init_job_desc_msg(&job);
        job.name = name;
        job.partition = argv[1];
        job.script = script;
        job.std_out = output;
        job.work_dir = "/tmp";
        job.user_id = getuid();
        job.group_id = getgid();
        job.environment = env;
        job.env_size = 1;
        if (slurm_submit_batch_job(&job, &answer) != SLURM_SUCCESS) {
            slurm_perror("submit");
            return 1;
        }
        slurm_free_submit_response_response_msg(answer);
    }
    return 0;
}
"""


def build_submitter(folder: Path) -> Path | None:
    """The program: ``submitter PARTITION COUNT``, over Slurm's C library; None where compiler or headers are missing."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not os.path.exists("/usr/include/slurm/slurm.h"):
        return None
    source, program = folder / "submitter.c", folder / "submitter"
    source.write_text("#include <unistd.h>\n" + _MANY)
    done = subprocess.run([compiler, "-O2", "-o", program, source, "-lslurm"], capture_output=True, check=False)
    return program if done.returncode == 0 else None
