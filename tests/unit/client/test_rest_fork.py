"""A fork of a process that reads a stream over REST: the child asks for itself, and the parent reads on."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

from tests.support.wait import SLOW
from tests.unit.client.test_rest import news

LONG = int(20 * SLOW)
SCRIPT = """
import os, signal, sys, threading, time
from lava_client.rest import RestLink
from lava_client.service import Service, Token

def read():
    print(link.changes("c.1", 30.0)["after"], flush=True)

link = RestLink(Service("127.0.0.1", int(sys.argv[1]), "", None, Token("a.b.c")))
reader = threading.Thread(target=read)
reader.start()
while link._stream is None or sys._current_frames()[reader.ident].f_code.co_name != "readinto":
    time.sleep(0.001)
child = os.fork()
if not child:
    signal.alarm(int(sys.argv[2]))
    link.forget()
    os._exit(link.slots())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
sys.stdin.readline()
reader.join()
link.close()
"""


def _begun(listening: socket.socket, answer: bytes) -> socket.socket:
    """The next connection, whose request has this answer."""
    connection, _ = listening.accept()
    connection.settimeout(2 * LONG)
    while b"\r\n\r\n" not in connection.recv(65536):
        pass
    connection.sendall(answer)
    return connection


def test_a_child_that_is_forked_while_a_stream_is_read_asks_for_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(2 * LONG)
        words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT, str(listening.getsockname()[1]), str(LONG)]
        script = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with script, _begun(listening, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") as stream:
            answering = threading.Thread(
                target=lambda: _begun(listening, b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"slots":8}').close()
            )
            answering.start()
            assert script.stdout is not None
            assert script.stdin is not None
            assert script.stdout.readline() == "8\n"
            data = news("c.2")
            stream.sendall(b"%x\r\n%b\r\n" % (len(data), data))
            assert script.stdout.readline() == "c.2\n"
            script.stdin.close()
            answering.join()
        assert script.returncode == 0
