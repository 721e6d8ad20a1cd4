"""What the agent asks these programs for, and what is said when it cannot be."""

from __future__ import annotations


class CheckpointError(Exception):
    """Why there is no checkpoint, or no restart from it: one line."""


class Asked:
    """The job's checkpoints as the agent describes them. Times in seconds."""

    def __init__(self, fields: dict[str, object]) -> None:
        self.folder = str(fields["folder"])
        """The job's own checkpoint folder."""
        self.method = str(fields["method"])
        self.where = str(fields.get("where") or "")
        """The folder of the site's programs."""
        self.criu = str(fields.get("criu") or "")
        """The program of method ``criu``."""
        self.timeout = float(str(fields.get("timeout") or 600))
        self.keep_output = bool(fields.get("keep_output"))
        self.kept = max(1, int(str(fields.get("kept") or 2)))
        self.group = int(str(fields.get("group") or 0))
        """The job's process on this host, which leads its process group."""
        self.kill = bool(fields.get("kill"))
        """The job ends with this checkpoint."""
        self.network = bool(fields.get("network"))
        """The job is in a network of its own (MPI with method ``criu``)."""
        self.again = bool(fields.get("again"))
        """The job goes on from a generation, if there is one."""
