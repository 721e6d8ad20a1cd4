"""`lava replay`: a cluster's scheduling decisions made again from its history.

Rule: the code that decides is the master's, which commands never import: this process becomes it.
"""

from __future__ import annotations

import os
import sys

_CODE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from lavad.replay.repeat import main; sys.exit(main(sys.argv[1:]))"


def main(argv: list[str]) -> int:
    """Does not return, but for a Python that cannot be started."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    words = list(argv)
    folder = os.environ.get("LAVA_DIR", "")
    if folder and not any(word.split("=")[0] in ("--dir", "--database", "--conf", "--database-file") for word in words):
        words += ["--dir", folder]
    try:
        os.execv(sys.executable, [sys.executable, "-IXutf8", "-c", _CODE, root, *words])
    except (OSError, ValueError) as error:
        print(f"lava replay: {sys.executable}: {error}", file=sys.stderr)
        return 1
