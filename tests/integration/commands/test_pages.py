"""What the documentation tells to type works, and prints what it says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.live.pages import Step, follow

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["begin/tutorial", "examples", "begin/from-slurm", "begin/from-kubernetes"])
def test_the_commands_of_a_page(page: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    given = {name: value for name, value in os.environ.items() if not name.startswith(("LSF_", "LSB_", "LAVA_", "GRPC_"))}
    follow(ROOT / "docs" / f"{page}.md", ROOT, {**given, "XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path)})


def test_what_a_page_says_is_compared() -> None:
    step = Step("x", ["JOB  STAT", "1    DONE …", "…", "end"])
    assert step.agrees("JOB STAT\n\n1 DONE 22:04\nend\n")
    assert step.agrees("JOB STAT\n1 DONE 22:04\nmore\nand more\nend\n")
    assert not step.agrees("JOB STAT\n1 EXIT 22:04\nend\n")
    assert not step.agrees("JOB STAT\n1 DONE 22:04\nend\nmore\n")
