"""What the process that writes lsb.events says, as badmin showstatus has it."""

from __future__ import annotations

import socket
import subprocess
import threading

from lavad.services.event_log import EventLog
from tests.support.wait import wait_until


def test_what_keeps_it_from_writing_is_a_notice_until_it_writes() -> None:
    log, (ours, theirs) = EventLog(None), socket.socketpair()
    follower = threading.Thread(target=log.follow, args=(ours, subprocess.Popen(["true"])))
    follower.start()
    why = "lsb.events in /shared is not written: No space left on device"
    for line, told in (("", []), (why, [why]), ("", [])):
        theirs.sendall(f"{line}\n".encode())
        wait_until(lambda told=told: log.notices() == told, 10)  # type: ignore[misc]
    theirs.close()
    follower.join()
    ours.close()
