"""What runs in HyperQueue's own environment, on its Python API; only that and the standard library are imported here.

python hq_program.py server FOLDER CORES     a server, and a worker of so many cores (0: none), until its input ends
python hq_program.py submit FOLDER TASKS     one job of so many tasks of /bin/true
python hq_program.py client FOLDER           one job, or several, for each line: submit|wait JOBS TASKS PROGRAM [ARGUMENT]...
                                             prints the seconds until they are submitted, or until its wait for them returns
python hq_program.py version
"""

from __future__ import annotations

import os
import sys
import time

from hyperqueue import Client, Job, LocalCluster, get_version
from hyperqueue.cluster import WorkerConfig


def job(tasks: int, words: list[str]) -> Job:
    """Of tasks that are alike."""
    made = Job()
    for _ in range(tasks):
        made.program(words, stdout=None, stderr=None)
    return made


def main(argv: list[str]) -> None:
    """One of the four."""
    what = argv[0]
    if what == "version":
        print(get_version())
    elif what == "submit":
        Client(argv[1]).submit(job(int(argv[2]), ["/bin/true"]))
    elif what == "server":
        cluster = LocalCluster(server_dir=argv[1])
        if int(argv[2]):
            cluster.start_worker(WorkerConfig(cores=int(argv[2])))
        print("ready", flush=True)
        sys.stdin.read()
        os._exit(0)  # its threads do not end by themselves
    else:
        client = Client(argv[1])
        for line in sys.stdin:
            what, jobs, tasks, *words = line.split()
            begin = time.perf_counter()
            submitted = [client.submit(job(int(tasks), words)) for _ in range(int(jobs))]
            if what == "wait":
                client.wait_for_jobs(submitted)
            print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
