"""Asking whether a submission would be taken, put to the master's own Dispatch over a real store."""

from __future__ import annotations

from pathlib import Path

from tests.unit.lavad.rpc.test_submissions import Master, serve


def test_whether_a_job_would_be_taken(tmp_path: Path) -> None:
    """The same answer as to its submission, without a number, and nothing is made."""

    async def work(master: Master) -> None:
        for _ in range(2):
            would = await master.ask(ask="submit", command="a", options={"J": "x[1-3]"}, check=True)
            assert would == {"ok": {"queue": "normal", "default": True, "notices": []}}
        for options in ({"q": "nosuch"}, {"W": "x"}, {"w": "done(7)"}, {"R": "select["}):
            refused = await master.ask(ask="submit", command="a", options=options)
            assert "refused" in refused
            assert await master.ask(ask="submit", command="a", options=options, check=True) == refused
        assert (master.commits, len(master.engine.cluster.jobs.rows)) == ([], 0)
        assert (await master.ask(ask="submit", command="a"))["ok"]["job"] == 1

    serve(tmp_path, work)
