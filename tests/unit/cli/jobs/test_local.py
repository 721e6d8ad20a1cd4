"""What of a manifest depends on the user: secrets."""

from __future__ import annotations

import pytest

from cli.jobs.local import written_secrets
from cli.jobs.model import JobFile, Role


@pytest.mark.parametrize(
    "name",
    ["AWS_SECRET_ACCESS_KEY", "aws_access_key", "HF_TOKEN", "DB_PASSWORD", "API_KEY", "GOOGLE_CREDENTIALS", "MINIO_SECRET"],
)
def test_secrets_that_stand_in_a_file_are_told_of(name: str) -> None:
    role = Role("worker", env={name: "value", "PATH": "/bin"})
    assert written_secrets(JobFile(roles=[role])) == [name]
    assert written_secrets(JobFile(env={name: ""}, roles=[])) == []


@pytest.mark.parametrize(
    "name",
    [
        *("TOKEN_FILE", "AWS_SECRET_KEY_ID", "GOOGLE_CREDENTIALS_PATH", "KEYBOARD", "SORT_KEY", "PATH"),
        *("TOKENIZERS_PARALLELISM", "MAX_TOKENS", "TOKENIZER", "GOOGLE_APPLICATION_CREDENTIALS", "SECRET_NAME", "TOKEN_URL"),
    ],
)
def test_names_that_only_look_like_it(name: str) -> None:
    assert written_secrets(JobFile(env={name: "value"})) == []
