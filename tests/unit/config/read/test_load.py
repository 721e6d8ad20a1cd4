"""Whole folders: what is read, what is reported, what is never raised."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.lsfconf import RUNDIR, is_yes, read_lsf_conf
from config.model.cluster import UNLIMITED, ResourceInstance
from config.model.problems import report
from config.model.site_params import SiteParams
from config.model.values import Chkpnt, Thresholds
from config.read.load import load
from config.read.params import LSB_PARAMS, LSF_CONF, settings_of
from config.write.generate import SAMPLES
from lavad.configure.resolve import resolve
from tests.support.examples import examples

CLUSTER = (
    "Begin ClusterAdmins\nAdministrators = lsfadmin root\nEnd ClusterAdmins\n"
    "Begin Host\nHOSTNAME model type server RESOURCES\n"
    "h[1-3] ! ! 1 (mg)\ngw ! ! 0 ()\nh4 PC LINUX 1 ()\nEnd Host\n"
    "Begin ResourceMap\nRESOURCENAME LOCATION\nlic 4@[all]\n"
    "scratch (10@[h1 h2] 20@[h3])\ngb [default]\nEnd ResourceMap\n"
)
SHARED = (
    "Begin Cluster\nClusterName\nlab\nEnd Cluster\nBegin HostType\nTYPENAME\nLINUX\nEnd HostType\n"
    "Begin HostModel\nMODELNAME CPUFACTOR ARCHITECTURE\nPC 2.5 (x86 i686)\nEnd HostModel\n"
    "Begin Resource\nRESOURCENAME TYPE INTERVAL INCREASING DESCRIPTION\nmg Boolean () () (manager)\n"
    "lic Numeric () N (licences)\nscratch Numeric 30 N (disk)\ngb Numeric 30 N (own disk)\nEnd Resource\n"
)


@pytest.mark.parametrize("exists", [True, False])
def test_an_empty_folder_is_a_cluster(tmp_path, exists):
    loaded = load(str(tmp_path if exists else tmp_path / "none"))
    config = loaded.config
    assert loaded.problems == ()
    assert (config.name, [(q.name, q.priority) for q in config.queues]) == ("lava", [("normal", 30)])
    assert config.default_queues() == ("normal",)
    assert config.default_host is not None
    assert config.default_host.slots is None


def test_a_parameter_that_is_not_set_has_lsfs_default(tmp_path):
    params = load(str(tmp_path)).config.params
    assert (params.max_jobid, params.max_job_array_size, params.clean_period) == (999_999, 1000, 3600)
    assert (params.lsf_unit_for_limits, params.lsb_bsub_parse_script, params.lsb_stdout_direct) == ("KB", False, False)
    assert (params.abs_runlimit, params.parallel_sched_by_slot, params.lsf_root_user) == (False, False, False)
    assert (params.lava_host_timeout, params.lava_lease, params.lava_lease_margin) == (60, 600, 40)
    assert (params.lava_output_days, params.lava_mpi_interface) == (7.0, "")


def test_lavas_own_parameters_are_known(tmp_path):
    (tmp_path / "lsf.conf").write_text("LAVA_OUTPUT_DAYS=0.5\nLAVA_MPI_INTERFACE=ib0\n")
    loaded = load(str(tmp_path))
    assert loaded.problems == ()
    assert (loaded.config.params.lava_output_days, loaded.config.params.lava_mpi_interface) == (0.5, "ib0")


def test_the_samples_have_no_problem():
    loaded = load(str(SAMPLES))
    assert report(loaded.problems) == "No errors found.\n"
    params = loaded.config.params
    assert (params.max_jobid, params.max_job_array_size) == (2_147_483_646, 1_000_000)
    assert (params.lsb_bsub_parse_script, params.lsb_stdout_direct, params.lsb_use_sequential_signal) == (True,) * 3
    assert (params.parallel_sched_by_slot, params.abs_runlimit, params.lsf_unit_for_limits) == (True, True, "MB")
    assert (params.lsb_resource_enforce, params.job_action_warning_time) == (("memory", "gpu"), 60)
    assert {q.name: q.priority for q in loaded.config.queues}["normal"] == 30
    assert loaded.config.default_queues() == ("normal",)


def test_hosts_models_resources(folder):
    config = folder(lsf__cluster__lab=CLUSTER, lsf__shared=SHARED).config
    assert (config.name, config.admins) == ("lab", ("lsfadmin", "root"))
    assert [(h.name, h.server, h.model) for h in config.hosts] == [
        ("h1", True, ""),
        ("h2", True, ""),
        ("h3", True, ""),
        ("gw", False, ""),
        ("h4", True, "PC"),
    ]
    assert config.host_models[0].cpu_factor == 2.5
    maps = {resource.name: resource.instances for resource in config.resources}
    assert maps["lic"] == (ResourceInstance(value="4", hosts=("all",)),)
    assert maps["scratch"] == (
        ResourceInstance(value="10", hosts=("h1", "h2")),
        ResourceInstance(value="20", hosts=("h3",)),
    )
    assert maps["gb"] == (ResourceInstance(value=None, per_host=True),)
    assert config.default_host is None


def test_lines_of_lsb_hosts_go_to_hosts_then_groups_then_default(folder):
    lsb_hosts = (
        "Begin Host\nHOST_NAME MXJ JL/U r1m DISPATCH_WINDOW\nh1 8 2 0.7/2 ()\ngrp - () () (20:00-8:00)\n"
        "default ! () () ()\nEnd Host\n"
        "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\ngrp (inner)\ninner (h2)\nEnd HostGroup\n"
    )
    loaded = folder(lsf__cluster__lab=CLUSTER, lsf__shared=SHARED, lsb__hosts=lsb_hosts)
    assert loaded.problems == ()
    hosts = {host.name: host for host in loaded.config.hosts}
    assert (hosts["h1"].slots, hosts["h1"].user_job_limit) == (8, 2)
    assert hosts["h1"].thresholds == Thresholds((("r1m", 0.7),), (("r1m", 2.0),))
    assert (hosts["h2"].slots, hosts["h2"].dispatch_window) == (UNLIMITED, "20:00-8:00")
    assert (hosts["h3"].slots, hosts["h3"].batch) == (None, True)


def test_without_default_other_hosts_are_no_batch_hosts(folder):
    lsb_hosts = "Begin Host\nHOST_NAME MXJ\nh1 8\nEnd Host\n"
    hosts = folder(lsf__cluster__lab=CLUSTER, lsf__shared=SHARED, lsb__hosts=lsb_hosts).config.hosts
    assert [host.name for host in hosts if host.batch] == ["h1"]


def test_users_groups_limits_applications(folder):
    loaded = folder(
        lsb__users=(
            "Begin UserGroup\nGROUP_NAME GROUP_MEMBER USER_SHARES\ndev (alice bob) ([alice, 3] [default, 1])\n"
            "End UserGroup\nBegin User\nUSER_NAME MAX_JOBS JL/P\nalice 20 -\ndev@ 5 1.5\nEnd User\n"
        ),
        lsb__resources=(
            "Begin Limit\nNAME = one\nPER_USER = all ~alice\nQUEUES = normal\nSLOTS = 4\nMEM = 100\nEnd Limit\n"
            "Begin Limit\nUSERS PER_HOST MEM RESOURCE\n(alice bob) h1 50% ([tmp, 3] [gmem, 1.5])\nEnd Limit\n"
        ),
        lsb__applications="Begin Application\nNAME = fluent\nRUNTIME = 1:00\nCHKPNT_PERIOD = 10\nEnd Application\n",
    )
    config = loaded.config
    assert loaded.problems == ()
    assert config.user_groups[0].shares == (("alice", 3), ("default", 1))
    found = [(user.name, user.max_jobs, user.slots_per_processor) for user in config.users]
    assert found == [("alice", 20, None), ("dev@", 5, 1.5)]
    first, second = config.limits
    assert (first.users, first.per_user, first.slots, first.mem) == (("all", "~alice"), True, 4, 100.0)
    assert (second.users, second.percent) == (("alice", "bob"), ("mem",))
    assert (second.mem, second.resources) == (50.0, (("tmp", 3.0), ("gmem", 1.5)))
    assert config.applications[0].runtime == 3600


@pytest.mark.parametrize(
    ("file", "text", "line", "words", "fatal"),
    [
        ("lsf.conf", "A=1\n", 1, "unknown parameter A", False),
        ("lsf.conf", "\nLSF_LIM_PORT=7869\n", 2, "not needed", False),
        ("lsf.conf", "junk\n", 1, "not NAME=value", True),
        ("lsf.conf", "LSB_STDOUT_DIRECT=maybe\n", 1, "neither Y nor N", True),
        ("lsf.conf", "LSB_SIGSTOP=SIGHALT\n", 1, "'SIGHALT' is no signal", True),
        ("lsf.conf", "LSB_SIGSTOP=0641\n", 1, "'0641' is no signal", True),
        ("lsf.conf", "LSF_UNIT_FOR_LIMITS=miles\n", 1, "not a unit", True),
        ("lsf.conf", "LSB_GPU_REQ=num=0\n", 1, "num is a number from 1", True),
        ("lsf.conf", "LSF_CONFDIR=/no/such\n", 1, "is not a folder", False),
        ("lsf.conf", "LAVA_LEASE=5\n", 1, "shorter than LAVA_HOST_TIMEOUT", True),
        ("lsf.conf", "\nLAVA_HEARTBEAT=40\n", 2, "less than two of LAVA_HEARTBEAT 40 s", True),
        ("lsf.conf", "LAVA_LEASE=605\n\nLAVA_HOST_TIMEOUT=606\n", 1, "shorter than LAVA_HOST_TIMEOUT", True),
        ("lsf.conf", "LAVA_FENCE=off\n", 1, "LAVA_FENCE off: not the path of a program", True),
        ("lsf.conf", "LAVA_LEASE_MARGIN=25\n", 1, "LAVA_LEASE_MARGIN 25 s is too short: with LAVA_HOST_TIMEOUT 60 s", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nLEASE = 30\nEnd Queue", 3, "shorter than LAVA_HOST_TIMEOUT 60 s", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nLEASE_MARGIN = 25\nEnd Queue", 3, "it is at least 26 s", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nHOST_TIMEOUT = 90\nEnd Queue", 3, "after LAVA_HOST_TIMEOUT", False),
        ("lsf.conf", "LAVA_DATABASE_URL=postgresql://u:p@h/d\n", 1, "password", False),
        ("lsf.conf", "LAVA_DATABASE_URL=postgresql//h/d\n", 1, "sqlite:///FILE or postgresql://USER@HOST/NAME is expected", True),
        ("lsf.conf", "LAVA_DATABASE_URL=postgresql://h:x/n\n", 1, "LAVA_DATABASE_URL: its port is no number from 1", True),
        ("lsf.conf", "LSF_MASTER_LIST=m1,m2\n", 1, "LSF_MASTER_LIST: m1,m2 is no name of a host: names have blanks", True),
        ("lsf.conf", "LAVA_TLS_DIR=/t\nLSF_MASTER_LIST=m1 m2\n", 2, "a second master has a store of its own", False),
        ("lsf.conf", "\nLAVA_TLS_DIR=tls\n", 2, "LAVA_TLS_DIR: tls is not an absolute path", True),
        ("lsf.conf", "LAVA_ADMIN_HOSTS=h1 h7\n", 1, "LAVA_ADMIN_HOSTS: h7 is not in lsf.cluster", False),
        ("lsf.conf", '\nLSF_MASTER_LIST="m1 m2\n', 2, 'LSF_MASTER_LIST: the quotation mark " is not closed', True),
        ("lsf.conf", "\nLAVA_METRICS_ADDRESS=99999\n", 2, "LAVA_METRICS_ADDRESS 99999: [HOST:]PORT is expected", True),
        ("lsf.conf", "LAVA_WEB_ADDRESS=h1\n", 1, "LAVA_WEB_ADDRESS h1: [HOST:]PORT is expected", True),
        ("lsb.params", "Begin Parameters\nMAX_JOBID = ten\nEnd Parameters", 2, "not a whole number", True),
        ("lsb.params", "Begin Parameters\nEGROUP_UPDATE_INTERVAL = 9999999999m\nEnd Parameters", 2, "is not hours", True),
        ("lsb.params", "Begin Parameters\nEADMIN_TRIGGER_DURATION = 0\nEnd Parameters", 2, "at least 1 minute", True),
        ("lsb.params", "Begin Parameters\nDEFAULT_QUEUE = nosuch\nEnd Parameters", 2, "no queue nosuch", True),
        ("lsb.params", "Begin Parameters\nMAX_JBID = 1\nEnd Parameters", 2, "unknown parameter MAX_JBID", False),
        (
            "lsb.params",
            "Begin Parameters\nRELAX_JOB_DISPATCH_ORDER = Y\nEnd Parameters",
            2,
            "given out at once, to the first",
            False,
        ),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nRELAX_JOB_DISPATCH_ORDER = Y\nEnd Queue", 3, "not needed", False),
        ("lsb.params", "Begin Parameters\nDEFAULT_LIMIT_IGNORE_USER_GROUP = Y\nEnd Parameters", 2, "for users alone", False),
        (
            "lsb.resources",
            "Begin Limit\nNAME = a\nUSERS = all\nJOBS_PER_SCHED_CYCLE = 5\nEnd Limit",
            4,
            "each cycle looks",
            False,
        ),
        ("lsb.params", "Begin Parameters\nDEFAULT_RESREQ_ORDER = mem,ut\nEnd Parameters", 2, "is not index:index", True),
        ("lsb.params", "Begin Parameters\nGPU_REQ_MERGE = N\nEnd Parameters", 2, "always merge one by one, as with Y", False),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nPRIORITY = x\nEnd Queue", 3, "queue q: PRIORITY", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nGPU_REQ = foo=1\nEnd Queue", 3, "there is no option foo", True),
        ("lsb.applications", "Begin Application\nNAME = a\nGPU_REQ = gvendor=amd\nEnd Application", 3, "NVIDIA only", True),
        ("lsb.queues", "Begin Queue\nPRIORITY = 1\nEnd Queue", 2, "no QUEUE_NAME", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = a/b\nEnd Queue", 2, "cannot have", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nRUN_WINDOW = 8-25\nEnd Queue", 3, "window", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nNQS_QUEUES = a\nEnd Queue", 3, "not supported", False),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nHOSTS = h1 h9\nEnd Queue", 3, "group h9", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nPREEMPTION = PREEMPTIVE[x]\nEnd Queue", 3, "no queue x", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = q\nr1m = high\nEnd Queue", 3, "not a number", True),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME=q\nEnd Queue\nBegin Queue\nQUEUE_NAME=q\nEnd Queue", 5, "twice", True),
        ("lsb.hosts", "Begin Host\nHOST_NAME MXJ\nh9 1\nEnd Host", 3, "host h9 is not in lsf.cluster", True),
        ("lsb.hosts", "Begin Host\nHOST_NAME MXJ\nh1 many\nEnd Host", 3, "MXJ", True),
        ("lsb.hosts", "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\na (b)\nb (a)\nEnd HostGroup", 4, "holds itself", True),
        ("lsb.hosts", "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nh1 (h2)\nEnd HostGroup", 3, "the name of a host", True),
        ("lsb.hosts", "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nall (h2)\nEnd HostGroup", 3, "is a keyword", True),
        ("lsb.hosts", "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\na (h2 h9)\nEnd HostGroup", 3, "group h9", True),
        ("lsb.users", "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nall (bob)\nEnd UserGroup", 3, "is a keyword", True),
        ("lsb.hosts", "Begin Ringroad\nNAME = x\nEnd Ringroad", 1, "not supported", False),
        ("lsb.users", "Begin User\nUSER_NAME MAX_JOBS\nbob -1\nEnd User", 3, "is not between", True),
        ("lsb.resources", "Begin Limit\nNAME = l\nEnd Limit", 2, "bounds nothing", True),
        ("lsb.resources", "Begin Limit\nSLOTS = 1\nUSERS = a\nPER_USER = b\nEnd Limit", 2, "exclude each other", True),
        ("lsb.applications", "Begin Application\nNAME = a\nNICE = 99\nEnd Application", 3, "is not between", True),
        ("lsb.globalpolicies", "", 0, "not supported", False),
    ],
)
def test_each_problem_is_told_with_file_and_line(tmp_path, file, text, line, words, fatal):
    (tmp_path / "lsf.cluster.lab").write_text(CLUSTER)
    (tmp_path / "lsf.shared").write_text(SHARED)
    (tmp_path / file).write_text(text)
    loaded = load(str(tmp_path))
    [problem] = loaded.problems
    assert (problem.file, problem.line, problem.fatal) == (str(tmp_path / file), line, fatal)
    assert words in problem.text
    assert report(loaded.problems).startswith(f"{tmp_path / file}:{line}: " if line else f"{tmp_path / file}: ")


def test_lsfs_own_folders_are_found(tmp_path):
    deep = tmp_path / "conf" / "lsbatch" / "lab" / "configdir"
    deep.mkdir(parents=True)
    (tmp_path / "conf" / "lsf.cluster.lab").write_text(CLUSTER)
    (tmp_path / "conf" / "lsf.shared").write_text(SHARED)
    (deep / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = only\nEnd Queue\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "lsf.conf").write_text(f"LSF_CONFDIR={tmp_path}/conf\nLSB_CONFDIR={tmp_path}/conf/lsbatch\n")
    for confdir in ("etc", "conf"):
        loaded = load(str(tmp_path / confdir))
        assert loaded.problems == ()
        assert (loaded.config.name, [queue.name for queue in loaded.config.queues]) == ("lab", ["only"])


def test_the_cluster_that_lsf_shared_names_is_taken(folder):
    named = folder(lsf__shared="Begin Cluster\nClusterName Servers\nmy-lab (h1 h2)\nEnd Cluster\n")
    assert named.config.name == "my-lab"
    two = "Begin Cluster\nClusterName\nb\na\nEnd Cluster\n"
    loaded = folder(lsf__shared=two, lsf__cluster__a="", lsf__cluster__b="", lsf__cluster__b__old="junk")
    assert loaded.config.name == "b"
    assert [problem.fatal for problem in loaded.problems] == [False]


def test_sizes_follow_the_unit_for_limits(folder):
    queue = "Begin Queue\nQUEUE_NAME = q\nMEMLIMIT = 5 10\nSWAPLIMIT = 1G\nEnd Queue\n"
    [kb] = folder(lsb__queues=queue).config.queues
    [mb] = folder(lsb__queues=queue, lsf__conf="LSF_UNIT_FOR_LIMITS=MB\n").config.queues
    assert (kb.defaults.mem, kb.limits.mem, kb.limits.swap) == (5, 10, 1 << 20)
    assert (mb.defaults.mem, mb.limits.mem, mb.limits.swap) == (5120, 10240, 1 << 20)


def test_gpus_are_read_in_the_unit_for_limits(folder):
    queue = "Begin Queue\nQUEUE_NAME = q\nGPU_REQ = num=2:gmem=3\nEnd Queue\n"
    conf = resolve(folder(lsb__queues=queue, lsf__conf='LSF_UNIT_FOR_LIMITS=GB\nLSB_GPU_REQ="gmem=1:j_exclusive=yes"\n').config)
    assert (conf.queues[0].gpu_req, conf.params.lsb_gpu_req) == ("num=2:gmem=3072M", "j_exclusive=yes:gmem=1024M")


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path):
    (tmp_path / "lsb.queues").mkdir()
    os.mkfifo(tmp_path / "lsb.hosts")
    for problem in load(str(tmp_path)).problems:
        assert problem.fatal
        assert "cannot be read" in problem.text
    assert len(load(str(tmp_path)).problems) == 2


def test_problems_come_file_by_file_and_line_by_line(folder):
    problems = folder(lsf__conf="LSF_LIM_PORT=1\njunk\nX=1\n", lsb__queues="junk\n").problems
    assert [(os.path.basename(problem.file), problem.line) for problem in problems] == [
        ("lsf.conf", 1),
        ("lsf.conf", 2),
        ("lsf.conf", 3),
        ("lsb.queues", 1),
    ]


FILES = (
    "lsf.conf",
    "lsf.cluster.lava",
    "lsf.shared",
    "lsb.queues",
    "lsb.hosts",
    "lsb.users",
    "lsb.params",
    "lsb.resources",
    "lsb.applications",
)
TOKENS = (
    "Begin End Queue Host HostGroup UserGroup User Limit Parameters Resource ResourceMap Application QUEUE_NAME "
    '= ( ) [ ] HOST_NAME MXJ default h1 h[1-9] h[1-99999999] ! - () ~all \\ # " #if #else #endif time 20:00-8:00 8 4G '
    "0.5/2 RUNLIMIT FAIRSHARE USER_SHARES[[a,1]] PREEMPTIVE[q] MEMLIMIT NAME GROUP_NAME GROUP_MEMBER a b LOCATION "
    "RESOURCENAME 4@[a"
)
WORDS = st.sampled_from(TOKENS.split())
CONFIG_LIKE = st.lists(st.one_of(WORDS, st.just("\n"), st.text(max_size=5)), max_size=60).map(" ".join)


def test_the_value_of_a_resource_may_have_blanks_in_quotes(tmp_path):
    (tmp_path / "lsf.shared").write_text(
        "Begin Resource\nRESOURCENAME TYPE INTERVAL INCREASING DESCRIPTION\n"
        "rack String () () ()\nbig Boolean () () ()\nroom String () () ()\nEnd Resource\n"
    )
    (tmp_path / "lsf.cluster.lava").write_text(
        'Begin Host\nHOSTNAME RESOURCES\nh1 (rack="r 2" big)\nh2 (big rack="r2")\nEnd Host\n'
        'Begin ResourceMap\nRESOURCENAME LOCATION\nroom ("a b"@[h1] c@[h2])\nEnd ResourceMap\n'
    )
    loaded = load(str(tmp_path))
    assert loaded.problems == ()
    assert [host.resources for host in loaded.config.hosts] == [(("rack", "r 2"), ("big", "")), (("big", ""), ("rack", "r2"))]
    assert [(one.value, one.hosts) for one in loaded.config.resources[2].instances] == [("a b", ("h1",)), ("c", ("h2",))]


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=st.sampled_from(FILES), text=st.one_of(st.text(max_size=300), CONFIG_LIKE))
def test_any_text_in_any_file_is_read_or_reported(tmp_path, file, text):
    path = tmp_path / file
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    try:
        loaded = load(str(tmp_path))
        assert report(loaded.problems)
        assert loaded.config.queues
    finally:
        os.unlink(path)


def test_checkpoint_folder_and_period(folder):
    [queue] = folder(lsb__queues="Begin Queue\nQUEUE_NAME = q\nCHKPNT = /share/chk 30\nEnd Queue\n").config.queues
    assert queue.chkpnt == Chkpnt("/share/chk", 1800)


def test_every_parameter_that_is_read_has_a_place() -> None:
    assert {name.lower() for name in (*LSB_PARAMS, *LSF_CONF)} <= set(SiteParams.__struct_fields__)


AS_WRITTEN = """LAVA_HEALTH_PERIOD=5m
LAVA_HEALTH_TIMEOUT=many
LAVA_CHKPNT_COPY_WAIT=2m
LAVA_CHKPNT_KEEP=+5
LAVA_JOB_PIDS=+100
LAVA_OUTPUT_LIMIT=-1
LAVA_OUTPUT_USER_LIMIT=
LSB_SET_TMPDIR=True
LSF_ROOT_USER=perhaps
LSF_MGMT_LIST=m1 m2
"""


def test_agents_act_on_what_ckconfig_has_read(tmp_path: Path) -> None:
    """Units and all; on the default where it says that a value cannot be read."""
    (tmp_path / "lsf.conf").write_text(AS_WRITTEN)
    found, read = settings_of(read_lsf_conf(str(tmp_path / "lsf.conf"))), load(str(tmp_path)).config.params
    for name in (*(line.partition("=")[0].lower() for line in AS_WRITTEN.splitlines()[:-1]), "lsf_master_list"):
        assert getattr(found, name) == getattr(read, name), name
    assert (found.lava_health_period, found.lava_health_timeout, found.lava_chkpnt_copy_wait) == (300, 30, 120)
    assert (found.lava_job_pids, found.lsb_set_tmpdir, found.lsf_master_list) == (100, True, ("m1", "m2"))


@pytest.mark.parametrize("lines", [("LSF_MGMT_LIST=m1 m2", "LSF_MASTER_LIST=m3"), ("LSF_MASTER_LIST=m3", "LSF_MGMT_LIST=m1 m2")])
def test_the_newer_name_of_a_parameter_counts(tmp_path: Path, lines: tuple[str, ...]) -> None:
    (tmp_path / "lsf.conf").write_text("\n".join(lines))
    loaded = load(str(tmp_path))
    assert settings_of(read_lsf_conf(str(tmp_path / "lsf.conf"))).lsf_master_list == ("m1", "m2")
    assert loaded.config.params.lsf_master_list == ("m1", "m2")
    [said] = [problem for problem in loaded.problems if "LSF_MASTER_LIST" in problem.text]
    assert (said.text, said.line) == (
        "LSF_MASTER_LIST has no effect, as LSF_MGMT_LIST is set: the same by its newer name",
        lines.index("LSF_MASTER_LIST=m3") + 1,
    )


def test_an_empty_newer_name_leaves_the_older_one(tmp_path: Path) -> None:
    (tmp_path / "lsf.conf").write_text("LSF_MGMT_LIST=\nLSF_MASTER_LIST=m3\n")
    assert load(str(tmp_path)).config.params.lsf_master_list == ("m3",)
    assert settings_of(read_lsf_conf(str(tmp_path / "lsf.conf"))).lsf_master_list == ("m3",)


def test_what_commands_take_for_yes_is_what_the_configuration_does() -> None:
    assert [is_yes(word) for word in ("Y", "Yes", "true", " 1 ", "n", "", "on")] == [True] * 4 + [False] * 3
    assert SiteParams().lava_rundir == RUNDIR
