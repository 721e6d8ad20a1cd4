"""The table of REST: each route with what it takes and answers. The routes themselves and OpenAPI are made of it."""

from __future__ import annotations

from typing import NamedTuple

from proto import records, site_records
from web.rest import answers, bodies

ROOT = "/api/v1"


class Param(NamedTuple):
    """A parameter of the query string. ``schema``: as in JSON schema."""

    name: str
    text: str
    schema: dict[str, object]


class Route(NamedTuple):
    """``word``: of the query ``api``; "": the route has a function of its own, by ``name``."""

    name: str
    method: str
    path: str
    text: str
    word: str = ""
    params: tuple[Param, ...] = ()
    body: type | None = None
    answer: type | None = None
    status: int = 200
    media: str = "application/json"
    tag: str = "jobs"


_TEXT: dict[str, object] = {"type": "string", "maxLength": 511}
_SECONDS: dict[str, object] = {"type": "number", "minimum": 0, "maximum": 99999999999}
LIMIT = Param("limit", "rows of a page", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50})
CURSOR = Param("cursor", "`next` of the page before", {"type": "string", "maxLength": 200})
SEARCH = Param("search", "part of a name", _TEXT)
FROM = Param("from", "seconds since the epoch", _SECONDS)
TO = Param("to", "seconds since the epoch", _SECONDS)
JOBS = (
    Param("state", "LSF's states, or live, waiting, running, finished; several with commas", _TEXT),
    Param("user", "owner", _TEXT),
    Param("queue", "queue", _TEXT),
    Param("project", "project", _TEXT),
    Param("host", "host on which it runs", _TEXT),
    Param("app", "application profile", _TEXT),
    Param("group", "job group", _TEXT),
    Param("array", "elements of this array", {"type": "integer", "minimum": 1, "maximum": 2147483647}),
    Param("search", "part of a name, the beginning of an id, a user, queue, project or host", _TEXT),
    Param(
        "sort",
        "order, with - before it for the other way; all but id are of live jobs",
        {"type": "string", "default": "-id", "maxLength": 20},
    ),
    LIMIT,
    CURSOR,
)
AFTER = Param("after", "`after` of the answer before; without it from now on", {"type": "string", "maxLength": 63})
WAIT = Param("wait", "seconds to wait for a change, at most 15", {"type": "number", "minimum": 0, "maximum": 15, "default": 0})
USER = Param("user", "another user than the one who asks, or `all`: for administrators of the cluster", _TEXT)
STEPS = Param("steps", "also in so many equal parts of that time", {"type": "integer", "minimum": 0, "maximum": 62, "default": 0})
WHOLE = Param("whole", "all of it, not only its last 256 KB", {"type": "boolean", "default": False})
JOB = "/jobs/{id}"
TABLE: tuple[Route, ...] = (
    Route("session", "GET", "/session", "Who is signed in", answer=answers.Session, tag="session"),
    Route("sign_out", "DELETE", "/session", "Sign out", status=204, tag="session"),
    Route("tokens", "GET", "/tokens", "Tokens that have not ended (lava token --list)", params=(USER,), answer=answers.Tokens,
          tag="session"),
    Route("make_token", "POST", "/tokens", "Make a token for programs; with the session of a browser only", body=bodies.MakeToken,
          answer=answers.MadeToken, status=201, tag="session"),
    Route("revoke", "DELETE", "/tokens/{id}", "Call a token back", answer=answers.Done, tag="session"),
    Route("revoke_all", "DELETE", "/tokens", "Call all tokens back, of sessions too", params=(USER,), answer=answers.Done,
          tag="session"),
    Route("overview", "GET", "/overview", "The cluster now", "overview", answer=site_records.Overview, tag="cluster"),
    Route("jobs", "GET", "/jobs", "A page of jobs", "jobs", JOBS, answer=records.JobPage),
    Route("submit", "POST", "/jobs", "Submit a job; with Idempotency-Key once, however often it is sent", body=bodies.Submit,
          answer=answers.Submitted, status=201),
    Route("submit_many", "POST", "/jobs/bulk", "Submit jobs that have their options in common; with Idempotency-Key once",
          body=bodies.SubmitMany, answer=answers.SubmittedMany),
    Route("kill_many", "POST", "/jobs/kill", "End jobs (bkill)", body=bodies.KillMany, answer=answers.Done),
    Route("listing", "POST", "/jobs/listing", "What bjobs -o shows of jobs", body=bodies.Listing, answer=answers.Listed),
    Route("changes", "GET", "/changes", "What became of the caller's jobs since a cursor", params=(AFTER, WAIT),
          answer=answers.JobChanges),
    Route("changes_events", "GET", "/changes/events",
          "The same as it comes: server-sent events, each `data` a JobChanges; goes on where Last-Event-ID, or `after`, says",
          params=(AFTER,), media="text/event-stream"),
    Route("job", "GET", JOB, "One job", "job", answer=records.Job),
    Route("modify", "PATCH", JOB, "Change a job's options (bmod)", body=bodies.Modify, answer=answers.Done),
    Route("delete", "DELETE", JOB, "End a job (bkill)", answer=answers.Done),
    Route("why", "GET", JOB + "/why", "Why it waits, what would start it, when it may start", "why", answer=records.Why),
    Route("elements", "GET", JOB + "/elements", "The elements of an array", "array", answer=records.Elements),
    Route("explanation", "GET", JOB + "/explanation", "Why it waits, or how it ended, in words (lava why)", media="text/plain"),
    Route("stats", "GET", JOB + "/stats", "What it asked for and used, on which host and GPU, with advice (lava stats)",
          media="text/plain"),
    Route("end", "GET", JOB + "/end", "How it ended; 409 where it has not within 15 seconds", answer=answers.End),
    Route("output", "GET", JOB + "/output", "Its output so far (bpeek)", params=(WHOLE,), media="text/plain"),
    Route("tail", "GET", JOB + "/output/events", "Its output as it comes: server-sent events", media="text/event-stream"),
    Route("kill", "POST", JOB + "/kill", "End a job, or send it a signal (bkill)", body=bodies.Kill, answer=answers.Done),
    Route("stop", "POST", JOB + "/stop", "Suspend a job (bstop)", body=bodies.Because, answer=answers.Done),
    Route("resume", "POST", JOB + "/resume", "Resume a job (bresume)", body=bodies.Because, answer=answers.Done),
    Route("requeue", "POST", JOB + "/requeue", "End a job and queue it again (brequeue)", body=bodies.Requeue,
          answer=answers.Done),
    Route("switch", "POST", JOB + "/switch", "To another queue (bswitch)", body=bodies.Switch, answer=answers.Done),
    Route("move", "POST", JOB + "/move", "To the top or bottom of its queue (btop, bbot)", body=bodies.Move, answer=answers.Done),
    Route("hosts", "GET", "/hosts", "A page of hosts", "hosts", (SEARCH, LIMIT, CURSOR), answer=site_records.HostPage,
          tag="cluster"),
    Route("host", "GET", "/hosts/{id}", "One host with its jobs and GPUs", "host", answer=site_records.Host, tag="cluster"),
    Route("host_open", "POST", "/hosts/{id}/open", "Open a host (badmin hopen)", body=bodies.Comment, answer=answers.Done,
          tag="cluster"),
    Route("host_close", "POST", "/hosts/{id}/close", "Close a host (badmin hclose)", body=bodies.Comment, answer=answers.Done,
          tag="cluster"),
    Route("queues", "GET", "/queues", "All queues", "queues", answer=site_records.Queues, tag="cluster"),
    Route("queue", "GET", "/queues/{id}", "One queue with its fair share", "queue", answer=site_records.Queue, tag="cluster"),
    *(
        Route(f"queue_{verb}", "POST", f"/queues/{{id}}/{verb}", text, body=bodies.Comment, answer=answers.Done, tag="cluster")
        for verb, text in (
            ("open", "Let a queue take jobs (badmin qopen)"),
            ("close", "Let a queue take no jobs (badmin qclose)"),
            ("activate", "Let a queue start jobs (badmin qact)"),
            ("inactivate", "Let a queue start no jobs (badmin qinact)"),
        )
    ),
    Route("users", "GET", "/users", "Users who have jobs or limits", "users", answer=site_records.Users, tag="cluster"),
    Route("use", "GET", "/use", "What users, projects or queues held and used",
          "use", (Param("by", "what to sum by", {"type": "string", "enum": ["user", "project", "queue"]}), FROM, TO, STEPS),
          answer=site_records.UsePage, tag="cluster"),
    Route("chart", "GET", "/chart", "Hosts over time: past, present, promised", "chart", (FROM, TO, SEARCH, LIMIT, CURSOR),
          answer=site_records.Chart, tag="cluster"),
    Route("health", "GET", "/health", "What an administrator should know", "health", answer=site_records.Health, tag="cluster"),
    Route("events", "GET", "/events",
          "What happens, as it happens: server-sent events, `news` with a News as `data`, `away` when the master does not answer",
          media="text/event-stream", tag="cluster"),
)  # fmt: skip
