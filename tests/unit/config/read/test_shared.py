"""What lsf.shared and lsf.cluster.NAME say that lava does not read."""

from __future__ import annotations

import pytest

from config.read.load import unknown_administrators

ADMINS = "Begin ClusterAdmins\n{} = ann\nEnd ClusterAdmins\n"


@pytest.mark.parametrize(
    ("file", "text", "line", "words"),
    [
        ("lsf__cluster__lava", ADMINS.format("Administrator"), 2, "section ClusterAdmins: unknown parameter Administrator"),
        (
            "lsf__cluster__lava",
            "Begin ResourceMap\nRESOURCENAME LOCATION EXTRA\nlic 4@[all] x\nlic2 4@[all] x\nEnd ResourceMap",
            3,
            "section ResourceMap: unknown parameter EXTRA",
        ),
        ("lsf__shared", "Begin Cluster\nClusterNames\nlava\nEnd Cluster", 3, "section Cluster: unknown parameter ClusterNames"),
        ("lsf__shared", "Begin HostType\nTYPE\nLINUX86\nEnd HostType", 3, "section HostType: unknown parameter TYPE"),
        (
            "lsf__shared",
            "Begin HostModel\nMODELNAME CPUFACTER\nm 2\nEnd HostModel",
            3,
            "section HostModel: unknown parameter CPUFACTER",
        ),
    ],
)
def test_a_column_of_another_name_is_told_once_with_its_line(folder, file: str, text: str, line: int, words: str) -> None:
    found = [(problem.line, problem.text, problem.fatal) for problem in folder(**{file: text}).problems]
    assert [one for one in found if "unknown parameter" in one[1]] == [(line, words, False)]


def test_the_columns_that_lsf_has_are_taken_without_a_word(folder) -> None:
    loaded = folder(
        lsf__cluster__lava=ADMINS.format("Administrators"),
        lsf__shared="Begin Cluster\nClusterName Servers\nlava (h1)\nEnd Cluster\n"
        "Begin HostModel\nMODELNAME CPUFACTOR ARCHITECTURE\nm 2 (x86)\nEnd HostModel\n"
        "Begin HostType\nTYPENAME\nLINUX86\nEnd HostType\n",
    )
    assert loaded.config.admins == ("ann",)
    assert loaded.problems == ()


def test_administrators_whom_the_machine_does_not_know_are_named(folder) -> None:
    users = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nboard (ann)\nEnd UserGroup\n"
    cluster = ADMINS.format("Administrators").replace("ann", "ann board anne")
    config = folder(lsf__cluster__lava=cluster, lsb__users=users).config
    (problem,) = unknown_administrators(config, lambda name: name == "ann")
    assert (problem.text, problem.note) == ("administrator anne is neither a user of this machine nor a user group", True)
    assert problem.file.endswith("/lsf.cluster.lava")
