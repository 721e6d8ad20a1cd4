"""The files that are read again by themselves: real files, a real egroup and a real store."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from pathlib import Path

import pytest

from config.programs.egroup import Egroup
from config.read.load import load
from lavad.configure.resolve import resolve
from lavad.core.decide.control.office import configure
from lavad.core.lang.asks import Caller, Refused
from lavad.services import reconfiguration
from lavad.services.audit import Audit
from tests.support.wait import wait_until
from tests.unit.lavad.rpc.test_dispatch_fuzz import made

BEFORE, AFTER = (datetime(2026, 11, 27, hour).astimezone().timestamp() for hour in (7, 9))
PARAMS = "Begin Parameters\n#if time(8:00-18:00)\nMBD_SLEEP_TIME = 10\n#endif\nEnd Parameters\n"
USERS = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\neng !\nEnd UserGroup\n"
FAILS = "#!/bin/sh\necho >> {0}/asked\nexit 3\n"


def test_a_window_at_whose_beginning_egroup_fails_is_in_force_once_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reconfiguration, "TIME_PAUSE", 0.01)
    etc, asked, clock = tmp_path / "etc", tmp_path / "asked", [BEFORE]
    etc.mkdir(mode=0o755)
    (tmp_path / "lsf.conf").write_text(f"LSF_SERVERDIR={etc}\n")
    (tmp_path / "lsb.params").write_text(PARAMS)
    (tmp_path / "lsb.users").write_text(USERS)

    def program(text: str) -> None:
        new = etc / "new"
        new.write_text(text)
        new.chmod(0o755)
        new.replace(etc / "egroup")

    async def story() -> None:
        engine, _, store = await made(tmp_path)
        service = reconfiguration.Reconfiguration(
            engine, "host1", str(tmp_path), lambda: clock[0], Audit(lambda _: None, lambda: engine.cluster.conf, lambda: clock[0])
        )
        running = [asyncio.ensure_future(engine.run())]
        program("#!/bin/sh\necho ann\n")
        first = resolve(load(str(tmp_path), egroup_in=Egroup).config)
        await engine.ask(lambda cluster, now: configure(cluster, now, first))
        program(FAILS.format(tmp_path))
        running.append(asyncio.ensure_future(service.run(at_once=False)))
        await asyncio.sleep(0)
        clock[0] = AFTER
        await asyncio.to_thread(wait_until, lambda: asked.exists() and len(asked.read_text()) > 2, 20, "another try")
        assert engine.cluster.conf == first
        program("#!/bin/sh\necho ann bob\n")
        await asyncio.to_thread(wait_until, lambda: engine.cluster.conf != first, 20, "the configuration of the window")
        assert dict(engine.cluster.conf.user_groups)["eng"] == ("ann", "bob")
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        store.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    assert [record.getMessage().count("egroup -u eng ended with 3") for record in caplog.records] == [1], "said once"


def test_files_with_errors_are_said_to_be_those_of_the_masters_host(tmp_path: Path) -> None:
    """badmin has read those of its own host before, under the same path, and found nothing wrong with them."""
    (tmp_path / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = a\nPRIORITY = x\nEnd Queue\n")

    async def story() -> str:
        engine, _, store = await made(tmp_path)
        audit = Audit(lambda _: None, lambda: engine.cluster.conf, lambda: BEFORE)
        service = reconfiguration.Reconfiguration(engine, "host1", str(tmp_path), lambda: BEFORE, audit)
        with pytest.raises(Refused) as refused:
            await service.ask(Caller(user="root", uid=0, host="host2"))
        store.close()
        return refused.value.text

    said = asyncio.run(story())
    assert said.startswith(f"{tmp_path}/lsb.queues:3: error: queue a: PRIORITY")
    assert said.endswith("files of the master's host host1: the old configuration stays")
