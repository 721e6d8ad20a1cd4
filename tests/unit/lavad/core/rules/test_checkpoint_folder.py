"""A checkpoint folder that one host alone sees is refused at submission; what is not known is believed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.control.control import migrate
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.modify.switch import switch
from lavad.core.decide.submit.restart import RestartSource
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Migrate, Modify, Refused, Select, Submit, Switch
from lavad.core.rules.checkpoint_folder import Seen, found_apart, moves, pair_of
from lavad.core.site.host import Mount
from tests.support.worlds.bench import ALICE, LOCAL, Bench

OWN = (Mount("/"), Mount("/home", True, "nas:/home"))
ALONE = "is on a file system of h1 alone: a restart elsewhere would not find its checkpoints"


def cluster(bench: Bench, *mounts: tuple[Mount, ...], boots: str = "abc") -> Bench:
    for host, own, boot in zip(("h1", "h2", "h3"), mounts or (OWN,) * 3, boots, strict=True):
        facts = bench.cluster.hosts.rows[host].facts
        bench.apply(
            ev.HostJoined(at=bench.now, host=host, facts=replace(facts, mounts=own, boot_id=boot, address=f"{host}.site"))
        )
    return bench


def why_not(bench: Bench, folder: str = "/tmp/x", real: str = "", seen: Seen | None = None, **options: str | bool) -> str:
    """What bsub -k says, "" where the job is taken."""
    ask = Submit(command="x", options={"k": folder, **options}, checkpoint_folder=real or folder, checkpoint_mount="/")
    try:
        bench.take(submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL, seen=seen)))
    except Refused as refused:
        return refused.text
    return ""


def test_a_folder_that_no_other_host_sees(bench: Bench) -> None:
    assert why_not(cluster(bench)) == f"-k: /tmp/x {ALONE}"
    assert why_not(bench, "/home/alice/x") == ""
    assert why_not(bench, "/data", real="/home/data") == ""
    assert why_not(bench, "ckpt", real="/var/ckpt") == f"-k: ckpt {ALONE}"


def test_a_job_that_stays_where_it_is(bench: Bench) -> None:
    assert why_not(cluster(bench), m="h2") == ""
    assert why_not(bench, m="h2 h3").startswith("-k: /tmp/x is on a file system of h2 alone")


def test_hosts_that_are_one_machine(bench: Bench) -> None:
    assert why_not(cluster(bench, boots="aaa")) == ""
    assert not moves(bench.cluster, bench.spec_of(k="/tmp/x"))


def test_hosts_that_do_not_tell(bench: Bench) -> None:
    assert why_not(cluster(bench, (), (), ())) == ""
    assert moves(bench.cluster, bench.spec_of(k="/tmp/x"))
    assert not moves(bench.cluster, bench.spec_of())


@pytest.mark.parametrize("server", ["h1", "h1.site"])
def test_the_host_that_exports_it(bench: Bench, server: str) -> None:
    there = (Mount("/"), Mount("/home", True, f"{server}:/home"))
    assert why_not(cluster(bench, (Mount("/"),), there, there), "/home/x") == ""


def test_a_host_that_has_not_mounted_it(bench: Bench) -> None:
    assert why_not(cluster(bench, OWN, (Mount("/"),), OWN), "/home/x").startswith("-k: /home/x is on a file system of h2 alone")


@pytest.mark.parametrize(("shared", "taken"), [(("all",), True), (("/x", "/tmp/"), True), (("/tmpx", "/t"), False)])
def test_the_sites_word(bench: Bench, shared: tuple[str, ...], taken: bool) -> None:
    cluster(bench)
    params = replace(bench.cluster.conf.params, lava_shared_dirs=shared)
    bench.configure(params=params)
    assert (why_not(bench) == "") is taken


def test_a_folder_of_one_host_is_taken_where_its_generations_are_staged(bench: Bench) -> None:
    cluster(bench)
    assert why_not(bench, "/tmp/x stage=/home/ck") == ""
    assert why_not(bench, "/tmp/x stage=/var/ck") == f"-k: /var/ck {ALONE}"
    assert why_not(bench, "/tmp/x stage") == (
        "-k: stage names no folder (stage=DIR), the cluster has none (LAVA_CHKPNT_STAGE_DIR),"
        " and no host holds copies for others (LAVA_CHKPNT_COPY_DIR)"
    )
    bench.configure(params=replace(bench.cluster.conf.params, lava_chkpnt_stage_dir="/home/all"))
    assert why_not(bench, "/tmp/x stage") == ""
    asked = bench.spec_of(k="/tmp/x 10 stage", n="4", M="100").checkpoint
    assert asked is not None
    assert asked.stage == "/home/all"


@pytest.mark.parametrize("given", ["stage=", "stage=ck", "stage=../x", "stage=~/x"])
def test_where_to_is_said_by_its_whole_path(bench: Bench, given: str) -> None:
    assert why_not(bench, f"/tmp/x {given}") == f"-k: {given}: the folder to stage to is given by its whole path"


def test_it_is_said_once(bench: Bench) -> None:
    assert why_not(bench, "/tmp/x stage=/a stage=/b") == "-k: stage is given twice"


ELSEWHERE = "writes its checkpoints where all of its hosts see them"


def test_a_staged_job_is_on_one_host_or_on_several_alike(bench: Bench) -> None:
    cluster(bench)
    assert "span[hosts=1]" in bench.spec_of(k="/tmp/x stage=/home/ck", n="4").resreq
    assert bench.spec_of(k="/tmp/x stage=/home/ck").resreq == ""
    assert bench.spec_of(k="/tmp/x stage=/home/ck", n="4", R="span[ptile=2]").resreq == "span[ptile=2]"
    needs = (
        "-k: stage: a job on several hosts needs -n SLOTS and span[ptile=SLOTS], as a restart needs the same number on each host"
    )
    assert why_not(bench, "/tmp/x stage=/home/ck", n="2,4", R="span[ptile=2]") == needs
    for free in ("span[hosts=-1]", "span[ptile='!']", "span[block=2]", "2*{mem>1} + 2*{mem>2}"):
        assert why_not(bench, "/tmp/x stage=/home/ck", n="4", R=free) == needs
    itself = "-k: stage: a job on several hosts writes its checkpoints itself (method=app)"
    assert why_not(bench, "/tmp/x method=mine stage=/home/ck", n="4", R="span[ptile=2]") == itself
    resized = f"-k: stage: a job of a size that changes {ELSEWHERE}"
    assert why_not(bench, "/tmp/x stage=/home/ck", n="1,4", ar=True) == resized


ROOT, HOME = "/ -", "/home nas:/home"


def apart(one: str, other: str) -> str:
    return f"-k: /tmp/x is not the same on {one} and {other}: a file that one has is not on the other"


def test_what_was_found_goes_over_what_mounts_say(bench: Bench) -> None:
    cluster(bench)
    same = {pair_of("/", ROOT, ROOT): True}
    assert why_not(bench, seen=same) == ""
    assert moves(bench.cluster, bench.spec_of(k="/tmp/x"))
    spec = next(bench.cluster.specs.rows[job.spec] for job in bench.cluster.jobs.rows.values())
    assert spec.checkpoint is not None
    assert spec.checkpoint.seen
    assert not moves(bench.cluster, spec), "the first host need not look at its mounts again"
    assert why_not(bench, seen={pair_of("/", ROOT, ROOT): False}) == apart("h1", "h2")
    assert why_not(bench, seen={pair_of("/mnt", ROOT, ROOT): False}) == f"-k: /tmp/x {ALONE}", "another file system"
    told = why_not(bench, "/home/x", seen={pair_of("/", HOME, HOME): False})
    assert told.startswith("-k: /home/x is not the same on h1 and h2: "), "each has a server of its own, by one name"
    assert why_not(bench, m="h2", seen={pair_of("/", ROOT, ROOT): False}) == ""


def test_hosts_of_one_machine_with_file_systems_of_their_own(bench: Bench) -> None:
    cluster(bench, boots="aaa")
    assert why_not(bench, seen={pair_of("/", ROOT, ROOT): False}) == apart("h1", "h2")
    bench.configure(params=replace(bench.cluster.conf.params, lava_shared_dirs=("/tmp",)))
    assert why_not(bench, seen={pair_of("/", ROOT, ROOT): False}) == "", "the site's word goes over all of it"


def test_kinds_of_hosts_that_were_found_to_see_the_same(bench: Bench) -> None:
    cluster(bench, OWN, (Mount("/"), Mount("/home", True, "h1:/home")), (Mount("/"), Mount("/home", True, "h1:/home")))
    hosts = [bench.cluster.hosts.rows[name] for name in ("h1", "h2", "h3")]
    other = "/home h1:/home"
    seen = {pair_of("/", HOME, other): True}
    assert found_apart(hosts, "/home/x", "/", seen) is None, "h2 and h3 were not asked both"
    assert found_apart(hosts[:2], "/home/x", "/", seen) == ()
    seen[pair_of("/", other, other)] = True
    assert found_apart(hosts, "/home/x", "/", seen) == ()
    seen[pair_of("/", HOME, other)] = False
    assert found_apart(hosts, "/home/x", "/", seen) == ("h2", "h1")
    assert found_apart(hosts[:1], "/home/x", "/", seen) is None
    assert found_apart([], "/home/x", "/", seen) is None


def test_it_is_said_where_nobody_can_be_asked(bench: Bench) -> None:
    cluster(bench)
    for host in ("h2", "h3"):
        bench.apply(ev.HostDown(at=bench.now, host=host))
    ask = Submit(command="x", options={"k": "/home/x"}, checkpoint_folder="/home/x")
    answer = submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL)).answer
    assert answer["notices"] == ["-k: whether other hosts see /home/x is not known, as only 1 of 3 hosts is up"]


def test_other_hosts_and_another_folder_are_looked_at_again(bench: Bench) -> None:
    cluster(bench)
    assert why_not(bench, seen={pair_of("/", ROOT, ROOT): True}, m="h1 h2") == ""
    [job] = bench.cluster.jobs.rows.values()
    assert not moves(bench.cluster, bench.cluster.spec_of(job.key))
    for options, looks in (({"J": "x"}, False), ({"m": "h2 h3"}, True)):
        bench.take(modify(bench.cluster, Modify(job="1", options={**options}), JobText(command="x"), ALICE, bench.now, LOCAL))
        assert moves(bench.cluster, bench.cluster.spec_of(job.key)) is looks


def test_another_queue_and_a_migration_may_bring_other_hosts(bench: Bench) -> None:
    cluster(bench)
    for job in (1, 2):
        assert why_not(bench, seen={pair_of("/", ROOT, ROOT): True}, m="h1 h2") == ""
        assert not moves(bench.cluster, bench.cluster.spec_of(job))
    bench.step()
    bench.start(2, next(iter(bench.running()[2])))
    assert bench.asked(switch, Switch(jobs=Select(ids=["1"]), queue="night")) == [("1", "")]
    assert bench.asked(migrate, Migrate(jobs=Select(ids=["2"]), hosts=["h2", "h3"])) == [("2", "")]
    assert [moves(bench.cluster, bench.cluster.spec_of(job)) for job in (1, 2)] == [True, True]


def test_a_restart_from_a_folder_elsewhere_is_looked_at(bench: Bench) -> None:
    cluster(bench)
    assert why_not(bench, seen={pair_of("/", ROOT, ROOT): True}) == ""
    [job] = bench.cluster.jobs.rows.values()
    source = RestartSource(bench.cluster.spec_of(job.key), JobText(command="x"), "x")
    ask = Submit(command="", restart_of=1, restart_from=0, options={"k": "/tmp/y"})
    bench.take(submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL, source=source)))
    assert moves(bench.cluster, bench.cluster.spec_of(2))
