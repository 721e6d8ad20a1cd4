"""The GPUs of this host, through NVML: what they are, how they are, what is wrong with them, and who uses them.

Rule: no call raises. A host without a driver is a normal host, a driver without some function gives the rest, a GPU that is
lost stays listed, and a driver that went away is opened again. Figures that cannot be are not known (``figures``).
NVML may block on broken hardware: all of it is called in one thread of ``watch``, for which nobody waits long.
"""
