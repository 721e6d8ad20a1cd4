"""The token of a job is what HKDF and HMAC of their libraries make it, so that every release makes the same."""

from __future__ import annotations

import hmac

import pytest

from lavad.hosts.joblink import _derive, token


@pytest.mark.parametrize("secret", [b"s" * 32, bytes(range(32)), b"\xff" * 64])
@pytest.mark.parametrize("uid", ["u", "abcdefabcdef1f", "u" * 200])
def test_a_token_is_made_by_two_hmacs(secret: bytes, uid: str) -> None:
    assert token(secret, uid) == hmac.digest(_derive(secret, uid, b"token "), uid.encode(), "sha256").hex()
