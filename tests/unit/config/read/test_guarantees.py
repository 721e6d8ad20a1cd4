"""lsb.serviceclasses and GuaranteedResourcePool sections: what they say, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.model.guarantees import Amount, Loan
from config.model.problems import report
from config.read.load import Loaded, load

CLUSTER = "Begin Host\nHOSTNAME model type server\nh1 ! ! 1\nh2 ! ! 1\nEnd Host\n"
SHARED = "Begin Cluster\nClusterName\nlab\nEnd Cluster\n"
CLASSES = """
Begin ServiceClass
NAME = gold
GOALS = [GUARANTEE]
ACCESS_CONTROL = QUEUES[normal] USERS[ann physicists] PROJECTS[p1] APPS[fluent] FAIRSHARE_GROUPS[g1]
AUTO_ATTACH = y
DESCRIPTION = those who paid
End ServiceClass
Begin ServiceClass
NAME = silver
GOALS = guarantee
End ServiceClass
"""


def loaded(folder: Path, pool: str = "", classes: str = CLASSES) -> Loaded:
    (folder / "lsf.cluster.lab").write_text(CLUSTER)
    (folder / "lsf.shared").write_text(SHARED)
    (folder / "lsb.serviceclasses").write_text(classes)
    if pool:
        (folder / "lsb.resources").write_text(f"Begin GuaranteedResourcePool\n{pool}\nEnd GuaranteedResourcePool\n")
    return load(str(folder))


def test_a_service_class_and_whom_it_lets_in(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert not found.problems
    gold, silver = found.config.service_classes
    assert (gold.queues, gold.users, gold.projects, gold.apps, gold.fairshare_groups) == (
        ("normal",), ("ann", "physicists"), ("p1",), ("fluent",), ("g1",),
    )  # fmt: skip
    assert (gold.auto_attach, gold.description) == (True, "those who paid")
    assert (silver.auto_attach, silver.queues) == (False, ())


def test_a_pool_and_its_loans(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "NAME = pool\nTYPE = slots\nHOSTS = h1\nRES_SELECT = mem>100\nSLOTS_PER_HOST = 2\n"
        "DISTRIBUTION = ([gold, 4] [silver, 25%])\n"
        "LOAN_POLICIES = QUEUES[all] DURATION[10] RETAIN[20%] CLOSE_ON_DEMAND\nDESCRIPTION = racks",
    )
    assert not found.problems, report(found.problems)
    [pool] = found.config.pools
    assert (pool.type, pool.hosts, pool.res_select, pool.slots_per_host) == ("slots", ("h1",), "mem>100", 2)
    assert pool.distribution == (("gold", Amount(4)), ("silver", Amount(25, True)))
    assert pool.loan == Loan(("all",), 600, Amount(20, True), True)
    assert str(pool.loan) == "QUEUES[all] DURATION[10] RETAIN[20%] CLOSE_ON_DEMAND"
    assert pool.type_text == "slots"


@pytest.mark.parametrize(
    ("text", "slots", "mem", "shown"),
    [
        ("package[slots=4:mem=1000]", 4, 1000.0, "package[slots=4:mem=1000]"),
        ("package[mem=2GB]", 0, 2048.0, "package[mem=2048]"),
        ("Package[slots=1]", 1, 0.0, "package[slots=1]"),
        ("HOSTS", 1, 0.0, "hosts"),
    ],
)
def test_what_a_pool_is_counted_in(tmp_path: Path, text: str, slots: int, mem: float, shown: str) -> None:
    found = loaded(tmp_path, f"NAME = pool\nTYPE = {text}\nDISTRIBUTION = [gold, 1]")
    assert not found.problems, report(found.problems)
    [pool] = found.config.pools
    assert (pool.slots, pool.mem, pool.type_text) == (slots, mem, shown)


@pytest.mark.parametrize(
    ("pool", "words", "fatal"),
    [
        ("NAME = p\nTYPE = cores\nDISTRIBUTION = [gold, 1]", "is none of slots, hosts, package", True),
        ("NAME = p\nTYPE = package[gpus=1]\nDISTRIBUTION = [gold, 1]", "'gpus=1' is none of slots=number, mem=amount", True),
        ("NAME = p\nTYPE = package[slots=0]\nDISTRIBUTION = [gold, 1]", "is not between 1", True),
        ("NAME = p\nTYPE = resource[lic]\nDISTRIBUTION = [gold, 1]", "is none of slots, hosts, package", True),
        ("NAME = p\nDISTRIBUTION = [gold, 1]", "has no TYPE", True),
        ("NAME = p\nTYPE = slots", "has no DISTRIBUTION", True),
        ("TYPE = slots\nDISTRIBUTION = [gold, 1]", "has no NAME", True),
        ("NAME = p\nTYPE = slots\nDISTRIBUTION = gold 1", "is not [service_class, amount]", True),
        ("NAME = p\nTYPE = slots\nDISTRIBUTION = [gold, x]", "'x' is no amount", True),
        ("NAME = p\nTYPE = slots\nDISTRIBUTION = [gold, 1] [gold, 2]", "gold stands twice", True),
        ("NAME = p\nTYPE = slots\nDISTRIBUTION = [iron, 1]", "no service class iron", True),
        ("NAME = p\nTYPE = slots\nHOSTS = h9\nDISTRIBUTION = [gold, 1]", "unknown host or host group h9", True),
        ("NAME = p\nTYPE = slots\nDISTRIBUTION = [gold, 80%] [silver, 40%]", "more than 100% is guaranteed", False),
        ("NAME = p\nTYPE = hosts\nSLOTS_PER_HOST = 2\nDISTRIBUTION = [gold, 1]", "SLOTS_PER_HOST is for pools of slots", False),
        ("NAME = p\nTYPE = slots\nDISTRIBUTION = [gold, 1]\nLOAN_POLICIES = DURATION[5]", "QUEUES[…] does not say", True),
        ("NAME = p\nTYPE = slots\nDISTRIBUTION = [gold, 1]\nLOAN_POLICIES = QUEUES[x]", "no queue x", True),
        (
            "NAME = p\nTYPE = slots\nDISTRIBUTION = [gold, 1]\nLOAN_POLICIES = QUEUES[all] DURATION[a]",
            "not a number of minutes",
            True,
        ),
        (
            "NAME = p\nTYPE = slots\nDISTRIBUTION = [gold, 1]\nLOAN_POLICIES = QUEUES[all] IDLE_BUFFER[5]",
            "is none of QUEUES",
            True,
        ),
        ("NAME = p\nTYPE = slots\nDISTRIBUTION = [gold, 1]\nPRICE = 5", "unknown parameter PRICE", False),
    ],
)
def test_what_is_wrong_with_a_pool_is_told(tmp_path: Path, pool: str, words: str, fatal: bool) -> None:
    problem = loaded(tmp_path, pool).problems[0]
    assert words in problem.text
    assert problem.fatal is fatal
    assert problem.file.endswith("lsb.resources")


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ("NAME = a\nGOALS = [SPEED 4]", "is none of [GUARANTEE]"),
        ("NAME = a", "has no GOALS"),
        ("GOALS = [GUARANTEE]", "has no NAME"),
        ("NAME = a\nGOALS = [GUARANTEE]\nACCESS_CONTROL = QUEUES[]", "QUEUES[] names nothing"),
        ("NAME = a\nGOALS = [GUARANTEE]\nACCESS_CONTROL = MOODS[x]", "is none of QUEUES"),
        ("NAME = a\nGOALS = [GUARANTEE]\nACCESS_CONTROL = QUEUES[nowhere]", "no queue nowhere"),
        ("NAME = a b\nGOALS = [GUARANTEE]", "holds characters that a name cannot have"),
    ],
)
def test_what_is_wrong_with_a_service_class_is_told(tmp_path: Path, classes: str, words: str) -> None:
    [problem] = loaded(tmp_path, classes=f"Begin ServiceClass\n{classes}\nEnd ServiceClass\n").problems
    assert words in problem.text
    assert problem.fatal


def test_of_two_of_one_name_the_first_holds(tmp_path: Path) -> None:
    found = loaded(tmp_path, classes=CLASSES + CLASSES)
    assert [problem.text for problem in found.problems] == [
        f"service class {name} is defined twice; the first one holds" for name in ("gold", "silver")
    ]
    assert len(found.config.service_classes) == 2
