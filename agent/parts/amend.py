"""What bmod has changed of a job that runs here: where its output goes in the end, and who gets mail."""

from __future__ import annotations

import copy

from msgspec.structs import replace

from agent.launch import build
from agent.launch.site import Site
from agent.parts.entry import Entry
from proto import agent_pb2 as pb


def amend(entry: Entry, changed: pb.Amend, site: Site) -> None:
    """Change the text of one attempt. The files that are written now stay: they are delivered elsewhere at the end."""
    if entry.made is None:
        return
    text = pb.JobText()
    text.CopyFrom(entry.made.text)
    for field, value in changed.ListFields():
        setattr(text, field.name, value)
    entry.made = copy.copy(entry.made)
    entry.made.text = text
    new = build.places(text, entry.key, entry.made.user, site)
    if entry.where.kept:
        entry.where = replace(entry.where, output=new.output, error=new.error if entry.where.kept_error else "")
