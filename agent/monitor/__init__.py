"""Measuring: processes, usage, load, GPUs and the facts of this host. May import core and starter."""
