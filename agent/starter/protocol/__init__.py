"""What the agent, the starter and its shepherds say to each other, as typed records. Imports nothing of lava.

    agent ── orders ──► starter ── orders ──► shepherd
    agent ◄── reports ── starter ◄── reports ── shepherd

`orders` has what is asked for, `reports` what is told, `part` the description of what is started, `codec` turns records
into JSON objects and back. A frame (wire/frames.py) is one object; its kind stands under "do" in an order and "is" in a report.

A starter outlives its agent, so an agent may meet a starter of another version: a key that is not known is ignored, one
that is missing has its default, a report or an order of an unknown kind is passed over. Both say their ``version`` first;
the agent sends an older starter what that one reads.
Shepherds are forks of the starter that they talk to, always of its version.

Times: ``at`` and ``started`` are seconds since the epoch, ``deadline`` seconds of CLOCK_BOOTTIME, ``starttime`` clock ticks
since boot (field 22 of /proc/PID/stat). ``status`` is a wait status, as waitpid gives it. Memory is in KB unless a name
says otherwise.
"""
