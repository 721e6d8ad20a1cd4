"""mpirun.lsf: start a parallel program by the MPI library that ``bsub -a`` named, or by the one that PATH has.

Rule: the library's own launcher replaces this process; hosts and slots it finds in the job's environment.
"""

from __future__ import annotations

import os
import signal
import sys

USAGE = "Usage: mpirun.lsf [option ...] program [argument ...]"
LAUNCHERS = {
    "openmpi": ("mpirun", "orterun", "prterun"),
    "intelmpi": ("mpiexec.hydra", "mpirun", "mpiexec"),
    "mpich": ("mpiexec.hydra", "mpiexec", "mpirun"),
    "": ("mpirun", "mpiexec", "mpiexec.hydra"),
}


def find_launcher(kind: str, path: str) -> str:
    """The library's launcher along PATH, "" if there is none."""
    for name in LAUNCHERS.get(kind, LAUNCHERS[""]):
        for folder in path.split(":"):
            program = os.path.join(folder or ".", name)
            if os.path.isfile(program) and os.access(program, os.X_OK):
                return program
    return ""


def main(argv: list[str] | None = None) -> int:
    """The program."""
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
