"""What is wrong with the simulated GPUs: the JSON file that LAVA_SIM_GPU_FAULTS names, read at each call.

A key is a GPU's index or "driver"; a value is one fault, or several with commas:
lost, ecc (two uncorrected errors), remap (rows wait for a reset), remapfailed, hot (slowed down by heat), xidN (an event;
xid79 is a loss too), twin (the UUID of the GPU before it), nonsense (figures that cannot be).
The driver is "gone", or "hangs": each call waits until the file says otherwise.
"mig" has what LAVA_SIM_GPU_MIG has, in place of that: instances that change while the host runs.
"""

from __future__ import annotations

import json
import os
import re
import time

from agent.monitor.procscan import read_file

_XID = re.compile(r"xid(\d+)")
_LOOK = 0.05


class Faults:
    """Those of one moment."""

    def __init__(self) -> None:
        path = os.environ.get("LAVA_SIM_GPU_FAULTS", "")
        try:
            found = json.loads(read_file(path, 1 << 16) or b"{}") if path else {}
        except ValueError:
            found = {}
        self._found = {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def has(self, index: int, fault: str) -> bool:
        """Whether this GPU has it."""
        return fault in self._words(str(index))

    def lost(self, index: int) -> bool:
        """Whether this GPU answers no more."""
        return self.has(index, "lost") or self.has(index, "xid79")

    def xids(self) -> set[tuple[int, int]]:
        """GPU and number of each Xid error."""
        return {
            (int(key), int(match[1]))
            for key in self._found
            if key.isdigit()
            for word in self._words(key)
            if (match := _XID.fullmatch(word))
        }

    @property
    def gone(self) -> bool:
        """The driver is not there."""
        return self._found.get("driver") == "gone"

    @property
    def hangs(self) -> bool:
        """The driver does not return."""
        return self._found.get("driver") == "hangs"

    @property
    def mig(self) -> str | None:
        """The instances now, None: those of the environment."""
        return self._found.get("mig")

    def _words(self, key: str) -> list[str]:
        return [word.strip() for word in self._found.get(key, "").split(",")]


def now() -> Faults:
    """The faults of this moment; returns only when the driver does not hang."""
    while (faults := Faults()).hangs:
        time.sleep(_LOOK)
    return faults
