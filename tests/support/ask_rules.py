"""Who may ask what, and which calls of gRPC are whose: the one table of it, which docs/security.md shows.

Rule: every ask and every call has a row; ``tests/unit/lavad/rpc/test_rights.py`` puts each to everybody. What an ask says may be
more particular (an administrator moves jobs to the top of a queue, a user only their own): the row is about who is heard at all.
"""

from __future__ import annotations

from enum import Enum

from lavad.core.lang import asks
from lavad.core.lang.asks import Ask
from lavad.core.lang.token_ask import ListTokens, RevokeTokens, Token


class Rule(Enum):
    """Who may; the value is what docs/security.md says."""

    ANYONE = "anyone whom a host may vouch for"
    SUBMISSION_HOST = "anyone, from a submission host: a token would outlive the job for which another host is believed"
    SUBMITTER = "anyone whom a host may vouch for; root with LSF_ROOT_USER=Y"
    CONTROL = "the job's owner, administrators of its queue, of a user group that the owner is in, of the cluster; root"
    OWNER = "the job's owner"
    GROUP_OWNER = "who made the job group; administrators of the cluster; root"
    TOKEN_OWNER = "whose token it is; administrators of the cluster; root"
    CREATOR = "who made the reservation; administrators of the cluster; root"
    ADMIN = "administrators of the cluster; root"
    QUEUE_ADMIN = "administrators of the queue or the cluster; root"
    HOST_ADMIN = "administrators of a host group that has the host, or of the cluster; root"


RULES: dict[type[Ask], Rule] = {
    asks.Submit: Rule.SUBMITTER,
    asks.Bulk: Rule.SUBMITTER,
    asks.Kill: Rule.CONTROL,
    asks.Stop: Rule.CONTROL,
    asks.Resume: Rule.CONTROL,
    asks.Switch: Rule.CONTROL,
    asks.Move: Rule.CONTROL,
    asks.Modify: Rule.CONTROL,
    asks.Requeue: Rule.CONTROL,
    asks.Checkpoint: Rule.CONTROL,
    asks.Migrate: Rule.CONTROL,
    asks.Resize: Rule.CONTROL,
    asks.Post: Rule.CONTROL,
    asks.Peek: Rule.CONTROL,
    asks.Attach: Rule.OWNER,
    asks.AddGroup: Rule.ANYONE,
    asks.DropGroup: Rule.GROUP_OWNER,
    asks.ChangeGroup: Rule.ADMIN,
    asks.AddReservation: Rule.ADMIN,
    asks.ChangeReservation: Rule.CREATOR,
    asks.DropReservation: Rule.CREATOR,
    asks.Run: Rule.ADMIN,
    asks.Hosts: Rule.HOST_ADMIN,
    asks.Gpus: Rule.HOST_ADMIN,
    asks.Queues: Rule.QUEUE_ADMIN,
    asks.Reconfig: Rule.ADMIN,
    asks.Lease: Rule.ADMIN,
    asks.Perfmon: Rule.ADMIN,
    asks.Judge: Rule.ANYONE,
    asks.Wait: Rule.ANYONE,
    asks.Changes: Rule.ANYONE,
    asks.Query: Rule.ANYONE,
    Token: Rule.SUBMISSION_HOST,
    ListTokens: Rule.ANYONE,
    RevokeTokens: Rule.TOKEN_OWNER,
}

CALLS: dict[str, str] = {
    "Session": (
        "the agent whose certificate names the host (on one machine: this account and root), while the host is of the cluster or "
        "has jobs, and no other machine of its name is heard"
    ),
    "Command": "the same agent, on the connection of its stream, while the host is of the cluster",
}


def rows() -> list[tuple[str, str]]:
    """(asks or call, who may) as docs/security.md shows them."""
    by_rule: dict[Rule, list[str]] = {}
    for ask, rule in RULES.items():
        by_rule.setdefault(rule, []).append(ask.__name__)
    return [(f"`{name}`", who) for name, who in CALLS.items()] + [
        (" ".join(names), rule.value) for rule, names in by_rule.items()
    ]
