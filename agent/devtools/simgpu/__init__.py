"""A simulated libnvidia-ml, for hosts without GPUs: the library alone, so that the real pynvml runs on top of it.

Rule: functions have the names, arguments and return codes of the C functions, and fill the structures pointed to.
What the host has, says the environment of the daemon (``models``); what is wrong with it, a file that is read at each call
(``faults``); what runs on it, the environment of processes (``uses``). May import monitor.
"""

from agent.devtools.simgpu.driver import sim_uuid
from agent.devtools.simgpu.library import SimulatedDriver, install, uninstall
from agent.devtools.simgpu.models import MODELS

__all__ = ["MODELS", "SimulatedDriver", "install", "sim_uuid", "uninstall"]
