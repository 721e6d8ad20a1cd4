"""Real agent, real starter: checkpoints by a site's echkpnt and erestart, which save and restore a job that counts."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import shutil
import signal
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agent.launch.checkpointing.holding import SPARE_SHARE
from lavad.hosts.joblink import credentials
from proto import agent_pb2 as pb
from tests.support.checkpoint_programs import write_job, write_programs
from tests.support.daemons.agent_host import ME, AgentHost, ask_for_checkpoint, running, start_order
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until


@pytest.fixture
def site(master: FakeMaster, tmp_path: Path) -> Iterator[AgentHost]:
    """A host with the site's programs, and a time limit for them of 1 second."""
    with _host(master, tmp_path, "LAVA_CHKPNT_TIMEOUT=1\nLSB_ECHKPNT_KEEP_OUTPUT=y\n") as one:
        yield one


@pytest.fixture
def patient(master: FakeMaster, tmp_path: Path) -> Iterator[AgentHost]:
    """The same without such a limit."""
    with _host(master, tmp_path) as one:
        yield one


@contextlib.contextmanager
def _host(master: FakeMaster, folder: Path, conf: str = "") -> Iterator[AgentHost]:
    write_programs(folder / "methods")
    one = AgentHost(folder, master.address, conf=f"LSB_ECHKPNT_METHOD_DIR={folder}/methods\n{conf}")
    write_job(one.folder / "work")
    with running(one, lambda: master.hellos):
        yield one


class Job:
    """One attempt of the job that counts."""

    def __init__(
        self,
        master: FakeMaster,
        host: AgentHost,
        attempt: int = 1,
        restart: int = -1,
        holders: object = (),
        **text: object,
    ) -> None:
        self.master, self.work, self.asked = master, host.folder / "work", 0
        self.folder = self.work / "ckpt" / "7"
        fields: dict[str, object] = {"checkpoint_folder": "ckpt", "checkpoint_method": "count"} | text
        made = host.text(master, "exec sh count.sh", output="out", **fields)
        self.order = start_order(master, made, attempt=attempt, restart=restart, restart_count=attempt - 1, holders=holders)
        master.order(self.order, texts=(made,))

    def runs(self) -> None:
        self.master.wait_for(self.order.uid, "started")
        before = self.count()
        wait_until(lambda: self.count() > before, 30, "the job counts")

    def count(self) -> int:
        return int((self.work / "count").read_text()) if (self.work / "count").exists() else 0

    def ask(self, kill_after: bool = False) -> pb.Granted:
        """Ask for a checkpoint, and the answer."""
        self.asked += 1
        return ask_for_checkpoint(self.master, self.order, self.asked, kill_after)

    def generations(self) -> list[str]:
        return sorted(one.name for one in self.folder.iterdir() if one.name.startswith("gen-"))


def test_a_sites_programs_write_keep_and_restore(master: FakeMaster, site: AgentHost) -> None:
    job = Job(master, site)
    job.runs()
    for _ in range(3):
        assert job.ask().ok
    assert job.generations() == ["gen-2", "gen-3"], "the two newest are kept"
    told = [one.checkpointed for one in master.of(job.order.uid, "checkpointed")]
    assert [(one.generation, one.method, one.why) for one in told] == [(1, "count", ""), (2, "count", ""), (3, "count", "")]
    manifest = json.loads((job.folder / "gen-3" / "MANIFEST").read_text())
    assert manifest["method"] == "count"
    assert manifest["files"]["state/count"]["size"] == told[-1].size > 0
    assert (job.folder / "echkpnt.out").read_text() == 3 * "writes 7\n"
    job.runs()
    assert job.ask(kill_after=True).ok
    assert master.wait_for(job.order.uid, "ended").ended.status == signal.SIGKILL
    assert "TERM_CHKPNT" in (job.work / "out").read_text()
    at = int((job.folder / "gen-4" / "state" / "count").read_text())
    (job.folder / "gen-5").mkdir()
    (job.folder / "gen-5" / "MANIFEST").write_text('{"files": {"state/count": {"size": 3}}}')
    again = Job(master, site, attempt=2, restart=4)
    again.runs()
    assert again.count() >= at > 0
    assert f"from {at}\n" in (job.work / "out").read_text()
    assert again.ask().ok
    assert "gen-6" in again.generations(), "a number is not used again"


