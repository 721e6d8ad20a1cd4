"""The users of a host while its directory is away: who was known is known on, and nobody is denied for it."""

from __future__ import annotations

import asyncio
import os
import pwd
import threading
from collections.abc import Iterator

import pytest

from agent.launch.accounts import Accounts, look_up
from agent.launch.site import User
from proto.names import NoAnswer

ANN = User("ann", 1000, 1000, (1000,), "/home/ann", "/bin/sh", "staff")
ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_user_of_this_system_is_found_with_groups() -> None:
    user = look_up(ME)
    assert user is not None
    assert (user.uid, user.groups) == (os.getuid(), tuple(os.getgrouplist(ME, user.gid)))
    assert look_up("no-such-user") is None


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_a_known_user_outlasts_an_outage_and_another_is_not_denied(how: str, hang: threading.Event) -> None:
    def away(name: str) -> User | None:
        if how == "hangs":
            hang.wait()
        raise NoAnswer("Connection refused")

    async def story() -> None:
        known = Accounts(wait=0.05, find=away)
        known.learn(ANN)
        assert known.find_known("ann") is None
        assert await known.find("ann") == ANN
        with pytest.raises(NoAnswer):
            await known.find("bob")

    asyncio.run(story())


def test_one_whom_the_directory_denies_is_forgotten() -> None:
    async def story() -> None:
        known = Accounts(find=lambda name: None)
        known.keep(ANN)
        assert await known.find("ann") is None
        assert known.find_known("ann") is None

    asyncio.run(story())


def test_a_name_that_hangs_leaves_threads_for_others(hang: threading.Event) -> None:
    def find(name: str) -> User | None:
        if name != "ann":
            hang.wait()
        return ANN

    async def story() -> None:
        known = Accounts(wait=20, find=find)
        stuck = [asyncio.create_task(known.find("bob")) for _ in range(20)]
        await asyncio.sleep(0)
        assert await known.find("ann") == ANN
        hang.set()
        assert await asyncio.gather(*stuck) == [ANN] * 20

    asyncio.run(story())
