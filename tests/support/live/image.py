"""A root file system for tests: a shell, a few programs, and the libraries that they link to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PROGRAMS = ("sh", "cat", "id", "pwd", "ls", "touch")


def make_image(root: Path) -> Path:
    """Make it, with a file /etc/lava-release that says ``inside``."""
    for name in ("bin", "etc", "lib", "lib64"):
        (root / name).mkdir(parents=True)
    for program in PROGRAMS:
        found = Path(shutil.which(program) or "/bin/sh").resolve()
        shutil.copy(found, root / "bin" / program)
        libraries = subprocess.run(["ldd", str(found)], capture_output=True, text=True, check=False).stdout
        for word in libraries.split():
            if word.startswith("/"):
                (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, root / word[1:])
    (root / "etc" / "lava-release").write_text("inside\n")
    return root
