"""bmod of jobs that run and of single elements, brestart, bmig to hosts, EXCLUDE, and what is remembered of -rn."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.decide.control.checkpoint import checkpoint
from lavad.core.decide.control.control import migrate, requeue
from lavad.core.decide.control.revive import FinishedJobs, find_restart_source
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.job import End, Job
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Checkpoint, Migrate, Modify, OptionValue, Refused, Requeue, Select, Submit
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import JobState
from lavad.core.rules.effects import ChangeLimits, ChangeText, effects_due
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ALICE, BOB, LOCAL, Bench
from tests.unit.lavad.core.decide.modify.test_modify import TEXT, bmod, reset

REFUSED = "non-repetitive job is running"


def running(bench: Bench, all_jobs: bool = True, **options: Any) -> int:
    bench.configure(params=replace(bench.cluster.conf.params, lsb_mod_all_jobs=all_jobs))
    key = int(bench.bsub(**options)["job"])
    bench.step()
    start(bench, key)
    return key


def start(bench: Bench, key: int) -> None:
    run = bench.job(key).run
    assert run is not None
    for part in run.parts:
        bench.hear("prepared", key, run.uid, part.host, "a:1")
    for part in run.parts:
        bench.hear("started", key, run.uid, part.host, 7, bench.now, "/")


def test_limits_change_on_the_hosts_where_lsb_mod_all_jobs_allows_it(bench: Bench) -> None:
    key = running(bench, W="60", M="1000")
    bmod(bench, key, W="120", Mn=True)
    due = [one for one in effects_due(bench.job(key)) if isinstance(one, ChangeLimits)]
    assert [(one.limits.run, one.limits.mem) for one in due] == [(7200, None)]
    assert bench.cluster.spec_of(key).limits.run == 7200


@pytest.mark.parametrize("options", [{"W": "5"}, {"J": "x"}, {"n": "2"}, {"q": "night"}, {"r": True}, {"b": "13:00"}])
def test_without_it_a_running_job_stays_as_it_is(bench: Bench, options: dict[str, Any]) -> None:
    key = running(bench, all_jobs=False)
    with pytest.raises(Refused, match=REFUSED):
        bmod(bench, key, **options)
    with pytest.raises(Refused, match=REFUSED):
        bmod(bench, key, command="other")


@pytest.mark.parametrize("options", [{"n": "2"}, {"q": "night"}, {"r": True}, {"b": "13:00"}, {"m": "h2"}, {"w": "done(1)"}])
def test_some_things_never_change_while_it_runs(bench: Bench, options: dict[str, Any]) -> None:
    key = running(bench)
    with pytest.raises(Refused, match=REFUSED):
        bmod(bench, key, **options)


def test_what_it_reserves_changes_at_once(bench: Bench) -> None:
    key = running(bench, all_jobs=False, R="rusage[mem=10MB]")
    bmod(bench, key, R="rusage[mem=30MB]")
    run = bench.job(key).run
    assert run is not None
    assert run.parts[0].reserved == (("mem", 30.0),)
    assert bench.cluster.use.hosts[run.parts[0].host].reserved == {"mem": 30.0}
    bmod(bench, key, Rn=True)
    assert bench.cluster.use.hosts[run.parts[0].host].reserved == {}
    with pytest.raises(Refused, match="Only the rusage section"):
        bmod(bench, key, R="select[mem>9]")


def test_the_rest_of_its_requirement_stays(bench: Bench) -> None:
    """Where it was placed is no longer asked while it runs, but when it is requeued."""
    key = running(bench, all_jobs=False, R="select[mem>1] order[ut] rusage[mem=10MB] span[hosts=1]")
    bmod(bench, key, R="rusage[mem=30MB:duration=2]")
    assert bench.cluster.spec_of(key).resreq == "select[mem>1] order[ut] rusage[mem=30:duration=2] span[hosts=1]"
    bmod(bench, key, R="select[mem>1] span[hosts=1] rusage[mem=20MB]")
    bmod(bench, key, Rn=True)
    assert bench.cluster.spec_of(key).resreq == "select[mem>1] order[ut] span[hosts=1]"


@pytest.mark.parametrize("section", ["select[mem>9]", "order[mem]", "span[ptile=1]", "same[type]", "affinity[core(1)]"])
def test_no_other_section_changes(bench: Bench, section: str) -> None:
    key = running(bench, all_jobs=False, R="rusage[mem=10MB]")
    with pytest.raises(Refused, match="Only the rusage section"):
        bmod(bench, key, R=f"{section} rusage[mem=10MB]")


def test_gpus_in_rusage_stay(bench: Bench) -> None:
    bench.hosts("h1", gpus=2)
    key = running(bench, all_jobs=False, R="rusage[ngpus_physical=1:mem=10MB]")
    bmod(bench, key, R="rusage[mem=30MB]")
    assert bench.cluster.spec_of(key).resreq == "rusage[mem=30:ngpus_physical=1]"
    bmod(bench, key, Rn=True)
    assert bench.cluster.spec_of(key).resreq == "rusage[ngpus_physical=1]"
    for other in ("rusage[ngpus_physical=2]", "rusage[mem=1||mem=2]"):
        with pytest.raises(Refused, match="The GPUs of a running job cannot be changed"):
            bmod(bench, key, R=other)


def test_name_project_and_rerunnable(bench: Bench) -> None:
    key = running(bench, r=True)
    bmod(bench, key, J="other", P="risk", rn=True)
    assert bench.job(key).name == "other"
    spec = bench.cluster.spec_of(key)
    assert (spec.project, spec.rerunnable) == ("risk", False)


def test_its_history_tells_a_change_as_that_of_a_job_that_waits(bench: Bench) -> None:
    started, waiting = running(bench), int(bench.bsub(n="4000")["job"])
    options: dict[str, OptionValue] = {"J": "other", "N": True, "W": "30", "Pn": True}
    told = []
    for key in (started, waiting):
        decided = modify(
            bench.cluster, Modify(job=str(key), options=options), JobText(command="sleep 1"), ALICE, bench.now, LOCAL
        )
        told += [event.changes for event in decided.events if isinstance(event, ev.JobModified)]
    assert told[0] == told[1]
    assert told[0][:2] == ("Job name changes to : other", "Option -N is set")


def test_one_element_alone_may_differ(bench: Bench) -> None:
    job = int(bench.bsub(J="a[1-5]", W="10")["job"])
    bmod(bench, f"{job}[2]", W="30")
    bmod(bench, f"{job}[3-4]", sp="5") if bench.cluster.conf.params.max_user_priority else None
    limits = {index: bench.cluster.spec_of(key_of(job, index)).limits.run for index in range(1, 6)}
    assert limits == {1: 600, 2: 1800, 3: 600, 4: 600, 5: 600}
    with pytest.raises(Refused, match="are its array's"):
        bmod(bench, f"{job}[2]", o="elsewhere")


def test_rn_is_remembered_in_a_rerunnable_queue(bench: Bench) -> None:
    bench.configure(queues=(QueueConfig(name="normal", priority=30, rerunnable=True),))
    key = int(bench.bsub(rn=True)["job"])
    assert not bench.cluster.spec_of(key).rerunnable
    bmod(bench, key, W="5")
    assert not bench.cluster.spec_of(key).rerunnable
    bmod(bench, key, r=True)
    assert bench.cluster.spec_of(key).rerunnable
    bmod(bench, key, rn=True)
    assert not bench.cluster.spec_of(key).rerunnable


@pytest.mark.parametrize("option", ["P", "J", "q", "ar", "rnc", "wa", "wt", "We", "oo", "eo", "label", "rankfiles"])
def test_every_reset_form_is_taken(bench: Bench, option: str) -> None:
    given: dict[str, Any] = {
        "P": "risk",
        "J": "name",
        "q": "night",
        "ar": True,
        "rnc": "/bin/true",
        "wa": "URG",
        "wt": "5",
        "We": "5",
        "oo": "x",
        "eo": "x",
        "label": True,
        "rankfiles": "x",
    }
    plain = int(bench.bsub()["job"])
    key = int(bench.bsub(**{option: given[option]})["job"])
    bmod(bench, key, **reset(option))
    assert bench.cluster.spec_of(key) == bench.cluster.spec_of(plain)
    assert bench.job(key).name == (bench.job(plain).name if option != "J" else "old")


def test_exclude_keeps_it_away_from_the_host_for_good(bench: Bench) -> None:
    key = running(bench, Q="EXCLUDE(77)")
    run = bench.job(key).run
    assert run is not None
    host = run.parts[0].host
    end = End(status=77 << 8, at=bench.now, started=bench.now - 1)
    bench.hear("ended", key, run.uid, host, end, True)
    assert bench.job(key).barred == (host,)
    for other in ("h1", "h2", "h3"):
        bench.host_switch(other, closed=other != host)
    bench.now += 1000
    assert bench.step() == {}
    bench.host_switch("h1", closed=False)
    bench.host_switch("h2", closed=False)
    [(_, hosts)] = bench.step().items()
    assert host not in hosts


def test_bmig_to_hosts(bench: Bench) -> None:
    key = running(bench, r=True)
    answer = bench.asked(migrate, Migrate(jobs=Select(ids=[str(key)]), hosts=["h3"]))
    assert answer == [(str(key), "")]
    assert bench.cluster.spec_of(key).hosts == ("h3",)
    assert bench.asked(migrate, Migrate(jobs=Select(ids=[str(key)]))) == [(str(key), "Job is being migrated or ended already")]


def test_bchkpnt_p_changes_the_period_for_good(bench: Bench) -> None:
    key = running(bench, k="/ck 10")
    assert bench.asked(checkpoint, Checkpoint(jobs=Select(ids=[str(key)]), period=30)) == [(str(key), "")]
    run = bench.job(key).run
    assert run is not None
    assert run.pending_signals[-1].period == 1800
    kept = bench.cluster.spec_of(key).checkpoint
    assert kept is not None
    assert kept.period == 1800
    bench.asked(requeue, Requeue(jobs=Select(ids=[str(key)])))
    assert bench.job(key).state is JobState.RUN


def test_brestart_takes_what_the_job_was(bench: Bench) -> None:
    bench.configure(params=Params())
    bench.hosts("g1", slots=4, gpus=2)
    old = int(bench.bsub(k="/ck 10", J="sim", W="30", n="2", gpu="num=2:gmem=1G")["job"])
    record, spec = bench.job(old), bench.cluster.spec_of(old)
    text = JobText(command="./sim", output="out", cwd="/home")
    ask = Submit(command="", restart_of=old, restart_from=4, options={"k": "/ck", "W": "60"})
    with pytest.raises(Refused, match="not finished"):
        find_restart_source(bench.cluster, ask, ALICE, FinishedJobs(), text)
    bench.step()
    bench.finish(old)
    finished = FinishedJobs(jobs=[record], specs={record.spec: spec})
    with pytest.raises(Refused, match="permission"):
        find_restart_source(bench.cluster, ask, BOB, finished, text)
    former = find_restart_source(bench.cluster, ask, ALICE, finished, text)
    decided = submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL, source=former))
    new = int(bench.take(decided)["job"])
    again = bench.cluster.spec_of(new)
    assert (again.slots, again.limits.run, bench.job(new).name, bench.job(new).checkpoint) == (2, 3600, "sim", 4)
    assert (again.gpu, again.gpu_own) == (spec.gpu, spec.gpu_own)
    assert again.checkpoint is not None
    assert (again.checkpoint.of, again.checkpoint.period) == (str(old), 600)
    assert decided.texts[0][1].command == "./sim"


def test_brestart_of_an_element_is_an_array_of_its_index(bench: Bench) -> None:
    old = int(bench.bsub(k="/ck", J="sim[2-3]%1")["job"])
    key = key_of(old, 3)
    bench.step()
    bench.finish(key_of(old, 2))
    bench.step()
    spec, array = bench.cluster.spec_of(key), bench.cluster.arrays.rows[old]
    text, options = JobText(command="./sim"), dict[str, OptionValue](k="/ck")
    whole = Submit(command="", restart_of=old, restart_from=4, options=options)
    with pytest.raises(Refused, match=rf"{old}: Job is an array: name one of its elements"):
        find_restart_source(bench.cluster, whole, ALICE, FinishedJobs(), text)
    ask = Submit(command="", restart_of=old, restart_index=3, restart_from=4, options=options)
    with pytest.raises(Refused, match=rf"{old}\[3\]: Job has not finished yet"):
        find_restart_source(bench.cluster, ask, ALICE, FinishedJobs(), text)
    record = bench.job(key)
    bench.finish(key)
    finished = FinishedJobs(jobs=[record], specs={record.spec: spec}, arrays={old: array})
    source = find_restart_source(bench.cluster, ask, ALICE, finished, text)
    new = int(bench.take(submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL, source=source)))["job"])
    bench.step()
    again = bench.job(key_of(new, 3))
    assert (again.name, again.checkpoint) == ("sim[3]", 4)
    checkpoint = bench.cluster.spec_of(again.key).checkpoint
    assert checkpoint is not None
    assert checkpoint.of == f"{old}.3"
    missing = Submit(command="", restart_of=old, restart_index=9, options=options)
    with pytest.raises(Refused, match=rf"{old}\[9\]: No matching job found"):
        find_restart_source(bench.cluster, missing, ALICE, finished, text)


def test_brestart_of_a_job_whose_folder_the_caller_does_not_see(bench: Bench) -> None:
    """What was staged is known; another host has it."""
    old = int(bench.bsub(k="/ck stage=/all")["job"])
    text, ask = JobText(command="./sim"), Submit(command="", restart_of=old, options={"k": "/ck"})
    bench.step()
    bench.start(old)
    for generation in (1, 2, 3):
        bench.said("checkpointed", old, "h1", generation)
    before, spec = bench.job(old), bench.cluster.spec_of(old)
    bench.said("checkpointed", old, "h1", 2, 0.0, 9, "", "", None, True)
    after = bench.job(old)
    bench.finish(old)

    def again(record: Job) -> int:
        source = find_restart_source(bench.cluster, ask, ALICE, FinishedJobs(jobs=[record], specs={record.spec: spec}), text)
        return int(bench.take(submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL, source=source)))["job"])

    with pytest.raises(Refused, match="Checkpoint log is not found or is corrupted"):
        again(before)
    new = again(after)
    assert bench.job(new).checkpoint == 2
    found = bench.cluster.spec_of(new).checkpoint
    assert found is not None
    assert (found.of, found.stage) == (str(old), "/all")


def amended(bench: Bench, key: int) -> dict[str, str]:
    due = [dict(one.values) for one in effects_due(bench.job(key)) if isinstance(one, ChangeText)]
    return due[0] if due else {}


def test_output_files_of_a_running_job_change_where_they_are_delivered_at_its_end(bench: Bench) -> None:
    key = running(bench, o="out")
    assert bmod(bench, key, oo="new").output == "new"
    assert amended(bench, key) == {"output": "new", "output_overwrite": "1"}
    with pytest.raises(Refused, match="an error file cannot be added now"):
        bmod(bench, key, e="err")
    bench.configure(params=replace(bench.cluster.conf.params, lsb_stdout_direct=True))
    with pytest.raises(Refused, match="LSB_STDOUT_DIRECT"):
        bmod(bench, key, o="other")


@pytest.mark.parametrize(
    ("had", "asked", "why"),
    [
        ({"o": "out", "e": "err"}, {"o": "new"}, ""),
        ({"o": "out", "e": "err"}, {"on": True}, ""),
        ({"o": "out", "e": "err"}, {"e": "new"}, ""),
        ({"o": "out", "e": "err"}, {"eo": "new"}, ""),
        ({"e": "err"}, {"o": "new"}, ""),
        ({}, {"oo": "new"}, ""),
        ({"e": "err"}, {"e": "new"}, "it is being written"),
        ({"e": "err"}, {"eo": "new"}, "it is being written"),
        ({"o": "out"}, {"eo": "new"}, "an error file cannot be added now"),
        ({"o": "/dev/null", "e": "err"}, {"o": "new"}, "is thrown away"),
        ({"o": "/dev/null", "e": "err"}, {"eo": "new"}, "is thrown away"),
        ({"o": "out", "I": True}, {"o": "new"}, "of an interactive job that runs"),
    ],
)
def test_what_is_written_where_it_is_while_the_job_runs_stays_there(
    bench: Bench, had: dict[str, Any], asked: dict[str, Any], why: str
) -> None:
    key = running(bench, **had)
    files = replace(TEXT, output=had.get("o", ""), error=had.get("e", ""), interactive="I" if "I" in had else "")
    if why:
        with pytest.raises(Refused, match=why):
            bmod(bench, key, text=files, **asked)
        return
    bmod(bench, key, text=files, **asked)
    assert amended(bench, key)


def test_mail_of_a_running_job(bench: Bench) -> None:
    key = running(bench, all_jobs=False)
    bmod(bench, key, u="bob")
    assert amended(bench, key) == {}, "no mail is sent of it"
    bmod(bench, key, N=True)
    assert amended(bench, key) == {"notify_end": "1", "report_mail": "alice"}


def test_an_estimate_of_a_running_job(bench: Bench) -> None:
    key = running(bench, all_jobs=False, We="10")
    assert bench.cluster.spec_of(key).estimate == 600
    bench.now += 300
    bmod(bench, key, Wep="25")
    assert bench.cluster.spec_of(key).estimate == 1200
    more: dict[str, Any] = {"We+": "5"}
    bmod(bench, key, **more)
    assert bench.cluster.spec_of(key).estimate == 600
    bmod(bench, key, Wen=True)
    assert bench.cluster.spec_of(key).estimate == 0
    with pytest.raises(Refused, match="-Wep: This is for jobs that run"):
        bench.bsub(Wep="50")
