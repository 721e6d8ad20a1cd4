"""A master that is frozen while it sends a commit to PostgreSQL does not keep another from the lease."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

from lavad.devtools import private_postgres
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

WAITS = """
    CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$;
    CREATE TRIGGER waits BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.kind = 'MessagePosted') EXECUTE FUNCTION waits()
"""
IN_THE_MIDDLE = """
    SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid) WHERE l.relation = 'lease'::regclass
        AND l.mode = 'RowShareLock' AND a.state = 'active' AND a.wait_event = '{}'
"""
ELEMENTS = 100
"""Each gets data of its own: 6 MB, of which a socket takes a small part."""


def test_the_next_master_ends_a_commit_that_is_half_sent(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "data").write_text("x" * (60 << 10))
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(tmp_path / "cluster", options=("--masters", "2", "--database", "postgres")))
        url = make_url(private_postgres.start(cluster.folder.path / "postgres")).set(drivername="postgresql")
        plain = url.render_as_string(hide_password=False)
        database = stack.enter_context(psycopg.connect(plain, autocommit=True))

        def found(query: str) -> object:
            row = database.execute(query).fetchone()
            return row and row[0]

        job = cluster.submit(f"-H -J 'many[1-{ELEMENTS}]' true")
        database.execute(WAITS)
        database.execute("SELECT pg_advisory_lock(1)")
        words = ["bpost", "-a", str(tmp_path / "data"), f"{job}[1-{ELEMENTS}]"]
        posting = subprocess.Popen(words, env=cluster.environ, stdout=subprocess.DEVNULL)
        wait_until(lambda: found(IN_THE_MIDDLE.format("advisory")), 30, cluster.logs)
        former = str(found("SELECT holder FROM lease"))
        master = cluster.pid("lavad-2" if "/2 " in former else "lavad")
        os.kill(master, signal.SIGSTOP)
        stack.callback(os.kill, master, signal.SIGCONT)
        database.execute("SELECT pg_advisory_unlock(1)")
        wait_until(lambda: found(IN_THE_MIDDLE.format("ClientRead")), 30, "the rest of the commit to be missing")
        wait_until(lambda: found("SELECT holder FROM lease") != former, 90, cluster.logs)
        os.kill(master, signal.SIGCONT)
        assert posting.wait(90) == 0
        cluster.wait_for(cluster.submit("-o /dev/null true"), "DONE", timeout=60)
        assert found("SELECT count(*) FROM events WHERE kind = 'MessagePosted'") == ELEMENTS
        assert "Traceback" not in cluster.logs()
