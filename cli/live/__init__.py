"""What shows a cluster or a job at a terminal, live: lava top and lava watch. May import client; standard library only."""
