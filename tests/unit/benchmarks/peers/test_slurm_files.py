"""A private Slurm's configuration: nothing of it lies where a site's Slurm has its things."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.slurm_files import configuration, free_ports

FOLDER = Path("/tmp/of-its-own")


def test_everything_lies_in_the_folder_and_on_the_ports_given() -> None:
    lines = dict(line.split("=", 1) for line in configuration(FOLDER, [6001, 6002]).splitlines() if line.count("="))
    places = [value.removeprefix("socket=") for value in lines.values() if value.startswith(("/", "socket="))]
    assert len(places) == 7
    assert [place for place in places if not place.startswith(f"{FOLDER}/")] == []
    assert lines["SlurmctldPort"] == "6001"
    assert " Port=6002 " in lines["NodeName"]


def test_free_ports_are_different() -> None:
    assert len(set(free_ports(5))) == 5
