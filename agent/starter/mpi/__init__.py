"""The ranks of an MPI job: PMI, the key-value space, output, and the network between hosts. May import terminal and below."""
