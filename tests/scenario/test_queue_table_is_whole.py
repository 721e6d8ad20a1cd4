"""Every parameter of lsb.queues is proven by a story, by a live cluster, or named by badmin ckconfig with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.read.load import load
from config.values.fields import OTHER_NAMES
from config.values.parameters import QUEUE
from config.values.without_effect import KNOWN, MISSING, NEEDLESS
from tests.integration.site.test_queue_table import PROVEN
from tests.scenario import test_queue_parameters, test_queue_policies, test_queue_run_limits

TABLES = (test_queue_parameters.PROOFS, test_queue_policies.PROOFS, test_queue_run_limits.PROOFS)
STORIES = [proof for table in TABLES for proof in table.values()]
TOLD = {name for proof in STORIES for name in proof.parameters} | set(test_queue_parameters.SIZES) | set(PROVEN.split())
WITHOUT = MISSING["lsb.queues"] | NEEDLESS["lsb.queues"]
OF_LSF = """
ADMINISTRATORS APS_PRIORITY BACKFILL CHKPNT CHUNK_JOB_SIZE COMMITTED_RUN_TIME_FACTOR CONCURRENT_HOSTS_LIMIT CONTAINER CORELIMIT
CPU_FREQUENCY CPULIMIT CPU_TIME_FACTOR CSM_REQ DATA_TRANSFER DATALIMIT DEFAULT_EXTSCHED DEFAULT_HOST_SPEC DESCRIPTION
DISPATCH_BY_QUEUE DISPATCH_ORDER DISPATCH_WINDOW DOCKER_IMAGE_AFFINITY ELIGIBLE_PEND_TIME_LIMIT ENABLE_GPU_HIST_RUN_TIME
ENABLE_HIST_RUN_TIME EXCLUSIVE EXEC_DRIVER EXTENDABLE_RUNLIMIT EXTSCHED FAIRSHARE FAIRSHARE_ADJUSTMENT_FACTOR FAIRSHARE_QUEUES
FILELIMIT FWD_JOB_FACTOR FWD_USERS GPU_REQ GPU_RUN_TIME_FACTOR HIST_HOURS HJOB_LIMIT HOST_POST_EXEC HOST_PRE_EXEC
HOSTLIMIT_PER_JOB HOSTS IGNORE_DEADLINE IMPT_JOBBKLG IMPT_JOBLIMIT IMPT_SLOTBKLG IMPT_TASKBKLG IMPT_TASKLIMIT INTERACTIVE
INTERRUPTIBLE_BACKFILL JOB_ACCEPT_INTERVAL JOB_ACTION_WARNING_TIME JOB_CONTROLS JOB_IDLE JOB_OVERRUN JOB_SIZE_LIST JOB_STARTER
JOB_UNDERRUN JOB_WARNING_ACTION LOCAL_MAX_PREEXEC_RETRY LOCAL_MAX_PREEXEC_RETRY_ACTION MANDATORY_EXTSCHED MAX_JOB_PREEMPT
MAX_JOB_REQUEUE MAX_PREEXEC_RETRY MAX_PROTOCOL_INSTANCES MAX_RSCHED_TIME MAX_SLOTS_IN_POOL MAX_TOTAL_TIME_PREEMPT
MC_FORWARD_DELAY MC_FORWARD_POLICY MEMLIMIT MIG NETWORK_REQ NEW_JOB_SCHED_DELAY NICE NO_PREEMPT_FINISH_TIME NO_PREEMPT_INTERVAL
NO_PREEMPT_RUN_TIME NQS_QUEUES PEND_TIME_LIMIT PJOB_LIMIT PLAN POST_EXEC PREEMPTION PREEMPT_DELAY PRE_EXEC PRIORITY PROCESSLIMIT
PROCLIMIT QJOB_LIMIT QUEUE_GROUP RC_ACCOUNT RC_DEMAND_POLICY RC_HOSTS RCVJOBS_FROM RELAX_JOB_DISPATCH_ORDER
REMOTE_MAX_PREEXEC_RETRY REMOTE_MAX_PREEXEC_RETRY_ACTION REQUEUE_EXIT_VALUES RERUNNABLE RESOURCE_RESERVE RES_REQ RESRSV_LIMIT
RESUME_COND ROUND_ROBIN_POLICY RUNLIMIT RUN_JOB_FACTOR RUN_TIME_DECAY RUN_TIME_FACTOR RUN_WINDOW SLA_GUARANTEES_IGNORE
SLOT_POOL SLOT_RESERVE SLOT_SHARE SNDJOBS_TO STACKLIMIT STOP_COND SUCCESS_EXIT_VALUES SWAPLIMIT TASKLIMIT TERMINATE_WHEN
THREADLIMIT UJOB_LIMIT USERS USE_PAM_CREDS USE_PRIORITY_IN_POOL PRE_POST_EXEC_USER
"""


@pytest.mark.parametrize("name", sorted(QUEUE))
def test_a_parameter_that_is_read_is_proven_or_named(name: str) -> None:
    assert name in TOLD or name in WITHOUT, f"no test shows what {name} does"
    assert not (name in TOLD and name in WITHOUT), f"{name} works and is said not to"


@pytest.mark.parametrize("name", sorted({*OF_LSF.split(), *KNOWN["lsb.queues"], *WITHOUT}))
def test_a_parameter_of_lsf_works_or_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    value = {"LOCAL_MAX_PREEXEC_RETRY_ACTION": "EXIT", "DISPATCH_BY_QUEUE": "Y"}.get(name, "5")
    (tmp_path / "lsb.queues").write_text(f"Begin Queue\nQUEUE_NAME = q\n\n{name} = {value}\nEnd Queue\n")
    found = [problem for problem in load(str(tmp_path)).problems if not problem.fatal]
    if OTHER_NAMES.get(name, name) in TOLD:
        assert found == []
    else:
        assert [(problem.line, "has no effect" in problem.text) for problem in found] == [(4, True)], found
        assert f" {name} is not " in found[0].text
