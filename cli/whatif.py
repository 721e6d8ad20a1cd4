"""`lava whatif`: a job trace simulated under scheduling policies.

Rule: the simulator is the scheduler's own code, which commands never import: this process becomes it.
"""

from __future__ import annotations

import os
import sys

_CODE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from lavad.replay.main import main; sys.exit(main(sys.argv[1:]))"


def main(argv: list[str]) -> int:
    """Does not return, but for a Python that cannot be started."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        os.execv(sys.executable, [sys.executable, "-IXutf8", "-c", _CODE, root, *argv])
    except (OSError, ValueError) as error:
        print(f"lava whatif: {sys.executable}: {error}", file=sys.stderr)
        return 1
