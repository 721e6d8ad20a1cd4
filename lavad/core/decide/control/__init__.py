"""Commands about jobs, queues and hosts that are there: bkill, brequeue, brun, badmin. May import all other rooms of decide."""
