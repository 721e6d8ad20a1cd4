"""mpirun.lsf: start a parallel program with the launcher of the MPI library that ``bsub -a`` named, or of the one in PATH.

Rule: the launcher replaces this process; it finds hosts and slots in the job's environment.
"""

from __future__ import annotations

import os
import signal
import sys

USAGE = "Usage: mpirun.lsf [option ...] program [argument ...]"
LAUNCHERS = {
    "openmpi": ("mpirun.openmpi", "orterun", "mpirun", "prterun"),
    "intelmpi": ("mpiexec.hydra", "mpirun", "mpiexec"),
    "mpich": ("mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"),
    "": ("mpirun", "mpiexec", "mpiexec.hydra"),
}
"""The most specific name first: where libraries share a folder, ``mpirun`` may be any one's."""
MARKS = {"openmpi": "ompi_info", "intelmpi": "hydra_bstrap_proxy", "mpich": "hydra_persist"}
"""A file that lies beside this library's launcher and beside no other's."""


def find_launcher(kind: str, path: str) -> str:
    """The library's launcher: in the first folder of PATH that has its mark, else the first of that name; "" if there is none."""
    names = LAUNCHERS.get(kind, LAUNCHERS[""])
    folders = [folder or "." for folder in path.split(":")]
    sure = [folder for folder in folders if kind in MARKS and os.path.exists(os.path.join(folder, MARKS[kind]))]
    for folder, name in [(f, n) for f in sure for n in names] + [(f, n) for n in names for f in folders]:
        program = os.path.join(folder, name)
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return ""


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "-help", "--help"):
        print(USAGE, file=sys.stderr)
        return 0 if words else 255
    if not os.environ.get("LSB_JOBID"):
        print("mpirun.lsf: not inside a job: LSB_JOBID is not set", file=sys.stderr)
        return 255
    kind = os.environ.get("LAVA_MPI", "")
    program = find_launcher(kind, os.environ.get("PATH", os.defpath))
    if not program:
        wanted = " or ".join(LAUNCHERS.get(kind, LAUNCHERS[""]))
        print(f"mpirun.lsf: {wanted}: no such program in PATH on {os.environ.get('LAVA_HOST', 'this host')}", file=sys.stderr)
        return 127
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(program, [os.path.basename(program), *words])
    except OSError as error:
        print(f"mpirun.lsf: {program}: {error.strerror}", file=sys.stderr)
        return 126
