"""Reading /proc/PID/stat."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from agent.monitor.procscan import PAGE_KB, list_pids, parse_stat, read_proc, read_procs

REST = b" S 7 8 9 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 5 0 4242 1000000 300 18446744073709551615 1 1 0 0"


@given(st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_any_name_is_read(name: bytes):
    proc = parse_stat(42, b"42 (" + name + b")" + REST)
    assert proc is not None
    assert (proc.pid, proc.state, proc.ppid, proc.pgrp, proc.session) == (42, "S", 7, 8, 9)
    assert (proc.own, proc.reaped, proc.threads, proc.start, proc.rss) == (23, 27, 5, 4242, 300 * PAGE_KB)
    assert not proc.kernel


@given(st.binary(max_size=200))
def test_a_text_cut_short_is_no_process(data: bytes):
    assert parse_stat(1, data.replace(b" ", b"")) is None


def test_kernel_threads_are_known():
    data = b"3 (kworker/0:0)" + REST.replace(b"4194304", str(0x4208060 | 0x200000).encode())
    proc = parse_stat(3, data)
    assert proc is not None
    assert proc.kernel


def test_own_process_is_read_and_a_missing_one_is_not():
    own = read_proc(os.getpid())
    assert own is not None
    assert own.ppid == os.getppid()
    assert own.pgrp == os.getpgrp()
    assert own.rss > 1000
    assert os.getpid() in list_pids()
    assert list(read_procs([os.getpid(), 1 << 30])) == [os.getpid()]
