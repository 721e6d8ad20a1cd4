"""Users of the system's databases: as Python's ``pwd`` has them, but a database that fails is told from no such user."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from typing import Any

import pytest

from proto import names
from proto.names import NoAnswer, find_name, find_user


def test_users_are_those_of_the_system() -> None:
    for entry in pwd.getpwall():
        found = find_user(entry.pw_name)
        assert found is not None
        assert found == (entry.pw_name, found.uid, found.gid, entry.pw_dir, entry.pw_shell)
        assert (found.uid, found.gid) == (entry.pw_uid, entry.pw_gid)
    assert find_name(os.getuid()) == pwd.getpwuid(os.getuid()).pw_name


def test_none_is_one_whom_the_system_does_not_have() -> None:
    assert find_user("no-such-user") is None
    assert find_user("a\0b") is None
    assert find_name(4_000_000_000) is None


class Failing:
    """The C library where a database fails with this error."""

    def __init__(self, error: int) -> None:
        self.getpwnam_r: Callable[..., int] = lambda *_: error
        self.getpwuid_r: Callable[..., int] = lambda *_: error


@pytest.mark.parametrize("error", [2, 5, 11, 110, 111])
def test_a_database_that_fails_is_no_proof(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_libc", Failing(error))
    with pytest.raises(NoAnswer, match=os.strerror(error)):
        find_user("alice")
    with pytest.raises(NoAnswer):
        find_name(1000)


def test_a_long_entry_gets_the_room_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Long(Failing):
        def __init__(self) -> None:
            super().__init__(0)
            self.getpwnam_r = self.find

        def find(self, name: Any, row: Any, buffer: Any, size: Any, found: Any) -> int:
            if size.value < 50_000:
                return 34
            row._obj.name = b"alice"
            found._obj.contents = row._obj
            return 0

    monkeypatch.setattr(names, "_libc", Long())
    user = find_user("alice")
    assert user is not None
    assert user.name == "alice"
