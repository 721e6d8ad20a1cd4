"""What the processes of lava's daemons have in common: who calls them, their logs, threads, memory and precedence."""
