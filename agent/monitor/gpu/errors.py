"""What is wrong with a GPU that answers."""

from __future__ import annotations

from agent.monitor.gpu.facts import Device
from agent.monitor.gpu.nvml import Library, words
from agent.monitor.gpu.state import ecc_errors


def why_ill(nvml: Library, gpu: Device) -> str:
    """Of a GPU, not of an instance; "" when nothing is wrong."""
    uuid = gpu.fact.uuid
    nvml.forget(uuid)
    nvml.ask(uuid, "nvmlDeviceGetUtilizationRates", gpu.handle)
    nvml.ask(uuid, "nvmlDeviceGetUUID", gpu.handle)
    if code := nvml.error(uuid):
        return words(code)
    if (errors := ecc_errors(nvml, gpu)) > 0:
        return f"{errors} uncorrected ECC errors"
    rows = nvml.ask(uuid, "nvmlDeviceGetRemappedRows", gpu.handle)
    if rows is not None and rows[3]:
        return "row remapping failed"
    return ""
