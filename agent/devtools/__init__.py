"""For clusters on one machine, to try and to test lava: GPUs that are not there. May import monitor."""
