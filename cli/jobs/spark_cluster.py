"""Spark: how a driver and its executors are started as tasks, as a standalone cluster of the job's own.

Rule: an executor has the cores, GPUs and memory of its task. Who does not know the secret of the job joins nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from shlex import quote

from cli.jobs.identity import own_address

DRIVER, EXECUTOR = "driver", "executor"
DAEMONS = 384
"""MiB that a master or worker needs beside what it manages: a heap of 128 MiB, and what Java has beside it."""
WITHIN = "600s"
"""How long an application waits at most for its executors before it goes on with those that are there."""

_BEGIN = r"""[ "$SPARK_HOME" ] || . find-spark-home 2>/dev/null
bin=$SPARK_HOME/bin
[ -x "$bin/spark-class" ] || { echo "$LAVA_HOST: no Spark: spark-submit is not in PATH, nor SPARK_HOME set" >&2; exit 127; }
driver=${LAVA_PEER_DRIVER_0%:*}
export _SPARK_AUTH_SECRET=$(printf "spark %s" "$LAVA_TOKEN" | sha256sum | cut -c1-64)
export SPARK_DAEMON_MEMORY=${SPARK_DAEMON_MEMORY:-128m} SPARK_LOCAL_DIRS=${SPARK_LOCAL_DIRS:-$LAVA_SCRATCH}
export SPARK_DAEMON_JAVA_OPTS="-Dspark.authenticate=true $SPARK_DAEMON_JAVA_OPTS"
ready() { (: <"/dev/tcp/$driver/${LAVA_PEER_DRIVER_0##*:}") 2>/dev/null; }
"""
"""Spark needs bash itself. Words of a command are seen by all users, so that no secret and no property stands in them."""

PROPERTIES = "SPARK_JOB_PROPERTIES"
"""The variable of the driver with the properties of its application, as ``property_file`` writes them."""
_DRIVE = r"""conf=$LAVA_SCRATCH/job.conf
(umask 077; { cat "${SPARK_CONF_DIR:-$SPARK_HOME/conf}/spark-defaults.conf"; echo; } 2>/dev/null >"$conf")
echo "$SPARK_JOB_PROPERTIES
spark.cores.max $((LAVA_COUNT_EXECUTOR * CORES))
spark.driver.host $driver
spark.authenticate true
spark.authenticate.secret $_SPARK_AUTH_SECRET" >>"$conf"
export SPARK_MASTER_OPTS="-Dspark.master.rest.enabled=false -Dspark.ui.killEnabled=false $SPARK_MASTER_OPTS"
"$bin/spark-class" org.apache.spark.deploy.master.Master --host "$driver" --port "$LAVA_PORT" --webui-port 0 & master=$!
trap "kill $master 2>/dev/null" EXIT
until ready; do kill -0 $master 2>/dev/null || exit 1; sleep 0.2; done
"$bin/spark-submit" --master "spark://$LAVA_PEER_DRIVER_0" --deploy-mode client --properties-file "$conf" "$@"
"""

_GPUS = r"""gpus=$LAVA_SCRATCH/gpus.json
echo '[{"id": {"componentName": "spark.worker", "resourceName": "gpu"}, "addresses": [ADDRESSES]}]' >"$gpus"
amount=spark.worker.resource.gpu.amount=COUNT
export SPARK_WORKER_OPTS="-D$amount -Dspark.worker.resourcesFile=$gpus $SPARK_WORKER_OPTS"
"""
"""Spark numbers the GPUs of a task from 0, as CUDA does: the task sees no others."""

_WORK = r"""until ready; do sleep 0.2; done
exec "$bin/spark-class" org.apache.spark.deploy.worker.Worker "$@"
"""


def drive(words: Iterable[str], cores: int) -> str:
    """The command of the driver: a master, and the application, whose end it is. ``cores``: of each executor.

    ``words``: options of spark-submit, the application's file and its arguments.
    """
    return f"{_bash(_DRIVE.replace('CORES', str(cores)))} {' '.join(map(quote, words))}"


def property_file(given: Mapping[str, str]) -> str:
    """A file of properties: what Spark has by itself otherwise, and those that are given."""
    found = {
        "spark.ui.port": "0",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": WITHIN,
        **given,
    }
    return "\n".join(f"{_escaped(name)}={_escaped(value)}" for name, value in found.items())


def _escaped(text: str) -> str:
    return re.sub(r"([\\=:# ])", r"\\\1", text).replace("\n", r"\n").replace("\r", r"\r")


def work(cores: int, heap: int, gpus: int) -> str:
    """The command of an executor: a worker with room for just one, of so many cores and MiB of heap."""
    addresses = ", ".join(f'"{at}"' for at in range(gpus))
    begin = _GPUS.replace("COUNT", str(gpus)).replace("ADDRESSES", addresses) if gpus else ""
    where = f'--host "{own_address(EXECUTOR)}" --port "$LAVA_PORT" --webui-port 0 --work-dir "$LAVA_SCRATCH"'
    return f'{_bash(begin + _WORK)} {where} --cores {cores} --memory {heap}m "spark://$LAVA_PEER_DRIVER_0"'


def _bash(script: str) -> str:
    """find-spark-home takes the name of the program for the place of Spark."""
    return f'exec bash -c {quote(_BEGIN + script)} "$(command -v spark-submit || echo spark)"'
