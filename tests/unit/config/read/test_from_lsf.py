"""The files of a cluster of LSF 10.1 as they are: what is taken, and what the site is told."""

import pytest

CLUSTER = "Begin Host\nHOSTNAME model type server RESOURCES\nh[1-4] ! ! 1 ()\nEnd Host\n"
SHARED = "Begin Cluster\nClusterName\nlab\nEnd Cluster\n"


TAKEN = [
    ("lsf.conf", "LSB_SET_TMPDIR=MY_TMP"),
    ("lsb.params", "CONDENSE_PENDING_REASONS=PARTIAL"),
    ("lsb.params", "RELAX_JOB_DISPATCH_ORDER=ALLOC_REUSE_DURATION[5 30] SHARE[user]"),
    ("lsb.params", "PREEMPT_JOBTYPE=EXCLUSIVE BACKFILL AFFINITY"),
    ("lsb.queues", "QUEUE_NAME=q\nIMPT_JOBBKLG=infinit\nMAX_RSCHED_TIME=infinit"),
    ("lsb.applications", "NAME=a\nUSE_PAM_CREDS=limits session"),
]
SECTIONS = {"lsb.params": "Parameters", "lsb.queues": "Queue", "lsb.applications": "Application"}


@pytest.mark.parametrize(("file", "lines"), TAKEN)
def test_a_value_of_lsf_10_1_never_keeps_the_master_from_starting(folder, file, lines):
    """Forms that IBM's reference has: of a parameter without effect the warning is all there is to say."""
    kind = SECTIONS.get(file, "")
    text = f"Begin {kind}\n{lines}\nEnd {kind}\n" if kind else lines + "\n"
    found = folder(**{file.replace(".", "__"): text})
    assert not found.has_errors, found.problems
    told = {problem.text.split(": ")[1].split()[0] for problem in found.problems}
    names = {line.split("=")[0] for line in lines.split("\n")}
    assert told == names - {"LSB_SET_TMPDIR", "PREEMPT_JOBTYPE", "QUEUE_NAME", "NAME"}


MODULES = """\
Begin PluginModule
SCH_PLUGIN        RB_PLUGIN  SCH_DISABLE_PHASES
schmod_default    ()         ()
schmod_fairshare  ()         ()
acme_order        ()         ()
End PluginModule
"""


def test_lsfs_own_modules_ask_for_no_answer_and_those_of_a_site_do(folder):
    """Each site of LSF has lsb.modules, as it was installed."""
    first, own = folder(lsb__modules=MODULES).problems
    assert (first.note, own.note, own.fatal, own.line) == (True, False, False, 5)
    assert own.text.startswith("plug-in acme_order is not supported by lava and has no effect: SCHEDULER of a queue")
    (only,) = folder(lsb__modules=MODULES.replace("acme_order", "schmod_fcfs")).problems
    assert only.note


CONF = """\
LSF_LIM_PORT=7869
LSF_LOCAL_RESOURCES="[resource gpu] [gpus 4]"
LSB_SHARDIR=/work
LSB_BHOSTS_FORMAT="host_name status"
LSF_LSLOAD_FORMAT="HOST_NAME ut"
LSB_UTMP=Y
FOO_BAR=1
"""


def test_lsf_conf_tells_the_needless_from_the_missing_and_the_misspelt(folder):
    """A note asks for no answer: it is for what no user of LSF would miss."""
    found = folder(lsf__conf=CONF)
    told = [(problem.line, problem.note, problem.text.removeprefix("lsf.conf: ")) for problem in found.problems]
    assert told == [
        (1, True, "LSF_LIM_PORT is not needed by lava and has no effect"),
        (2, False, "LSF_LOCAL_RESOURCES: [gpus 4] is not [resource NAME] or [resourcemap VALUE*NAME]"),
        (3, False, "unknown parameter LSB_SHARDIR"),
        (6, False, "LSB_UTMP is not supported by lava and has no effect"),
        (7, False, "unknown parameter FOO_BAR"),
    ]
    assert (found.config.params.lsb_bhosts_format, found.config.params.lsf_lsload_format) == ("host_name status", "HOST_NAME ut")


def test_ranges_of_hosts_in_queues_partitions_and_limits_are_their_hosts(folder):
    queue = "Begin Queue\nQUEUE_NAME=q\nHOSTS=h[1-2]+1 ~h[3-4]\nEnd Queue\n"
    part = "Begin HostPartition\nHPART_NAME=p\nHOSTS=h[1-3]\nUSER_SHARES=[default,1]\nEnd HostPartition\n"
    limits = "Begin Limit\nNAME=l\nPER_HOST=h[1-2]\nSLOTS=1\nEnd Limit\nBegin Limit\nNAME=m\nHOSTS=h[3-4]\nJOBS=1\nEnd Limit\n"
    found = folder(lsf__cluster__lab=CLUSTER, lsf__shared=SHARED, lsb__queues=queue, lsb__hosts=part, lsb__resources=limits)
    assert not found.has_errors, found.problems
    assert found.config.queues[0].hosts == ("h1+1", "h2+1", "~h3", "~h4")
    assert found.config.partitions[0].hosts == ("h1", "h2", "h3")
    assert [limit.hosts for limit in found.config.limits] == [("h1", "h2"), ("h3", "h4")]
