"""What manifests say of torchrun: how many processes a task starts, and how many tasks there are at least and at most."""

from __future__ import annotations

from cli.jobs.fields import Fields
from cli.jobs.model import JobFile


def read_elastic(elastic: Fields, job: JobFile, least: str = "minReplicas", most: str = "maxReplicas") -> None:
    """elasticPolicy: how many tasks there are at least and at most; the workers are those that may be missing.

    ``least``, ``most``: the names of the two fields.
    """
    worker = next((role for role in job.roles if role.name == "worker"), job.roles[0])
    others = sum(role.count for role in job.roles) - worker.count
    lowest = elastic.number(least, worker.count + others)
    highest = elastic.number(most, max(lowest, worker.count + others))
    if lowest > highest:
        raise elastic.fail(least, f"{lowest} is more than {most}, {highest}")
    worker.least = max(1, lowest - others)
    worker.count = max(worker.least, highest - others)
    job.elastic = worker.least < worker.count
    if elastic.any("metrics"):
        job.ignore("elasticPolicy.metrics (workers are added and taken by the room that there is)")
    job.ignore(*(f"elasticPolicy.{name}" for name in elastic.others()))


def read_processes(where: Fields, name: str, text: str, job: JobFile) -> int:
    """How many processes each task of torchrun starts: auto, gpu, cpu or a number."""
    if text.isdecimal() and len(text) < 6 and int(text):
        return int(text)
    if text not in ("auto", "gpu", "cpu"):
        raise where.fail(name, f"{text[:40]}: it is auto, gpu, cpu or a number")
    gpus = max(role.gpus for role in job.roles)
    slots = max(role.slots for role in job.roles)
    return slots if text == "cpu" else gpus or (slots if text == "auto" else 1)
