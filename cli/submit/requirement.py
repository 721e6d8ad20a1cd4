"""BSUB_CHK_RESREQ: bsub says whether the resource requirement reads, and submits nothing.

Rule: who reads it is a program of lavad's, which knows the language.
"""

from __future__ import annotations

import os
import subprocess
import sys

from cli.client.context import Context, Fail

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_CODE = (
    f"import sys; sys.path.insert(0, {_ROOT!r}); from lavad.configure.requirements import why_not; "
    "sys.stdout.write(why_not(sys.argv[1]))"
)


def check(context: Context, texts: object) -> int:
    """0; raises Fail for a requirement that does not read. ``texts``: those of ``-R``."""
    for text in texts if isinstance(texts, list) else []:
        call = [sys.executable, "-I", "-c", _CODE, str(text)]
        try:
            ran = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Fail(f"The resource requirement cannot be checked: {error}") from None
        if ran.stdout:
            raise Fail(ran.stdout)
    context.out("The resource requirement is valid. Nothing is submitted, as BSUB_CHK_RESREQ is set.\n")
    return 0
