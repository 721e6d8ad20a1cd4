"""Device files that the processes of a cgroup may not open: other jobs' GPUs.

Version 1 has a controller, whose rules are lines of text; version 2 a program for the kernel's BPF machine, which is asked at
each open and mknod (linux/bpf.h: BPF_PROG_TYPE_CGROUP_DEVICE).

Rule: what no rule names is open as before; a group below another one has the rules of both.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence

from agent.starter.protocol.part import DeviceRule

_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280}.get(platform.machine(), 0)
_PROG_LOAD, _PROG_ATTACH, _PROG_DETACH = 5, 8, 9
_TYPE_CGROUP_DEVICE = 15
_ATTACH_DEVICE, _ALLOW_MULTI = 6, 2
_CHARACTER = 2
_ATTR_BYTES = 128

# struct bpf_insn, and of struct bpf_cgroup_dev_ctx: the low half of access_type is the kind of device
_INSN = struct.Struct("=BBhi")
_LOAD_WORD, _AND, _MOVE, _EXIT = 0x61, 0x57, 0xB7, 0x95
_IF_EQUAL, _IF_AT_LEAST, _IF_NOT_EQUAL = 0x15, 0x35, 0x55
_TYPE_AT, _MAJOR_AT, _MINOR_AT = 0, 4, 8
_CTX, _TYPE, _MAJOR, _MINOR = 1, 2, 3, 4

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def lines(rules: Sequence[DeviceRule]) -> list[str]:
    """The rules for ``devices.deny`` of version 1, where nothing can be allowed again: one line for each file that is not."""
    return [f"c {rule.major}:{minor} rwm" for rule in rules for minor in range(rule.below) if minor not in rule.minors]


def program(rules: Sequence[DeviceRule]) -> bytes:
    """The instructions that give 0, no, for what a rule denies, and 1 for the rest."""
    body = [
        _INSN.pack(_LOAD_WORD, _CTX << 4 | _TYPE, _TYPE_AT, 0),
        _INSN.pack(_AND, _TYPE, 0, 0xFFFF),
        _INSN.pack(_LOAD_WORD, _CTX << 4 | _MAJOR, _MAJOR_AT, 0),
        _INSN.pack(_LOAD_WORD, _CTX << 4 | _MINOR, _MINOR_AT, 0),
    ]
    sizes = [len(rule.minors) + 4 for rule in rules]
    yes = len(body) + 1 + sum(sizes)

    def to_yes(code: int, register: int, value: int) -> bytes:
        return _INSN.pack(code, register, yes - len(body) - 1, value)

    body.append(to_yes(_IF_NOT_EQUAL, _TYPE, _CHARACTER))
    for rule, size in zip(rules, sizes, strict=True):
        body.append(_INSN.pack(_IF_NOT_EQUAL, _MAJOR, size - 1, rule.major))
        body.append(to_yes(_IF_AT_LEAST, _MINOR, rule.below))
        for minor in rule.minors:
            body.append(to_yes(_IF_EQUAL, _MINOR, minor))
        body += [_INSN.pack(_MOVE, 0, 0, 0), _INSN.pack(_EXIT, 0, 0, 0)]
    return b"".join([*body, _INSN.pack(_MOVE, 0, 0, 1), _INSN.pack(_EXIT, 0, 0, 0)])


def can_attach() -> bool:
    """Whether the kernel takes such a program from this process."""
    try:
        os.close(_load(program([DeviceRule(1, (), 1)])))
    except OSError:
        return False
    return True


def attach(group: str, rules: Sequence[DeviceRule]) -> int:
    """Put the rules on a group of version 2, until they are detached or it goes: the program's descriptor, to be closed.

    OSError where that cannot be.
    """
    loaded = _load(program(rules))
    try:
        _on_group(_PROG_ATTACH, group, loaded)
    except OSError:
        os.close(loaded)
        raise
    return loaded


def detach(group: str, loaded: int) -> None:
    """Take the rules of an ``attach`` from a group; OSError where that cannot be."""
    _on_group(_PROG_DETACH, group, loaded)


def _on_group(command: int, group: str, loaded: int) -> None:
    folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flags = _ALLOW_MULTI if command == _PROG_ATTACH else 0
        _bpf(command, struct.pack("=IIII", folder, loaded, _ATTACH_DEVICE, flags))
    finally:
        os.close(folder)


def _load(code: bytes) -> int:
    text, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    count = len(code) // _INSN.size
    attr = struct.pack("=IIQQ", _TYPE_CGROUP_DEVICE, count, ctypes.addressof(text), ctypes.addressof(licence))
    return _bpf(_PROG_LOAD, attr)


def _bpf(command: int, attr: bytes) -> int:
    if not _BPF:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    buffer = ctypes.create_string_buffer(attr, _ATTR_BYTES)
    found: int = _syscall(ctypes.c_long(_BPF), ctypes.c_long(command), buffer, ctypes.c_long(_ATTR_BYTES))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found
