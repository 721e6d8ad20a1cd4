"""Many submissions in one ask, against a master on a real socket: bsub -pack and what is shared by its lines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.client import client as client_module
from cli.client import frames
from cli.submit import bulk
from lavad.core.lang import asks, bounds
from tests.unit.cli.caller import Caller, Ran
from tests.unit.cli.scripted_master import Frame, ScriptedMaster


class Taker:
    """Takes every job but those whose command is in ``refuses``, and those of ``later`` once they are asked again."""

    def __init__(self, refuses: tuple[str, ...] = (), later: tuple[str, ...] = ()) -> None:
        self.refuses, self.later = refuses, set(later)
        self.made: list[Frame] = []

    def __call__(self, frame: Frame) -> list[Frame]:
        msgspec.json.decode(msgspec.json.encode(frame), type=asks.any_ask())
        if frame["ask"] == "submit":
            row = self._row(frame)
            return [{"ok": row} if row["ok"] else {"refused": row["why"], "exit": 255}]
        return [{"ok": {"results": [self._row(job) for job in frame["jobs"]]}}]

    def _row(self, job: Frame) -> Frame:
        command = job["command"]
        if command in self.later:
            self.later.remove(command)
            return {"ok": False, "why": "Pending job threshold reached", "exit": 255, "retry": 1}
        if command in self.refuses:
            return {"ok": False, "why": "nosuch: No such queue", "exit": 255}
        self.made.append(job)
        return {"ok": True, "job": len(self.made), "queue": "normal", "default": True}


def pack(caller: Caller, text: str, *plans: Any, **environ: str) -> tuple[Ran, list[Frame]]:
    (caller.folder / "pack").write_text(text)
    with ScriptedMaster(caller.socket, *plans) as master:
        return caller.run("bsub", "-pack", "pack", stdin=b"", **environ), master.asks


def told(*jobs: int) -> str:
    return "".join(f"Job <{job}> is submitted to default queue <normal>.\n" for job in jobs)


def test_a_pack_is_one_ask_and_each_line_is_told_in_its_place(caller: Caller) -> None:
    text = "-q night -J one a\n-q night -J two b x\n-n\nbsub -q night c\n"
    ran, asked = pack(caller, text, Taker(refuses=("b x",)), A="1")
    assert ran.status == 255
    assert ran.out == told(1, 2)
    assert ran.err == (
        "pack: line 2: nosuch: No such queue. Job not submitted.\n"
        "pack: line 3: bsub: option requires an argument -- n\n. Job not submitted.\n"
    )
    [ask] = asked
    assert ask["ask"] == "bulk"
    assert ask["options"] == {"q": "night"}
    assert ask["env"]["A"] == "1"
    assert ask["cwd"] == str(caller.folder)
    assert ask["jobs"] == [
        {"command": "a", "options": {"J": "one"}},
        {"command": "b x", "options": {"J": "two"}},
        {"command": "c"},
    ]


@pytest.mark.parametrize("text", ["", "\n# none\n"])
def test_a_pack_without_a_job_says_so(caller: Caller, text: str) -> None:
    ran, asked = pack(caller, text)
    assert (ran.status, ran.err, asked) == (255, "pack: there is no job in it. Job not submitted.\n", [])


def test_a_pack_takes_no_command(caller: Caller) -> None:
    (caller.folder / "pack").write_text("a\n")
    ran = caller.run("bsub", "-pack", "pack", "sleep", "1", stdin=b"")
    assert (ran.status, ran.out) == (255, "")
    assert ran.err == "bsub: -pack and a command cannot be used together\n. Job not submitted.\n"


def test_the_environment_of_a_job_is_sent_as_what_differs(caller: Caller) -> None:
    _, [ask] = pack(caller, "a\n-env 'all, ~A, B=2, C=3' b\nc\n", Taker(), A="1", B="1")
    assert [job.get("env") for job in ask["jobs"]] == [None, {"A": None, "B": "2", "C": "3"}, None]


def test_a_line_alone_is_a_submission(caller: Caller) -> None:
    ran, asked = pack(caller, "a\n", Taker())
    assert (ran.status, ran.out, [ask["ask"] for ask in asked]) == (0, told(1), ["submit"])


def test_a_script_that_makes_bsub_stay_is_waited_for_in_its_place(caller: Caller) -> None:
    (caller.folder / "lsf.conf").write_text(f"LAVA_RUNDIR={caller.folder}\nLSB_BSUB_PARSE_SCRIPT=Y\n")
    (caller.folder / "s").write_text("#!/bin/sh\n#BSUB -K\nexit 0\n")
    ended = [{"ok": {"state": "DONE", "status": 0}}]
    taker = Taker()
    ran, asked = pack(caller, "a\nb\n./s\nc\nd\n", taker, taker, ended, taker)
    assert (ran.status, ran.out) == (0, told(1, 2, 3, 4, 5))
    assert [ask["ask"] for ask in asked] == ["bulk", "submit", "wait", "bulk"]


def test_help_in_a_line_is_printed(caller: Caller) -> None:
    ran, asked = pack(caller, "a\n-h\n", Taker())
    assert (ran.status, ran.out, len(asked)) == (255, told(1), 1)
    assert "sage: bsub" in ran.err


def test_jobs_for_which_there_is_no_room_yet_are_asked_again_alone(caller: Caller) -> None:
    taker = Taker(refuses=("d",), later=("b", "c"))
    ran, asked = pack(caller, "a\nb\nc\nd\ne\n", taker)
    assert ran.out == told(1, 3, 4, 2)
    assert (
        ran.err == "Pending job threshold reached: 2 jobs wait. Retrying in 1 seconds...\n"
        "pack: line 4: nosuch: No such queue. Job not submitted.\n"
    )
    assert [[job["command"] for job in ask["jobs"]] for ask in asked] == [["a", "b", "c", "d", "e"], ["b", "c"]]


def test_they_are_given_up_after_lsb_ntries(caller: Caller) -> None:
    ran, asked = pack(caller, "a\nb\n", Taker(later=("a",)), LSB_NTRIES="1")
    assert (ran.out, len(asked)) == (told(1), 1)
    assert ran.err == "pack: line 1: Pending job threshold reached. Job not submitted.\n"


def test_what_is_refused_as_a_whole_is_said_of_each(caller: Caller) -> None:
    ran, _ = pack(caller, "a\nb\n", [{"refused": "h1: Host is not a submission host", "exit": 255}])
    assert (ran.status, ran.out) == (255, "")
    said = "h1: Host is not a submission host. Job not submitted.\n"
    assert ran.err == f"pack: line 1: {said}pack: line 2: {said}"


def test_an_answer_of_other_jobs_is_not_believed(caller: Caller) -> None:
    ran, _ = pack(caller, "a\nb\n", [{"ok": {"results": [{"ok": True, "job": 1, "queue": "normal"}]}}])
    assert (ran.status, ran.out) == (255, "")
    assert "does not understand" in ran.err


def test_an_ask_beyond_a_frame_is_sent_in_parts(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LARGEST_ASK", 2000)
    ran, asked = pack(caller, "".join(f"echo {letter * 400}\n" for letter in "abcd") + f"echo {'e' * 4000}\n", Taker())
    assert ran.out == told(1, 2, 3, 4)
    assert ran.err.startswith("pack: line 5: The request is too large: ")
    assert len(asked) > 1


def test_no_ask_has_more_jobs_than_lavad_takes(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bulk.MOST == bounds.MAX_BULK
    monkeypatch.setattr(bulk, "MOST", 2)
    ran, asked = pack(caller, "a\nb\nc\nd\ne\n", Taker())
    assert ran.out == told(1, 2, 3, 4, 5)
    assert [len(ask.get("jobs", "1")) for ask in asked] == [2, 2, 1]


def test_a_pack_that_is_sent_again_keeps_its_uuid(caller: Caller, tmp_path: Path) -> None:
    ran, asked = pack(caller, "a\nb\n", [], Taker())
    assert ran.out == told(1, 2)
    assert asked[0]["uuid"] == asked[1]["uuid"]
    assert (asked[0]["again"], asked[1]["again"]) == (False, True)


def test_a_pack_that_just_fits_into_a_frame_fits_when_it_is_sent_again(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """In halves it would have other uuids, and its jobs could be made twice."""
    _, [ask] = pack(caller, "a\nb\n", Taker())
    caller.socket.unlink()
    monkeypatch.setattr(client_module, "LARGEST_ASK", len(frames.pack(ask)))
    ran, asked = pack(caller, "a\nb\n", [], Taker())
    assert ran.out == told(1, 2)
    assert asked[0]["uuid"] == asked[1]["uuid"]


def test_jobs_that_are_submitted_are_told_where_the_master_goes_away(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LARGEST_ASK", 2000)
    text = "".join(f"echo {letter * 400}\n" for letter in "abcd")
    ran, asked = pack(caller, text, Taker(), [], LSB_NTRIES="1")
    assert 0 < len(asked[0]["jobs"]) < 4
    assert ran == (255, told(*range(1, len(asked[0]["jobs"]) + 1)), "batch system daemon not responding. Job not submitted.\n")


def test_jobs_that_are_submitted_are_told_where_the_wait_for_others_is_interrupted(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    ran, _ = pack(caller, "a\nb\n-n\nc\nd\n", Taker(later=("b", "d")))
    assert (ran.status, ran.out) == (130, told(1, 2))
    assert "Retrying in 1 seconds" in ran.err
    assert "option requires an argument" in ran.err
