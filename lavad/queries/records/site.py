"""Who asks, users and what they used, and what an administrator should know."""

from __future__ import annotations

from itertools import pairwise

from lavad.core import events as ev
from lavad.core.cluster.usage_index import PEND, PSUSP, RUN, SSUSP, USUSP
from lavad.core.lang.asks import Refused
from lavad.core.site.rights import has_share, is_admin, may_use_queue
from lavad.queries.admin.badmin import SITE_KINDS, site_sentence
from lavad.queries.admin.status import problems
from lavad.queries.facts import visibility
from lavad.queries.frame.request import Request
from lavad.queries.jobs.report import GROUPS
from lavad.queries.jobs.report_rows import grouped
from lavad.queries.records import asked
from lavad.store.asked import Asked
from proto import records, site_records

HOUR, DAY = 3600.0, 86400.0
RECENT = 50
MOST_STEPS = 62
INSTANT = 1e-6
"""Seconds: less than the times of two events differ."""


def read_me(request: Request) -> site_records.Me:
    conf, user = request.cluster.conf, request.caller.user
    return site_records.Me(
        user=user,
        cluster=conf.cluster,
        is_admin=is_admin(conf, request.caller),
        queues=[queue.name for queue in conf.queues if may_use_queue(conf, queue, user) and has_share(conf, queue.name, user)],
    )


def read_users(request: Request) -> site_records.Users:
    """Those who have jobs, and those whom lsb.users names."""
    conf, use = request.cluster.conf, request.cluster.use
    limits = {user.name: user.max_jobs for user in conf.users}
    names = {*use.users, *(name for name in limits if name != "default" and not name.endswith("@"))}
    found = []
    for name in sorted(names - {group for group, _ in conf.user_groups}):
        counts = use.users.get(name) or [0] * 6
        found.append(
            site_records.UserRow(
                name=name,
                pend=counts[PEND] + counts[PSUSP],
                run=counts[RUN],
                susp=counts[SSUSP] + counts[USUSP],
                limit=limits.get(name, limits.get("default")),
            )
        )
    return site_records.Users(users=found)


def read_use(request: Request) -> site_records.UsePage:
    """Options: by (user, project, queue), from, to, steps: what jobs that ended then held and used, and in parts of that time."""
    options = request.options()
    by = options.text("by") or "user"
    if by not in GROUPS:
        raise Refused(f"by: one of {', '.join(GROUPS)} is expected")
    end = asked.seconds(options, "to", request.now)
    begin = asked.seconds(options, "from", max(end - 7 * DAY, 0.0))
    steps = asked.number(options, "steps", MOST_STEPS)
    times = [begin + (end - begin) * part / steps for part in range(steps)] + [end] if steps else []
    kept = request.view.reader.kept_since()
    return site_records.UsePage(
        by=by,
        begin=begin,
        end=end,
        rows=_used(request, by, begin, end),
        kept_since=kept if kept > begin else None,
        # a job that ended at the border of two parts is in one of them
        steps=[
            site_records.UseStep(begin=first, end=last, rows=_used(request, by, first, last if last == end else last - INSTANT))
            for first, last in pairwise(times)
        ],
    )


def _used(request: Request, by: str, begin: float, end: float) -> list[site_records.Use]:
    users = (request.caller.user,) if visibility.history_is_restricted(request) else ()
    shares = request.view.reader.shares(Asked(users=users, completed=(begin, end)))
    return [
        site_records.Use(
            name=row.name,
            jobs=row.jobs,
            slot_hours=row.slots / HOUR,
            slot_waste_hours=row.slots_wasted / HOUR,
            cpu_hours=row.cpu / HOUR,
            gpu_hours=row.gpus.held / HOUR,
            gpu_used_hours=row.gpus.used / HOUR,
        )
        for row in grouped(request, shares, by)
    ]


def read_health(request: Request) -> site_records.Health:
    """What is wrong, in words, and what happened to hosts, queues and masters in the last week."""
    view = request.view
    kinds = [ev.kind_of(kind) for kind in SITE_KINDS["hist"]]
    happened = view.reader.site_events(kinds, request.now - 7 * DAY, request.now + 1)
    starts = [event.at for _, event in happened if isinstance(event, ev.MasterStarted)]
    told = [records.Told(at=event.at, text=site_sentence(request, event).rstrip(".")) for _, event in happened[-RECENT:]]
    return site_records.Health(
        master=view.master,
        since=starts[-1] if starts else None,
        epoch=request.cluster.epoch,
        is_admin=is_admin(request.cluster.conf, request.caller),
        notices=[site_records.Notice(text=one.what, what_to_do=one.do) for one in problems(request)],
        recent=told[::-1],
    )
