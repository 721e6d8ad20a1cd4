"""Jobs of lava from Python: ``Cluster`` submits commands, ``Executor`` runs callables as an executor of concurrent.futures.

    from lava_client import Cluster, Executor

    job = Cluster().submit(["./a.out"], slots=4, output="o.%J")
    job.result()                                  # 0, or JobFailed

    with Executor(slots=1, memory="2GB") as e:
        print(list(e.map(pow, range(10), range(10))))

Rule: the standard library only, and nothing of lava's own packages: it runs in any environment of a user, Python 3.9 and newer.
"""

from lava_client.call import CallFuture
from lava_client.cluster import Cluster
from lava_client.errors import (
    CallLost,
    InitializerFailed,
    JobFailed,
    JobKilled,
    LavaError,
    NotSignedIn,
    Refused,
    RemoteError,
    RemoteTraceback,
    Unavailable,
)
from lava_client.executor import Executor
from lava_client.job import Job, Usage

__all__ = [
    "CallFuture",
    "CallLost",
    "Cluster",
    "Executor",
    "InitializerFailed",
    "Job",
    "JobFailed",
    "JobKilled",
    "LavaError",
    "NotSignedIn",
    "Refused",
    "RemoteError",
    "RemoteTraceback",
    "Unavailable",
    "Usage",
]
