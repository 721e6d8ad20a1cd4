"""What a user may see of whose jobs, as LSF 10.1 has it.

SECURE_JOB_INFO_LEVEL says it (ENABLE_JOB_INFO_BY_ADMIN_ROLE for administrators), SECURE_INFODIR_USER_ACCESS for bhist and bacct.

| level | own jobs | jobs of the same user group | other jobs |
|-|-|-|-|
| 0 | detail | detail | detail |
| 1 | detail | detail | summary |
| 2 | detail | detail | nothing |
| 3 | detail | summary | nothing |
| 4 | detail | nothing | nothing |
| 5 | detail | summary | summary |

root and the first administrator of the cluster see everything. A job of ``bsub -G`` belongs to that group alone.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.job.user_group import named_group
from lavad.core.lang.asks import Caller, Refused
from lavad.core.site.conf import Conf
from lavad.core.site.rights import is_admin, is_group_admin
from lavad.queries.frame.request import Request


class Sight(IntEnum):
    """What of a job may be seen."""

    NOTHING = 0
    SUMMARY = 1
    DETAIL = 2


_IN_GROUP = (Sight.DETAIL, Sight.DETAIL, Sight.DETAIL, Sight.SUMMARY, Sight.NOTHING, Sight.SUMMARY)
_OF_OTHERS = (Sight.DETAIL, Sight.SUMMARY, Sight.NOTHING, Sight.NOTHING, Sight.NOTHING, Sight.SUMMARY)


def is_restricted(conf: Conf, caller: Caller) -> bool:
    """Whether there is anything that the caller may not see."""
    first = conf.admins[0] if conf.admins else ""
    return conf.params.secure_job_info_level > 0 and caller.uid != 0 and caller.user != first


def sight_of(conf: Conf, caller: Caller, spec: Spec) -> Sight:
    """What the caller may see of jobs of this spec."""
    if spec.user == caller.user or not is_restricted(conf, caller) or _manages(conf, caller, spec):
        return Sight.DETAIL
    level = conf.params.secure_job_info_level
    return _IN_GROUP[level] if _share_group(conf, caller.user, spec) else _OF_OTHERS[level]


def _manages(conf: Conf, caller: Caller, spec: Spec) -> bool:
    """Whether ENABLE_JOB_INFO_BY_ADMIN_ROLE opens the job to the caller."""
    roles = conf.params.enable_job_info_by_admin_role
    if "CLUSTER" in roles and is_admin(conf, caller):
        return True
    if "QUEUE" in roles and any(
        q.name == spec.queue and caller.user in conf.groups_of_users.expand(q.administrators) for q in conf.queues
    ):
        return True
    return "USERGROUP" in roles and is_group_admin(conf, spec, caller)


def _share_group(conf: Conf, user: str, spec: Spec) -> bool:
    """Whether a user is in the group of a job (-G), or without one in a group that its owner is in; one of everybody is none."""
    own = named_group(spec.user_group)
    if own:
        return user in conf.groups_of_users.users(own).users
    theirs = conf.groups_of_users.of(spec.user)
    return any(group in theirs and not conf.groups_of_users.users(group).has_all for group in conf.groups_of_users.of(user))


def tested(request: Request, detail: bool, also: Callable[[int], bool] | None) -> Callable[[int], bool] | None:
    """``also``, a test of specs by number, and that the caller may see jobs of the spec: ``detail``, or the summary at least."""
    conf, caller = request.cluster.conf, request.caller
    if not is_restricted(conf, caller):
        return also
    least = Sight.DETAIL if detail else Sight.SUMMARY

    def may_see(number: int) -> bool:
        spec = request.view.spec(Job(key=0, spec=number, name="", submitted=0.0))
        return sight_of(conf, caller, spec) >= least and (also is None or also(number))

    return may_see


def sees(request: Request, spec: Spec, detail: bool) -> bool:
    """Whether the caller may see a job of this spec."""
    return sight_of(request.cluster.conf, request.caller, spec) >= (Sight.DETAIL if detail else Sight.SUMMARY)


def history_is_restricted(request: Request) -> bool:
    """Whether bhist and bacct show only what the caller may see. Raises Refused where they show nothing at all."""
    conf = request.cluster.conf
    if not is_restricted(conf, request.caller) or conf.params.secure_infodir_user_access == "N":
        return False
    if conf.params.secure_infodir_user_access == "Y":
        raise Refused("User permission denied")
    return True