def test_generations_are_staged_beside_the_job_and_before_an_end_after_which_it_moves(
    master: FakeMaster, patient: AgentHost
) -> None:
    """Its own folder is gone then, as with another host's disk; what goes wrong is told once, and costs the job nothing."""
    site, stage = patient, patient.folder / "all"
    stage.mkdir()

    def staged(job: Job) -> list[tuple[int, str]]:
        told = (one.checkpointed for one in master.of(job.order.uid, "checkpointed"))
        return [(one.generation, one.why) for one in told if one.staged and (one.size or one.why)]

    job = Job(master, site, checkpoint_stage=str(stage))
    job.runs()
    assert job.ask().ok
    wait_until(lambda: staged(job) == [(1, "")], 20, "the copy")
    assert job.ask(kill_after=True).ok
    assert master.wait_for(job.order.uid, "ended").ended.status == signal.SIGKILL
    assert staged(job) == [(1, ""), (2, "")], "before its end is told"
    [own] = stage.iterdir()
    assert sorted(one.name for one in (own / "7").iterdir()) == ["gen-1", "gen-2"]
    at = int((job.folder / "gen-2" / "state" / "count").read_text())
    job.folder.rename(site.folder / "lost")
    again = Job(master, site, attempt=2, restart=2, checkpoint_stage=str(stage))
    again.runs()
    assert f"from {at}\n" in (job.work / "out").read_text()
    wait_until(lambda: staged(again) == [(2, "")], 20, "what is there is found to be")
    own.rename(site.folder / "moved")
    assert again.ask().ok
    wait_until(lambda: len(staged(again)) == 2, 20, "why it is not staged")
    assert staged(again)[1] == (3, f"{own}/7: No such file or directory")
    again.runs()
    assert again.generations() == ["gen-2", "gen-3"]
    (site.folder / "moved").rename(own)
    (job.work / "count.sh").write_text(LAST)
    for attempt, generation in ((3, 8), (4, 9)):
        text = {"checkpoint_stage": str(stage), "checkpoint_method": "app", "env": {"N": str(generation)}}
        last = Job(master, site, attempt, 3, **text)
        pid = master.wait_for(last.order.uid, "started").started.pid
        if attempt == 4:
            site.kill()
        (job.work / f"go{generation}").touch()
        wait_until(partial(_is_over, pid), 20, "the job's end")
        if attempt == 4:
            site.start()
        assert master.wait_for(last.order.uid, "ended").ended.status == 3 << 8
        assert staged(last)[-1:] == [(generation, "")], "what it wrote as it ended, before its end is told"


