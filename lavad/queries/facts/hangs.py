"""Ranks that seem to hang, in words."""

from __future__ import annotations

from lavad.core.job.job import Suspect


def words(suspect: Suspect, now: float) -> str:
    """One sentence about a rank."""
    seconds = f"{max(0.0, now - suspect.since):.0f} seconds"
    who = f"Rank <{suspect.rank}> on host <{suspect.host}> (process <{suspect.pid}>)"
    where = f"; it waits in <{suspect.waits}>" if suspect.waits and suspect.how != "stopped" else ""
    match suspect.how:
        case "stopped":
            return f"{who} is stopped, for {seconds}"
        case "idle":
            return f"{who} seems to hang: no CPU used for {seconds}, while the other ranks are busy{where}"
        case "behind":
            return f"{who} is behind: it is busy, and the other ranks have waited for {seconds}"
        case "odd":
            return f"{who} seems to hang: no rank has used CPU for {seconds}, and it waits for something else{where}"
    return f"No rank has used CPU for {seconds}: the job seems to hang; rank <{suspect.rank}>, host <{suspect.host}>{where}"
