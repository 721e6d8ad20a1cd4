"""lava_client: jobs and calls as futures, over the local socket and over REST in the same cluster."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent import futures
from pathlib import Path

import pytest

from cli.local import certs
from lava_client import (
    CallLost,
    Executor,
    InitializerFailed,
    JobFailed,
    JobKilled,
    Refused,
    RemoteError,
    Unavailable,
)
from lava_client import Cluster as Client
from tests.support import calls
from tests.support.live.cluster import Cluster
from tests.support.live.webpage import page
from tests.support.wait import SLOW, wait_until

pytestmark = pytest.mark.cluster(hosts=2, slots=16, options=("--web",))
LONG = 60 * SLOW


@pytest.fixture(autouse=True, params=["here", "afar"])
def link(request: pytest.FixtureRequest, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """This process is in the cluster, as a user's is after ``lava env``; or has a token, and a folder that the hosts see too."""
    monkeypatch.setenv("LAVA_CLIENT_DIR", str(tmp_path / "calls"))
    monkeypatch.chdir(tmp_path)
    if request.param == "here":
        for name, value in cluster.environ.items():
            monkeypatch.setenv(name, value)
    else:
        token = tmp_path / "token"
        token.touch(0o600)
        token.write_text(cluster.run("lava token").stdout)
        monkeypatch.delenv("LSF_ENVDIR", raising=False)
        monkeypatch.setenv("LAVA_URL", (cluster.folder.run / "web.address").read_text().strip())
        monkeypatch.setenv("LAVA_TOKEN_FILE", str(token))
    return str(request.param)


