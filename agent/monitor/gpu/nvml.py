"""NVML as a library that may go away: opened, asked, and opened again."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

REOPEN_EVERY = 30.0
"""Seconds between tries to open a driver that is not there, went away or lost a GPU."""
NOT_LOADED, NO_LIBRARY, LOST, RESET, OTHER_VERSION = 9, 12, 15, 16, 18
_BROKEN = frozenset({1, NOT_LOADED, LOST, RESET, OTHER_VERSION, 28})
"""UNINITIALIZED, DRIVER_NOT_LOADED, GPU_IS_LOST, RESET_REQUIRED, LIB_RM_VERSION_MISMATCH, GPU_NOT_FOUND."""
_OF_ONE = frozenset({LOST, RESET})
_NVIDIA, _DISPLAY = "0x10de", "0x03"


class Library:
    """NVML, open where it can be. ``nvml`` is the module pynvml."""

    def __init__(self, nvml: ModuleType, clock: Callable[[], float]) -> None:
        self._nvml = nvml
        self._clock = clock
        self._open = False
        self._broken = True
        self._tried = -REOPEN_EVERY
        self._why = 0
        self._errors: dict[str, int] = {}
        self.opened = 0
        """How often it was opened: handles are those of one opening."""

    def ready(self) -> bool:
        """Whether it can be asked; opens it where that is due."""
        if self._broken and self._clock() - self._tried >= REOPEN_EVERY:
            self.close()
            self._start()
        return self._open

    def ask(self, about: str, name: str, *arguments: object) -> Any:
        """The answer of a function about a device ("": about none); None when there is none."""
        try:
            answer = getattr(self._nvml, name)(*arguments)
        except Exception as error:  # pynvml raises more than NVMLError when a driver is older or half gone
            self._note(about, getattr(error, "value", 0))
            return None
        return answer

    def tell(self, about: str, name: str, *arguments: object) -> str:
        """Have a device changed by a function; why that cannot be done, "" when it was."""
        try:
            getattr(self._nvml, name)(*arguments)
        except Exception as error:
            self._note(about, getattr(error, "value", 0))
            return str(error) or type(error).__name__
        return ""

    def error(self, about: str) -> int:
        """The code for which a device was not answered for, since it was last forgotten; 0: none."""
        return self._errors.get(about, 0)

    def forget(self, about: str) -> None:
        """From now on, count only new errors of a device."""
        self._errors.pop(about, None)

    def why_closed(self) -> str:
        """What is wrong with the driver, "" if nothing is, or the host has no GPU for which there should be one."""
        if self._why == NO_LIBRARY:
            count = _count_boards()
            return f"no NVIDIA driver for {count} GPU{'s'[: count > 1]}" if count else ""
        if self._why == NOT_LOADED:
            return "the NVIDIA driver is not loaded"
        if self._why == OTHER_VERSION:
            return "the NVIDIA driver and its library have different versions"
        return "the NVIDIA driver does not answer" if self._why else ""

    def close(self) -> None:
        """Let go of the driver."""
        if self._open:
            self._open = False
            try:
                self._nvml.nvmlShutdown()
            except Exception:
                self._broken = True

    def _start(self) -> None:
        self._tried = self._clock()
        self._errors, self._broken, self._why = {}, False, 0
        try:
            self._nvml.nvmlInit()
        except Exception as error:
            self._broken, self._why = True, getattr(error, "value", 0) or 1
            return
        self._open = True
        self.opened += 1

    def _note(self, about: str, code: object) -> None:
        if isinstance(code, int) and code in _BROKEN:
            self._broken = True
            self._errors[about] = code
            if code not in _OF_ONE:
                self._why = code


def words(code: int) -> str:
    """What a code says of one GPU."""
    return "lost" if code == LOST else "needs a reset" if code == RESET else "the NVIDIA driver does not answer"


def _count_boards(folder: str = "/sys/bus/pci/devices") -> int:
    """NVIDIA's display and 3D controllers on the PCI bus."""
    found = 0
    try:
        names = os.listdir(folder)
    except OSError:
        return 0
    for name in names:
        try:
            with open(f"{folder}/{name}/vendor", encoding="ascii") as file:
                vendor = file.read().strip()
            with open(f"{folder}/{name}/class", encoding="ascii") as file:
                found += vendor == _NVIDIA and file.read().startswith(_DISPLAY)
        except OSError:
            continue
    return found
