"""The pictures of the page in the docs: ``make pictures`` draws them again, of a real cluster with jobs of all kinds.

python -m tests.browser.pictures [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.browser.chromium import Chromium, find_chromium
from tests.support.live.cluster import VENV, Cluster
from tests.support.wait import wait_until

ROOT = Path(__file__).parents[2]
LARGEST = 150_000
"""Bytes of a picture."""
QUEUE = """
Begin Queue
QUEUE_NAME   = large
PRIORITY     = 50
SLOT_RESERVE = MAX_RESERVE_TIME[100]
DESCRIPTION  = jobs of many slots, which are kept for them as they become free
End Queue
"""
JOBS = (
    # ids go up from 1; all take little of the machine's time, as every host is this one
    f"-q normal -J heat -P climate -W 11 -a mpi -n 8 -R 'span[ptile=4]' -o /dev/null "
    f"{VENV}/python {ROOT}/examples/heat/heat.py --size 96 --steps 2000000 --pause 0.02 plate.f64",
    "-J train -P vision -W 14 -n 2 -gpu num=2 'for i in $(seq 9999); do echo epoch $i of 9999; sleep 1; done'",
    "-J 'align[1-240]%4' -P genome -W 2 -o /dev/null 'sleep $((RANDOM % 9 + 4))'",
    "-q gpu -J tune -P vision -W 7 -n 3 -gpu num=4 sleep 1000",
    "-J render -P film -W 9 -n 6 -R 'span[hosts=1]' sleep 1000",
    "-q large -J assimilate -P climate -W 8 -n 20 sleep 1000",
    "-q gpu -J sweep -P vision -W 6 -gpu num=4 sleep 1000",
    "-J evaluate -P vision -w 'done(2)' true",
    "-J archive -P climate -H true",
)
WAITS = 6
PICTURES = {
    "cluster": ("#/", 830),
    "job": ("#/jobs/1", 1250),
    "why": (f"#/jobs/{WAITS}", 760),
    "chart": ("#/chart?past=900", 560),
}


def main(words: list[str]) -> int:
    """Exit 0."""
    folder = Path(words[0]) if words else ROOT / "docs/pictures"
    program = find_chromium()
    if not program:
        sys.stderr.write("apt-get install chromium, or name one in LAVA_CHROMIUM\n")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as name,
        Cluster(Path(name, "c"), hosts=4, slots=8, options=("--web", "--gpus", "4")) as cluster,
    ):
        with next(cluster.folder.conf.rglob("lsb.queues")).open("a") as file:
            file.write(QUEUE)
        cluster.run("badmin reconfig -f")
        for job in JOBS:
            cluster.submit(job)
        with Chromium(program, Path(name, "profile")) as chromium:
            _draw(chromium, cluster, folder)
        cluster.run("bkill 0")
    return 0


def _draw(chromium: Chromium, cluster: Cluster, folder: Path) -> None:
    chromium.shape(1180, 860)
    chromium.open((cluster.folder.run / "web.url").read_text().strip())
    chromium.go("#/jobs/1")
    # samples enough for curves, and elements of the array that have ended
    chromium.wait("document.querySelectorAll('.uplot').length >= 2")
    wait_until(lambda: len(cluster.run("bjobs -noheader -d -o jobid 3").stdout.split()) >= 12, 180, "elements to end")
    for name, (place, high) in PICTURES.items():
        chromium.shape(1180, high)
        chromium.go(place)
        chromium.settle()
        path = folder / f"{name}.webp"
        chromium.picture(path)
        size = path.stat().st_size
        sys.stdout.write(f"{path}: {size} bytes\n")
        assert size <= LARGEST, f"{path} has more than {LARGEST} bytes"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
