"""The environment of a job: what it brings along, what its profile gives, what is lava's."""

from __future__ import annotations

from agent.launch import environ
from agent.launch.site import Site, User
from proto import agent_pb2 as pb

ALICE = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/bash", "staff")
SITE = Site("h1", "/run/lava", "/spool", "/etc/lava", {}, root=True, own_user="root")


def test_variables_of_a_profile_stand_behind_those_of_the_submission_and_before_those_of_the_host() -> None:
    own = {"SHELL": "/bin/dash", "OMPI_MCA_btl": "tcp", "LSB_QUEUE": "mine", "LSB_JOBID": "1", "CUDA_VISIBLE_DEVICES": "7"}
    text = pb.JobText(env={"FRUIT": "pear"}, env_vars={"FRUIT": "apple", "CAR": "civic"} | own, queue="normal")
    env = environ.shared(text, ALICE, SITE)
    assert {name: env.get(name) for name in ("FRUIT", "CAR", *own)} == {
        "FRUIT": "pear",
        "CAR": "civic",
        "SHELL": "/bin/dash",
        "OMPI_MCA_btl": "tcp",
        "LSB_QUEUE": "normal",
        "LSB_JOBID": None,
        "CUDA_VISIBLE_DEVICES": None,
    }
    assert environ.given(text)["FRUIT"] == "pear"


def test_a_users_parameters_of_open_mpi_are_carried_over_but_not_those_of_another_launch() -> None:
    mine = {"OMPI_MCA_btl": "self,tcp", "PRTE_MCA_rmaps_default_mapping_policy": "slot", "PMIX_MCA_gds": "hash"}
    launch = {
        "OMPI_MCA_orte_default_hostfile": "/outer",
        "PRTE_MCA_prte_default_hostfile": "/outer",
        "OMPI_MCA_plm_rsh_agent": "ssh",
        "PRTE_MCA_plm_ssh_agent": "ssh",
        "OMPI_APP_CTX_NUM_PROCS": "4",
        "PMI_RANK": "1",
    }
    assert environ.inherited(mine | launch | {"A": "b"}) == mine | {"A": "b"}
    for name in ("OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMIX_RANK"):
        assert environ.inherited(mine | {name: "1", "A": "b"}) == {"A": "b"}
