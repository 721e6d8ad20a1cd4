"""What the agent asks these programs for, and what is said when it cannot be."""

from __future__ import annotations


class CheckpointError(Exception):
    """Why there is no checkpoint, or no restart from it: one line."""


class WrongHosts(CheckpointError):
    """The job has other hosts or slots than the generation: each further start would say so, too."""


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
        self.stage = str(fields.get("stage") or "")
        """The job's folder with copies of its generations, which every host sees."""
        self.stamp = str(fields.get("stamp") or "")
        """What tells the job from another one of its number; "": its copies may be another job's, whose work it goes on with."""
        self.generation = int(str(fields.get("generation") or 0))
        """The one to be copied."""
        self.most = int(str(fields.get("most", -1)))
        """The newest generation that the job may go on from; -1: any."""
        self.again = bool(fields.get("again"))
        """The job goes on from a generation, if there is one."""
        holders = fields.get("holders")
        self.holders: list[dict[str, object]] = holders if isinstance(holders, list) else []
        """Without ``stage``: hosts that hold copies, as ``holder.Holder`` reads each."""
        slots = fields.get("slots")
        self.slots: list[int] = slots if isinstance(slots, list) else []
        """Of a job on several hosts whose generations are copied: the slots on each; []: of another job."""
        self.place = int(str(fields.get("place") or 0))
        """Which of these hosts this one is."""
        self.attempt = str(fields.get("attempt") or "")
        """The uid of the job's attempt."""
        self.patience = float(str(fields.get("patience") or 0))
        """Seconds for which one that does not answer is waited for before the job goes on from an older generation."""
