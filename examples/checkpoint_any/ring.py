"""An MPI program that knows nothing of checkpoints: ``ring.py RESULT STEPS [PAUSE]``, for ranks of one host.

Every step each rank passes a number to its neighbour and all add theirs up; every tenth a large block goes round, too.
"""

import hashlib
import sys
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
if len(sys.argv) < 3:
    sys.exit("usage: ring.py RESULT STEPS [PAUSE]")
result, steps = sys.argv[1], int(sys.argv[2])
pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
number = comm.rank + 1
total = hashlib.sha256()
file = open(result if comm.rank == 0 else "/dev/null", "w", encoding="ascii")  # noqa: SIM115
for step in range(1, steps + 1):
    number = (31 * number + comm.allreduce(number)) % 1_000_003
    number = (number + comm.sendrecv(number, dest=right, source=left)) % 1_000_003
    if step % 10 == 0:
        block = comm.sendrecv(bytes([number % 256]) * (1 << 20), dest=right, source=left)
        total.update(block)
    total.update(str(comm.allgather(number)).encode())
    if comm.rank == 0:
        print("step", step, total.hexdigest()[:16], file=file, flush=True)
    time.sleep(pause)
digests = comm.gather(total.hexdigest())
if digests is not None:
    print("sum", *digests, file=file)
file.close()
