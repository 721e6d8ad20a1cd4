"""Which tasks of a manifest run, and which only hold their slots for what a launcher starts there."""

from __future__ import annotations

import pytest

from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")


def read(text: str) -> JobFile:
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


VOLCANO_MPI = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: lm-mpi-job}
spec:
  minAvailable: 3
  plugins: {ssh: [], svc: []}
  tasks:
  - replicas: 1
    name: mpimaster
    template: {spec: {containers: [{command: [/bin/sh, -c, MASTER]}]}}
  - replicas: 2
    name: mpiworker
    template: {spec: {containers: [{command: WORKER}]}}
"""
HOLDS = (
    "[/usr/sbin/sshd, -De, -f, /home/mpiuser/.sshd_config]",
    '[/bin/sh, -c, "mkdir -p /var/run/sshd; /usr/sbin/sshd -D;"]',
    '[bash, -c, "mkdir -p /run/sshd && exec /usr/sbin/sshd -D"]',
    '[bash, -c, "/usr/sbin/sshd & sleep infinity"]',
    '[bash, -c, "/usr/sbin/sshd -D > /tmp/log 2>&1"]',
    '[bash, -lc, "/usr/sbin/sshd -D &> /tmp/log || exit 1"]',
    '[bash, -c, "sudo -E /usr/sbin/sshd -D 2>&1 | tee /tmp/log"]',
    '[sh, -c, "if [ ! -e /run/sshd ]; then mkdir /run/sshd; fi; (LOG=1 /usr/sbin/sshd) && exec sleep infinity"]',
    "[dumb-init, --, /usr/sbin/sshd, -D]",
)


@pytest.mark.parametrize("worker", HOLDS)
def test_who_goes_on_after_its_sshd_runs_and_who_does_not_holds_slots(worker: str) -> None:
    """The MPI example of Volcano's documentation starts an sshd in its master, too, and mpiexec after it."""
    script = "mkdir -p /var/run/sshd; /usr/sbin/sshd; mpiexec --host `cat /etc/volcano/mpiworker.host` -np 2 hello"
    job = read(VOLCANO_MPI.replace("MASTER", f"'{script}'").replace("WORKER", worker))
    master, held = job.roles
    assert (master.kind, held.kind, held.command) == ("launcher", "hold", "")
    assert script in master.command


def test_a_command_that_only_names_the_folder_of_sshd_is_run() -> None:
    job = read(VOLCANO_MPI.replace("MASTER", "mpiexec").replace("WORKER", '[sh, -c, "mkdir -p /var/run/sshd; ./serve"]'))
    assert [(role.kind, "./serve" in role.command) for role in job.roles] == [("", False), ("", True)]
