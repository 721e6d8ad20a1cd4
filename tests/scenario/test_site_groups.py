"""Columns of lsb.hosts, lsb.users and lsb.applications, from the text of the files to what is allowed and decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad.core.decide.control.hosts import switch_hosts
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, Hosts
from lavad.core.site.rights import may_control
from tests.scenario.queue_site import CLUSTER, QueueSite
from tests.support.worlds.site_world import read_site, site_world

GROUPS = (
    "Begin HostGroup\nGROUP_NAME GROUP_MEMBER GROUP_ADMIN\nrack (h1 h2) (ann dev)\nrow (rack h3) ()\nEnd HostGroup\n"
    "Begin ComputeUnit\nNAME MEMBER TYPE ADMINS\ne1 (rack) enclosure (kim)\nEnd ComputeUnit\n"
)
USERS = (
    "Begin UserGroup\nGROUP_NAME GROUP_MEMBER GROUP_ADMIN USER_SHARES\n"
    "dev (bob eve) (kim[full] lee[usershares] max) ([default, 1])\nall_of_us (all) () ()\nEnd UserGroup\n"
    "Begin User\nUSER_NAME MAX_JOBS JL/P MAX_PEND_JOBS\nbob 2 - 3\ndev@ 4 0.5 -\ndev 6 - -\ndefault 5 - -\nEnd User\n"
)
PARAMS = "Begin Parameters\n{}\nEnd Parameters\n"
UNITS = "Begin Parameters\nCOMPUTE_UNIT_TYPES = enclosure!\nEnd Parameters\n"


def caller(user: str) -> Caller:
    return Caller(user=user, uid=1000, host="h1")


def test_who_administers_a_group_of_hosts(tmp_path: Path) -> None:
    world = site_world(tmp_path, lsb__hosts=GROUPS, lsb__users=USERS, lsb__params=UNITS, lsf__cluster__lava=CLUSTER)
    world.hosts("h1", "h2", "h3")

    def may(user: str, host: str) -> bool:
        ask = Hosts(hosts=[host], close=True)
        return bool(switch_hosts(world.cluster, ask, caller(user), world.now).answer["results"][0]["ok"])

    assert [may(user, "h2") for user in ("ann", "bob", "kim", "lee", "boss")] == [True, True, True, False, True]
    assert [may(user, "h3") for user in ("ann", "bob", "kim", "boss")] == [False, False, False, True]


def test_who_administers_a_group_of_users(tmp_path: Path) -> None:
    conf = site_world(tmp_path, lsb__users=USERS).cluster.conf
    may = {user: may_control(conf, Spec("bob", "normal"), caller(user)) for user in ("kim", "max", "lee", "ann")}
    assert may == {"kim": True, "max": True, "lee": False, "ann": False}
    assert not may_control(conf, Spec("ann", "normal"), caller("kim")), "not of the group"


@pytest.mark.parametrize(("strict", "dev", "us"), [("N", "kim max amy", "kim max amy"), ("Y", "kim max", "amy")])
def test_a_job_of_a_group_is_controlled_by_that_groups_administrators(tmp_path: Path, strict: str, dev: str, us: str) -> None:
    users = USERS.replace("all_of_us (all) ()", "all_of_us (all) (amy)")
    conf = site_world(tmp_path, lsb__users=users, lsb__params=PARAMS.format(f"STRICT_UG_CONTROL = {strict}")).cluster.conf

    def who(group: str) -> str:
        spec = Spec("bob", "normal", user_group=group)
        return " ".join(user for user in ("kim", "max", "lee", "amy") if may_control(conf, spec, caller(user)))

    assert (who("dev"), who("all_of_us"), who("")) == (dev, us, "kim max amy")
    assert may_control(conf, Spec("bob", "normal", user_group="all_of_us"), caller("bob"))


LIMITS = (
    "Begin Limit\nNAME = a\nUSERS = dev\nJOBS = 3\nEnd Limit\nBegin Limit\nNAME = b\nUSERS = ops\nJOBS = 2\nEnd Limit\n"
    "Begin Limit\nNAME = c\nUSERS = site\nJOBS = 4\nEnd Limit\n"
    "Begin Limit\nNAME = d\nUSERS = butbob\nJOBS = 1\nEnd Limit\n"
)
OVERLAPPING = (
    "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\ndev (bob)\nops (bob)\nsite (dev)\nany (all)\nstrangers (amy)\n"
    "butbob (all ~bob)\nEnd UserGroup\n"
)


@pytest.mark.parametrize(
    ("enforce", "group", "starts"),
    [
        ("N", "dev", 2),
        ("Y", "dev", 3),
        ("Y", "ops", 2),
        ("Y", "any", 12),
        ("Y", "", 2),
        ("Y", "strangers", 2),
        ("Y", "nosuch", 2),
        ("N", "~ops", 2),
        ("Y", "~ops", 3),
        ("Y", "~ops ~dev", 4),
        ("Y", "~ops ~dev ~site", 12),
    ],
)
def test_limits_of_one_group_alone(tmp_path: Path, enforce: str, group: str, starts: int) -> None:
    params = PARAMS.format(f"ENFORCE_ONE_UG_LIMITS = {enforce}")
    world = site_world(tmp_path, lsb__users=OVERLAPPING, lsb__resources=LIMITS, lsb__params=params)
    world.hosts("h1", "h2", "h3", slots=4)
    for _ in range(12):
        world.submit(user="bob", user_group=group)
    assert len(world.step()) == starts


def test_a_jobs_own_group_is_the_one_of_lsb_users_that_counts(tmp_path: Path) -> None:
    users = f"{OVERLAPPING}Begin User\nUSER_NAME MAX_JOBS\ndev 5\nops 1\nEnd User\n"
    world = site_world(tmp_path, lsb__users=users, lsb__params=PARAMS.format("ENFORCE_ONE_UG_LIMITS = Y"))
    world.hosts("h1", "h2", "h3", slots=4)
    for _ in range(12):
        world.submit(user="bob", user_group="dev")
    assert len(world.step()) == 5


@pytest.mark.parametrize(
    ("line", "started"),
    [("any 5 -", 5), ("any - 0.5", 6), ("butbob 3 -", 7), ("butbob - 0.5", 10), ("dev 2 -", 10), ("wodan 1 -", 9)],
)
def test_a_line_for_a_group_of_everybody_counts_all_of_them(tmp_path: Path, line: str, started: int) -> None:
    """Four jobs each of bob, amy and eve, on three hosts of four processors."""
    groups = OVERLAPPING.replace("strangers", "wodan (amy bob ~bob)\nstrangers")
    users = f"{groups}Begin User\nUSER_NAME MAX_JOBS JL/P\n{line}\nEnd User\n"
    world = site_world(tmp_path, lsb__users=users)
    world.hosts("h1", "h2", "h3", slots=4)
    for at in range(12):
        world.submit(user=("bob", "amy", "eve")[at % 3])
    assert len(world.step()) == started
    assert not world.step()


def test_limits_of_users_and_groups(tmp_path: Path) -> None:
    world = site_world(tmp_path, lsb__users=USERS)
    world.hosts("h1", "h2", "h3", slots=4)
    jobs = [world.submit(user=user) for user in ("bob",) * 3 + ("eve",) * 9 + ("ann",) * 6]
    begun = world.step()
    counts = [sum(1 for key in jobs[first:last] if key in begun) for first, last in ((0, 3), (3, 12), (12, 18))]
    assert counts == [2, 4, 5], "bob's own line, eve's as a member (dev@), ann's as anybody; dev has 6 in all"


def test_slots_thresholds_windows_and_users_of_hosts(tmp_path: Path) -> None:
    hosts = (
        "Begin Host\nHOST_NAME MXJ JL/U r1m   DISPATCH_WINDOW  MIG AFFINITY\n"
        "h1        !   1    3.5/4  ()               5   Y\n"
        "h2        1   ()   ()     (8:00-9:00)      ()  ()\n"
        "default   2   -    -      -                -   -\nEnd Host\n"
    )
    world = site_world(tmp_path, lsb__hosts=hosts, lsf__cluster__lava=CLUSTER)
    world.hosts("h1", "h2", "h3", slots=4)
    keys = [world.submit(user="ann") for _ in range(9)]
    begun = world.step()
    assert sorted(next(iter(begun[key])) for key in keys if key in begun) == ["h1", "h3", "h3"]
    assert world.cluster.host_conf["h1"].mig == 300
    world.submit(user="bob")
    world.load("h1", r1m=3.6)
    world.local = (1, 8 * 3600 + 60)
    assert {next(iter(hosts)) for hosts in world.step().values()} == {"h2"}


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("lsb__hosts", "Begin Host\nHOST_NAME CHKPNT\ndefault C\nEnd Host\n", "lsb.hosts:3: host default: CHKPNT is not needed"),
        ("lsb__users", "Begin User\nUSER_NAME PRIORITY\nann 10\nEnd User\n", "lsb.users:3: user ann: PRIORITY is not supported"),
    ],
)
def test_columns_without_effect_are_named(file: str, text: str, said: str, tmp_path: Path) -> None:
    _, problems = read_site(tmp_path, **{file: text})
    assert [problem[: len(said)] for problem in problems] == [said]


def test_an_application_profile_gives_an_estimate_and_a_way_to_checkpoint(tmp_path: Path) -> None:
    app = (
        "Begin Application\nNAME = sim\nRUNTIME = 1:30\nCHKPNT_DIR = /ckpt\nCHKPNT_PERIOD = 30\nCHKPNT_INITPERIOD = 60\n"
        "CHKPNT_METHOD = app\nMIG = 4\nEnd Application\n"
    )
    site = QueueSite(tmp_path, "", lsb__applications=app)
    assert site.problems == []
    spec = site.spec_of(app="sim")
    checkpoint = spec.checkpoint
    assert checkpoint is not None
    assert (spec.estimate, site.spec_of(app="sim", We="10").estimate) == (5400, 600)
    assert (checkpoint.folder, checkpoint.period, checkpoint.initial, checkpoint.method) == ("/ckpt", 1800, 3600, "app")
    site = QueueSite(tmp_path, "", lsb__applications=app.replace("= app", "= dmtcp"))
    (problem,) = site.problems
    why = "dmtcp: this checkpoint method is not supported by lava: lava starts no program under dmtcp_launch"
    assert problem.endswith(f"application sim: CHKPNT_METHOD: {why}: its jobs are not checkpointed")
    assert site.spec_of(app="sim").checkpoint is None


def test_the_method_of_a_queue_comes_behind_that_of_the_profile_and_of_the_job(tmp_path: Path) -> None:
    app = "Begin Application\nNAME = sim\nCHKPNT_METHOD = ours\nEnd Application\n"
    site = QueueSite(tmp_path, "CHKPNT = /ckpt 30\nCHKPNT_METHOD = theirs", lsb__applications=app)
    assert site.problems == []

    def made(**options: str) -> tuple[str, str]:
        checkpoint = site.spec_of(**options).checkpoint
        assert checkpoint is not None
        return checkpoint.folder, checkpoint.method

    assert made() == ("/ckpt", "theirs")
    assert made(app="sim") == ("/ckpt", "ours")
    assert made(k="/mine") == ("/mine", "theirs")
    assert made(k="/mine", app="sim") == ("/mine", "ours")
    assert made(k="/mine method=app", app="sim") == ("/mine", "app")
    site = QueueSite(tmp_path, "CHKPNT_METHOD = theirs")
    assert site.spec_of().checkpoint is None, "a method alone makes no job checkpointable"
    assert made(k="/mine") == ("/mine", "theirs")
    site = QueueSite(tmp_path, "CHKPNT = /ckpt 30\nCHKPNT_METHOD = dmtcp")
    (problem,) = site.problems
    assert "CHKPNT_METHOD: dmtcp: this checkpoint method is not supported by lava" in problem


GROUP = (
    "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nodd (all ~h2)\nback (h3 h2)\nfront (all ~back)\nlike (h[1-2])\nstar (h*)\n"
    "every (all)\nEnd HostGroup\n"
)


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ("every", ["h1", "h2", "h3"]),
        ("odd", ["h1", "h3"]),
        ("front", ["h1"]),
        ("like", ["h1", "h2"]),
        ("star", ["h1", "h2", "h3"]),
        ("back+1 h1", ["h2", "h3", "h1"]),
        ("all ~front", ["h2", "h3"]),
    ],
)
def test_host_groups_of_all_but_some(hosts: str, expected: list[str], tmp_path: Path) -> None:
    site = QueueSite(tmp_path, f"HOSTS = {hosts}", lsb__hosts=GROUP)
    assert site.problems == []
    keys = [site.bsub() for _ in range(12)]
    site.turn()
    used = dict.fromkeys(next(iter(site.hosts_of(key))) for key in keys if key in site.running())
    assert list(used) == expected
