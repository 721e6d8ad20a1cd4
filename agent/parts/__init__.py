"""The parts of this host, from order to report: the runner and what it keeps of each.

May import all of agent but main, daemon, devtools and stream.
"""