def test_a_generation_is_copied_to_the_host_that_the_master_names_and_brought_from_it(master: FakeMaster, tmp_path: Path) -> None:
    """The agent's own process holds it; with its key, certificate and secret from the master."""
    key, cert = credentials(b"cluster", "h1")
    master.copies = pb.Welcome(copies_key=key, copies_cert=cert, copies_secret=b"s")
    copies = tmp_path / "copies"
    with _host(master, tmp_path, f"LAVA_CHKPNT_COPY_DIR={copies}\nLAVA_CHKPNT_COPY_WAIT=0\n") as host:
        port = master.hellos[-1].facts.copies_port
        token = f"{hmac.digest(b's', f'7-1 {ME}'.encode(), 'sha256').hex()} 7-1 {ME}"
        shown = hashlib.sha256(ssl.PEM_cert_to_DER_cert(cert.decode())).hexdigest()
        holder = pb.Holder(host="h9", address="127.0.0.1", port=port, print=shown, token=token)

        def staged(job: Job) -> list[tuple[int, str, str]]:
            told = (one.checkpointed for one in master.of(job.order.uid, "checkpointed"))
            return [(one.generation, one.holder, one.why) for one in told if one.staged]

        job = Job(master, host, checkpoint_to_hosts=True)
        job.runs()
        assert job.ask().ok
        master.order(pb.Order(key=7, attempt=1, uid=job.order.uid, copy_to=holder))
        wait_until(
            lambda: staged(job) == [(1, "h9", "")],
            20,
            lambda: f"the copy, for which {SPARE_SHARE:.0%} of the disk stays free: {staged(job)}",
        )
        assert [path.name for path in (copies / "h1" / ME / "7-1").iterdir()] == ["gen-1"]
        wrong = pb.Holder(host="h8", address="127.0.0.1", port=1, print=shown, token=token)
        master.order(pb.Order(key=7, attempt=1, uid=job.order.uid, copy_to=wrong))
        wait_until(lambda: staged(job)[1:] == [(1, "h8", "host h8: Connection refused")], 20, "what is wrong with it")
        at = int((job.folder / "gen-1" / "state" / "count").read_text())
        master.order(pb.Order(key=7, attempt=1, uid=job.order.uid, kill=pb.Kill()))
        master.wait_for(job.order.uid, "ended")
        job.folder.rename(host.folder / "lost")
        holders = [pb.Holder(host="h8", address="127.0.0.1", port=1, print=shown, token=token, generations=[2]), holder]
        holder.generations.append(1)
        again = Job(master, host, attempt=2, restart=2, holders=holders, checkpoint_to_hosts=True)
        again.runs()
        assert f"from {at}\n" in (job.work / "out").read_text()
        pid = master.wait_for(again.order.uid, "started").started.pid
        assert b"LAVA_COPIES" not in Path(f"/proc/{pid}/environ").read_bytes(), "its tokens are for what brings copies alone"
        told = master.wait_for(again.order.uid, "checkpointed").checkpointed
        assert (told.generation, told.newest, bool(told.why)) == (2, 1, True), "the newest was with a host that is gone"


def _is_over(pid: int) -> bool:
    return not os.path.exists(f"/proc/{pid}")


LAST = """\
until [ -e go$N ]; do sleep 0.05; done
mkdir -p $LSB_CHKPNT_DIR/gen-$N.tmp
echo '{"files": {}}' > $LSB_CHKPNT_DIR/gen-$N.tmp/MANIFEST
mv $LSB_CHKPNT_DIR/gen-$N.tmp $LSB_CHKPNT_DIR/gen-$N
exit 3
"""
WRONG = {
    "hangs": "echkpnt.count did not end within 1 seconds, and was killed",
    "killed": "echkpnt.count was killed by signal 9",
    "fails": "echkpnt.count ended with exit code 3",
    "lies": "echkpnt.count ended well and wrote no file into {folder}/gen-2.tmp",
    "nonsense": "echkpnt.count wrote a file MANIFEST, which is lava's own",
    "space": "{folder} has ",
    "gone": "{folder}: No such file or directory",
    "missing": "checkpoint method count: {methods}/echkpnt.count is not on this host",
}


def test_whatever_goes_wrong_is_said_and_costs_neither_job_nor_generation(master: FakeMaster, site: AgentHost) -> None:
    job, methods = Job(master, site), site.folder / "methods"
    job.runs()
    assert job.ask().ok
    manifest = job.folder / "gen-1" / "MANIFEST"
    good = manifest.read_text()
    for mode, why in WRONG.items():
        (methods / "echkpnt.count.mode").write_text(mode)
        if mode == "space":
            manifest.write_text(json.dumps({"files": {"state/count": {"size": 1 << 60}}}))
        elif mode == "gone":
            manifest.write_text(good)
            job.folder.rename(site.folder / "elsewhere")
        elif mode == "missing":
            (site.folder / "elsewhere").rename(job.folder)
            (methods / "echkpnt.count").unlink()
        said = job.ask()
        assert not said.ok
        assert said.why.startswith(why.format(folder=job.folder, methods=methods)), mode
        assert master.of(job.order.uid, "checkpointed")[-1].checkpointed.why == said.why
        job.runs()
        if mode != "gone":
            assert job.generations() == ["gen-1"]
    assert "1.2 times generation 1" in [one.granted.why for one in master.of(job.order.uid, "granted")][6]
    assert not master.of(job.order.uid, "ended")


