"""Gangs on one starter or two: their orders, and the key of the network between two hosts."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons.starters import SHELL_PATH, Rig


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Rig, Rig]]:
    """Starters of two hosts, which must end well."""
    a, b = Rig(tmp_path, "hostA").start(), Rig(tmp_path, "hostB").start()
    yield a, b
    assert a.stop() == 0
    assert b.stop() == 0


def ranks(*numbers: int) -> list[dict[str, Any]]:
    return [{"rank": n, "env": {"MY_RANK": str(n)}} for n in numbers]


def pmi(size: int, mapping: str = "(vector,(0,1,4))", name: str = "lava_c_7_1_x") -> dict[str, Any]:
    return {"kvsname": f"{name}_{os.getpid()}", "size": size, "mapping": mapping}


def certificate(name: str = "gang") -> tuple[str, str]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    cert = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return cert.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


def order_gang(two: tuple[Rig, Rig], argv: list[str] | str, size: int = 4, go: bool = True, **more: Any) -> None:
    """Ranks 0, 1 on the first host and 2, 3 on the second; parts ``r`` and ``l``."""
    a, b = two
    cert, key = certificate()
    half = size // 2
    more = {"pmi": pmi(size, f"(vector,(0,2,{half}))"), "two_phase": True, "env": {"PATH": SHELL_PATH}, **more}
    link = {"cert": cert, "key": key, "nodes": 2, "bind": "127.0.0.1"}
    env = more.pop("env")
    tasks = ranks(*range(size))
    a.order(a.part("r", argv, tasks=tasks[:half], link={**link, "place": 0}, **more, env={**env, "NODE": "A"}))
    b.order(b.part("l", argv, tasks=tasks[half:], link={**link, "place": 1}, **more, env={**env, "NODE": "B"}))
    addr = a.report("r", "prepared")["addr"]
    assert b.report("l", "prepared")["addr"] is None
    if go:
        b.send({"do": "go", "uid": "l", "root": addr})
        a.send({"do": "go", "uid": "r", "root": None})


def python(script: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", script]


def run(rig: Rig, argv: list[str], size: int = 4, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """(END, what the ranks said) of ranks on one host."""
    env = {"PATH": SHELL_PATH, "NODE": "A"}
    end = rig.run("g", argv, **{"tasks": ranks(*range(size)), "pmi": pmi(size), "env": env, **more})
    return end, sorted(rig.text("g").splitlines())


def run_over(two: tuple[Rig, Rig], argv: list[str], **more: Any) -> tuple[dict[str, Any], list[str]]:
    """(END of the first host, what the ranks said) of four ranks on two hosts."""
    order_gang(two, argv, **more)
    end = two[0].end("r", 60)
    two[1].end("l")
    two[0].gone("r")
    two[1].gone("l")
    return end, sorted(two[0].text("r").splitlines())
