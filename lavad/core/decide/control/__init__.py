"""Commands about existing jobs, queues and hosts: bkill, brequeue, brun, badmin. May import all other rooms of decide."""