def refused(master: FakeMaster, job: Job) -> str:
    said = master.wait_for(job.order.uid, "refused").refused
    assert said.code == "restart"
    return said.why


def test_a_job_whose_method_cannot_restart_it_does_not_start(master: FakeMaster, site: AgentHost) -> None:
    methods = site.folder / "methods"
    why = refused(master, Job(master, site, checkpoint_method="other"))
    assert why == f"checkpoint method other: {methods}/echkpnt.other is not on this host"
    write_programs(methods, "other")
    (methods / "erestart.other").chmod(0o644)
    why = refused(master, Job(master, site, attempt=2, checkpoint_method="other"))
    assert why == f"checkpoint method other: {methods}/erestart.other cannot be executed"
    environment = {"LSB_ECHKPNT_METHOD": "count", "PATH": os.environ["PATH"]}
    job = Job(master, site, attempt=3, checkpoint_method="auto", env=environment)
    job.runs()
    assert job.ask(kill_after=True).ok
    master.wait_for(job.order.uid, "ended")
    assert master.of(job.order.uid, "checkpointed")[-1].checkpointed.method == "count"
    (methods / "erestart.count.mode").write_text("fails")
    assert refused(master, Job(master, site, attempt=4, restart=1)) == "erestart.count ended with exit code 4"
    shutil.copy(methods / "echkpnt.other", methods / "erestart.other")
    why = refused(master, Job(master, site, attempt=5, restart=1, checkpoint_method="other"))
    assert why == "checkpoint generation 1 was made by method count, not other"
    made = job.folder / "gen-1" / "MANIFEST"
    made.write_text(json.dumps(json.loads(made.read_text()) | {"machine": "vax"}))
    why = refused(master, Job(master, site, attempt=6, restart=1))
    assert why == f"checkpoint generation 1 was made on a host of type vax, not {os.uname().machine}"


def test_what_ends_while_a_checkpoint_is_written(master: FakeMaster, site: AgentHost) -> None:
    """An agent that dies finds the checkpoint again; one that is written for a job that ends is given up."""
    methods, conf = site.folder / "methods", site.folder / "conf" / "lsf.conf"
    conf.write_text(conf.read_text().replace("TIMEOUT=1", "TIMEOUT=100"))

    def another_agent() -> None:
        before = len(master.hellos)
        site.kill()
        site.start()
        wait_until(lambda: len(master.hellos) > before, 30, "the agent")

    another_agent()
    job = Job(master, site)
    job.runs()
    (methods / "echkpnt.count.mode").write_text("waits")
    request = pb.Signal(number=1, kind="checkpoint")
    asked = pb.Order(key=job.order.key, attempt=1, uid=job.order.uid, signal=request)
    master.order(asked)
    wait_until((job.folder / "gen-1.tmp" / "begun").exists, 30, "the program")
    another_agent()
    master.order(asked)
    (methods / "echkpnt.count.go").touch()
    assert master.wait_for(job.order.uid, "granted").granted.ok
    assert [one.checkpointed.generation for one in master.of(job.order.uid, "checkpointed")] == [1]
    assert (job.folder / "echkpnt.out").read_text() == "writes 7\n", "it was run once"
    (methods / "echkpnt.count.go").unlink()
    master.order(pb.Order(key=job.order.key, attempt=1, uid=job.order.uid, signal=pb.Signal(number=2, kind="checkpoint")))
    wait_until((job.folder / "gen-2.tmp" / "begun").exists, 30, "the program")
    master.order(pb.Order(key=job.order.key, attempt=1, uid=job.order.uid, kill=pb.Kill()))
    master.wait_for(job.order.uid, "ended")
    assert "gen-2" not in job.generations()
    wait_until(lambda: not running_programs(methods), 30, "the site's program is ended with the job")


def running_programs(folder: Path) -> list[str]:
    """The processes that run a program of this folder."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [one.parent.name] if f"{folder}/echkpnt".encode() in one.read_bytes() else []
    return found
