"""Commands of ``lava`` whose standard output is closed, full or read no further: one line, and no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.local.folder import ROOT


@pytest.mark.parametrize("words", ["explain TERM_OWNER", "completion bash", "db --help"])
@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [
        (">&-", 0, ""),
        ("> /dev/full", 255, "output: No space left on device\n"),
        ("2>&- | head -0", 0, ""),
        ("<&- > /dev/null", 0, ""),
    ],
)
def test_output_that_goes_nowhere(words: str, redirection: str, status: int, said: str) -> None:
    line = f"{sys.executable} -m cli.lava {words} {redirection}"
    done = subprocess.run(["/bin/bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (status, said)
