"""``python -I -S …/agent/starter/supervisor/go_on.py --host NAME KEYRING FILES STACK``: what a shepherd without Python becomes
when something comes that is for Python (``part/native/program.c``).

Rule: its files, its user and the processes below it stay; what there is to be done is in the file LEFT.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback

if __package__ in (None, ""):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))

WAKE, WOKEN, LEFT = 5, 6, 7
"""Its files behind those that each shepherd has: both ends of the pipe of its signals, and what is left to Python."""


def main(words: list[str]) -> int:
    """Run the shepherd until the starter is gone."""
    from agent.starter.part import native_parts, shepherd
    from agent.starter.supervisor.shepherd_handle import END, SOCK, reset_signals
    from agent.starter.system import apart, kernel, rlimits

    _, host, keyring, files, *stack = words  # an older starter names no stack
    _give_group_back()
    kernel.forbid_tracing()
    if stack:
        rlimits.set_stack(int(stack[0]))
    kernel.find_title()
    kernel.set_name("lava-shepherd")
    reset_signals()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for fd in (SOCK, END, WAKE, WOKEN):
        os.set_inheritable(fd, False)
    signal.set_wakeup_fd(WOKEN, warn_on_full_buffer=False)
    if keyring == "1":
        apart.keyring_is_own()
    rlimits.keep_open_files(int(files))
    with open(LEFT, "rb") as file:
        handed, templates = native_parts.read_handed(file.read())
    native_parts.load()
    one = shepherd.Shepherd(socket.socket(fileno=SOCK), END, host, templates)
    native = native_parts.begin(SOCK, WAKE, END)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    one.go_on(native, handed, WAKE)
    return 0


def _give_group_back() -> None:
    """The group that kept its user's processes from tracing it while Python began (``part/native/program.c``)."""
    group, effective, _ = os.getresgid()
    if effective != group:
        os.setresgid(group, group, group)


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except BaseException:
        from agent.starter.system.stdio import one_line

        sys.stderr.write(f"lava-shepherd {os.getpid()} failed: {one_line(traceback.format_exc())}\n")
        code = 70
    os._exit(code)
