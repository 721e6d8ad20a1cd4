"""What is written into a user's files when a job has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.starter.part.user_files import write
from agent.starter.protocol.orders import Deliver
from agent.starter.protocol.part import User


@pytest.fixture
def kept(tmp_path: Path) -> Deliver:
    """The order to deliver the output and the errors that are kept of a job, each over what its file has."""
    for name in ("1.out", "1.err"):
        (tmp_path / name).write_text(f"{name}\n")
    for name in ("out", "err"):
        (tmp_path / name).write_text("old\n")
    out, err = str(tmp_path / "1.out"), str(tmp_path / "1.err")
    path, error = str(tmp_path / "out"), str(tmp_path / "err")
    user = User("me", 1, 1, ())
    return Deliver(
        "u", user, path, out, "report\n", "after\n", 0o22, truncate=True, from_error=err, error=error, error_truncate=True
    )


def test_output_and_errors_are_delivered_each_to_its_file(kept: Deliver, tmp_path: Path) -> None:
    assert write(kept).error == ""
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"out": "report\n1.out\nafter\n", "err": "1.err\n"}


@pytest.mark.parametrize("name", ["out", "./out", "link"])
def test_errors_that_go_to_the_file_of_the_output_leave_it_there(kept: Deliver, tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("out")
    assert write(kept._replace(error=f"{tmp_path}/{name}")).error == ""
    assert (tmp_path / "out").read_text() == "report\n1.out\nafter\n1.err\n"


def test_errors_for_which_there_is_no_file_yet(kept: Deliver, tmp_path: Path) -> None:
    (tmp_path / "err").unlink()
    assert write(kept).error == ""
    assert (tmp_path / "err").read_text() == "1.err\n"
