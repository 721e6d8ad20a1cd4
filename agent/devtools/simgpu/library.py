"""The library: the C functions of the simulated driver by name, and how pynvml comes to use it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agent.devtools.simgpu import events, facts, measures
from agent.devtools.simgpu.codes import WORDS
from agent.devtools.simgpu.driver import DriverState


class SimulatedDriver(DriverState):
    """``count`` GPUs of a host, as a library object: ``getattr`` gives the C functions."""

    def __init__(self, count: int, host: str) -> None:
        super().__init__(count, host)
        self._functions: dict[str, Callable[..., int | bytes]] = {}

    def __getattr__(self, name: str) -> Callable[..., int | bytes]:
        # ctypes' functions take attributes (restype), bound methods do not
        function = self.__dict__["_functions"].get(name)
        if function is None:
            method = _FUNCTIONS.get(name)
            if method is None:
                raise AttributeError(name)
            function = self._functions[name] = partial(method, self)
        return function  # type: ignore[no-any-return]


def install(driver: SimulatedDriver) -> None:
    """Make pynvml use this driver in place of libnvidia-ml.so.1."""
    import pynvml

    with pynvml.libLoadLock:
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml.nvmlLib = driver


def uninstall() -> None:
    """Let pynvml look for the real library again."""
    import pynvml

    with pynvml.libLoadLock:
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml.nvmlLib = None


def _error_string(_: DriverState, code: int) -> bytes:
    return WORDS.get(code, b"Unknown Error")


_FUNCTIONS: dict[str, Callable[..., int | bytes]] = {
    "nvmlInit_v2": DriverState.start,
    "nvmlInitWithFlags": lambda driver, _: driver.start(),
    "nvmlShutdown": DriverState.stop,
    "nvmlErrorString": _error_string,
    "nvmlEventSetCreate": events.create,
    "nvmlEventSetFree": events.free,
    "nvmlDeviceRegisterEvents": events.register,
    "nvmlEventSetWait_v2": events.wait,
    **facts.FUNCTIONS,
    **measures.FUNCTIONS,
}
