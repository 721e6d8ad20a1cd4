"""Commands that are the master's own code, which commands never import: this process becomes it."""

from __future__ import annotations

import os
import sys

_WHERE = ("--dir", "--database", "--conf", "--database-file", "--trace", "--history")


def become(name: str, module: str, argv: list[str]) -> int:
    """Run ``main`` of a module of lavad with these words. Does not return, but for a Python that cannot be started.

    The cluster of ``lava env`` is the one that is meant where no other is named.
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path.insert(0, sys.argv.pop(1)); from {module} import main; sys.exit(main(sys.argv[1:]))"
    folder = os.environ.get("LAVA_DIR", "")
    named = any(word.partition("=")[0] in _WHERE for word in argv)
    words = [*argv, "--dir", folder] if folder and not named else argv
    try:
        os.execv(sys.executable, [sys.executable, "-IXutf8", "-c", code, root, *words])
    except (OSError, ValueError) as error:
        print(f"{name}: {sys.executable}: {error}", file=sys.stderr)
        return 1
