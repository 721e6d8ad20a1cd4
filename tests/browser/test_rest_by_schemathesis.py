"""REST by schemathesis: of many requests none gets an internal error, or an answer that OpenAPI does not describe."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance"
)


def test_no_request_gets_an_answer_that_is_not_described(tmp_path: Path) -> None:
    program = shutil.which("schemathesis")
    if program is None:
        assert not os.environ.get("LAVA_CHROMIUM_NEEDED"), "make test-web installs schemathesis"
        pytest.skip("schemathesis is not installed: make test-web")
    with Cluster(tmp_path / "c", hosts=1, slots=2, options=("--web",)) as cluster:
        cluster.submit("-H true")
        address = (cluster.folder.run / "web.address").read_text().strip()
        token = cluster.run("lava token").stdout.strip()
        words = ["run", f"{address}/api/openapi.json", "-H", f"Authorization: Bearer {token}", "--checks", CHECKS]
        words += [
            "--max-examples",
            "10",
            "--phases",
            "examples,coverage,fuzzing",
            "--request-timeout",
            "30",
            "--rate-limit",
            "40/s",
        ]
        # these two would end the token that all others come with
        words += ["--exclude-operation-id", "sign_out", "--exclude-operation-id", "revoke_all"]
        words += ["--exclude-path-regex", "events", "--no-color", "--seed", "1"]
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=900, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
