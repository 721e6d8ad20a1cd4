"""Every rank greets rank 0, which prints the greetings in the order of the ranks.

bsub -a mpi -n 4 -o out.%J python greeting.py
"""

from mpi4py import MPI

comm = MPI.COMM_WORLD
greeting = f"Greetings from process {comm.rank} of {comm.size}!"
if comm.rank == 0:
    print(greeting)
    for source in range(1, comm.size):
        print(comm.recv(source=source))
else:
    comm.send(greeting, dest=0)