def test_jobs_end_as_their_commands_do(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client() as client:
        words = ["sh", "-c", "echo $WHO > $1", "sh", "my; file"]
        good = client.submit(words, env={"WHO": "me"}, cwd=str(tmp_path), name="good")
        bad = client.submit("echo said; exit 3", slots=2, resreq=["select[mem>0]", "span[hosts=1]"])
        array = client.submit("test $LSB_JOBINDEX -lt 3", name="a[1-3]")
        after = client.submit("true", depends=f"done({good.id}) && exit({bad.id},3)")
        held, gone = client.submit_many(["true", "true"], held=True)
        assert futures.wait([good, bad, array, after], LONG).not_done == set()
        assert (good.result(), after.result(), (tmp_path / "my; file").read_text()) == (0, 0, "me\n")
        with pytest.raises(JobFailed, match=f"job {bad.id} ended with exit code 3") as failed:
            bad.result()
        assert (failed.value.code, bad.tail(), bad.state()) == (3, "said\n", "EXIT")
        assert isinstance(array.exception(), JobFailed)
        assert (bad.usage().slots, len(bad.usage().hosts)) == (2, 1)
        assert not held.wait(0.05)
        assert "it is held" in held.why()
        assert held.eta() is None
        assert held.cancel()
        with pytest.raises(JobKilled) as killed:
            held.result(LONG)
        assert (killed.value.code, killed.value.reason, held.cancel()) == (126, "TERM_OWNER", False)
        elements = client.submit("sleep 1000", name="b[1-3]")
        assert elements.cancel()
        with pytest.raises(JobKilled):
            elements.result(LONG)
        cluster.run(f"bkill {gone.id}")
        assert isinstance(asyncio.run(_caught(gone)), futures.CancelledError)
        found = client.job(bad.id)
        assert isinstance(found.exception(LONG), JobFailed)
        with pytest.raises(Refused, match="nosuch: No such queue"):
            client.submit("true", queue="nosuch")
        with pytest.raises(Refused, match="-zz"):
            client.submit("true", zz="1")
        assert f"job {bad.id}" in bad._repr_html_()
    monkeypatch.setenv("LSF_ENVDIR", str(tmp_path))
    (tmp_path / "token").write_text("of.another.cluster")
    with pytest.raises(Unavailable, match=r"no cluster: .*lsf\.conf: No such file|The token is not valid"):
        Client().submit("true")


def test_a_page_with_a_certificate_is_reached_by_its_authority_alone(cluster: Cluster, tmp_path: Path, link: str) -> None:
    if link == "here":
        pytest.skip("the local socket has no certificate")
    for place in ("site", "other"):
        certs.make(tmp_path / place, "c1", ["127.0.0.1"], [])
    conf = f"LAVA_WEB_CERT={tmp_path}/site/master.crt\nLAVA_WEB_KEY={tmp_path}/site/master.key"
    with page(cluster, tmp_path / "conf", conf) as url:
        assert url.startswith("https:")
        with Client(url, token_file=str(tmp_path / "token"), ca_file=str(tmp_path / "site/ca.crt")) as client:
            job = client.submit("echo over TLS")
            assert job.result(LONG) == 0
            assert job.tail() == "over TLS\n"
        for ca_file in ("", str(tmp_path / "other/ca.crt")):
            stranger = Client(url, token_file=str(tmp_path / "token"), ca_file=ca_file)
            with pytest.raises(Unavailable, match="certificate"):
                stranger.submit("true")
            stranger.close()


async def _caught(job: futures.Future[int]) -> BaseException | None:
    try:
        await asyncio.wrap_future(job)
    except JobFailed as error:
        return error
    return None


def test_calls_end_as_functions_do(tmp_path: Path) -> None:
    with Executor(env={"WHO": "me"}, cwd=str(tmp_path), initializer=calls.initialize, initargs=("word",), retries=1) as executor:
        asked = executor.submit(calls.surroundings)
        raises = executor.submit(calls.raise_runtime_error)
        unpicklable, stubborn = executor.submit(calls.raise_unpicklable), executor.submit(calls.raise_stubborn)
        locked, lost = executor.submit(calls.give_a_lock), executor.submit(calls.die, "farewell")
        died, failed = (executor.submit(once, str(tmp_path / once.__name__)) for once in (calls.die_once, calls.fail_once))
        chunks = executor.map(pow, range(20), range(20), chunksize=7, buffersize=2)
        wrong = executor.submit(pow, threading.Lock(), 1)  # type: ignore[arg-type]
        large = executor.submit(calls.reverse, b"ab" * 5_000_000)
        assert asked.result(LONG) == ("me", str(tmp_path), "word")
        with pytest.raises(RuntimeError, match="123") as remote:
            raises.result(LONG)
        assert "raise RuntimeError(123)  # some comment" in str(remote.value.__cause__)
        for future, text in ((unpicklable, "Unpicklable: held"), (stubborn, "Stubborn: one")):
            with pytest.raises(RemoteError, match=text):
                future.result(LONG)
        for unsent in (locked, wrong):
            with pytest.raises(TypeError, match="cannot pickle"):
                unsent.result(LONG)
        with pytest.raises(futures.BrokenExecutor, match="exit code 137: it gave no result; it said: farewell") as broken:
            lost.result(LONG)
        assert isinstance(broken.value, CallLost)
        assert (died.result(LONG), failed.result(LONG)) == ("the second time", "the second time")
        assert list(chunks) == list(map(pow, range(20), range(20)))
        assert large.result(LONG) == b"ba" * 5_000_000
    assert list((tmp_path / "calls").iterdir()) == []
    with Executor(ranks=2) as executor:
        of_ranks: list[object] = [executor.submit(calls.rank_and_size, 5).result(LONG), *executor.map(calls.rank_and_size, [7])]
        assert of_ranks == [[(5, "0", "2"), (5, "1", "2")], [(7, "0", "2"), (7, "1", "2")]]
    with Executor(initializer=calls.initialize, initargs=("bad",)) as executor:
        with pytest.raises(InitializerFailed, match="ValueError: no such word"):
            executor.submit(pow, 2, 2).result(LONG)
        with pytest.raises(futures.BrokenExecutor):
            executor.submit(pow, 2, 2)


def test_calls_are_cancelled_and_executors_shut_down(cluster: Cluster, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    executor = Executor(max_workers=2)
    first, second, *waiting = [executor.submit(calls.wait_for, f"{go}{number}") for number in range(12)]
    wait_until(lambda: first.running() and second.running(), LONG)
    wait_until(Path(f"{go}0.here").exists, LONG)
    assert len(cluster.run("bjobs -noheader").stdout.splitlines()) == 2
    assert first.cancel()
    assert (first.cancelled(), first.cancel()) == (True, True)
    with pytest.raises(futures.CancelledError):
        first.result()
    wait_until(Path(f"{go}2.here").exists, LONG)
    cluster.run(f"bkill {waiting[0].id}")
    assert isinstance(waiting[0].exception(LONG), JobKilled)
    executor.shutdown(wait=False, cancel_futures=True)
    Path(f"{go}1").write_text("end")
    Path(f"{go}3").write_text("end")
    assert second.result(LONG) == "end"
    assert futures.wait(waiting, LONG).not_done == set()
    assert sum(future.cancelled() for future in waiting) >= 8
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(pow, 1, 1)
    with pytest.raises(ValueError):
        Executor(max_workers=0)

    executor = Executor()
    with pytest.raises(futures.TimeoutError):
        next(executor.map(calls.wait_for, [go], timeout=0.05))
    kept, collected = executor.submit(pow, 2, 3), weakref.ref(executor)
    del executor
    gc.collect()
    assert (collected(), kept.result(LONG)) == (None, 8)


def test_futures_outlive_the_master_and_the_page(cluster: Cluster, tmp_path: Path, link: str) -> None:
    go = tmp_path / "go"
    with Client() as client, Executor(cluster=client) as executor:
        before = executor.submit(calls.wait_for, str(go))
        command = client.submit(f"until test -e {go}; do sleep 0.05; done")
        wait_until(Path(f"{go}.here").exists, LONG)
        for name in ("lavad", "web") if link == "afar" else ("lavad",):
            cluster.kill(name)
        go.write_text("it ends")
        between = executor.submit(calls.in_a_job_of_its_own, 7)
        cluster.up()
        assert (before.result(LONG), command.result(LONG), between.result(LONG)) == ("it ends", 0, 49)


SCRIPT = """
import os
from lava_client import CallLost, Executor

def square(number):
    return number * number

if __name__ == "__main__":
    executor = Executor()
    future = executor.submit(square, 2)
    child = os.fork()
    if not child:
        assert future.done() or isinstance(future.exception(), CallLost)
        print(executor.submit(square, 3).result(), flush=True)
        raise SystemExit
    print(future.result(), os.waitpid(child, 0)[1], flush=True)
    for number in (4, 5):
        Executor().submit(square, number).add_done_callback(lambda future: os.write(1, b"%d\\n" % future.result()))
"""


def test_the_interpreter_ends_after_its_calls_and_a_fork_has_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    # Python 3.12 and later warn of any fork beside threads
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "script.py"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG, check=False)
    assert (done.stderr, sorted(done.stdout.split()), done.returncode) == ("", ["0", "16", "25", "4", "9"], 0)


def test_hosts_that_share_no_folder_get_calls_through_lava(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    try:
        # /proc/self is another folder in each process: no other one finds these files
        with Executor(folder=f"/proc/self/fd/{here}", retries=1) as executor:
            assert executor.submit(pow, 5, 2).result(LONG) == 25
            assert list(executor.map(pow, range(3), range(3))) == [1, 1, 4]
            with pytest.raises(RuntimeError, match="123"):
                executor.submit(calls.raise_runtime_error).result(LONG)
            with pytest.raises(Exception, match=r"give Executor\(folder=\) a folder that all hosts share"):
                executor.submit(calls.reverse, bytes(7 << 20)).result(LONG)
    finally:
        os.close(here)
