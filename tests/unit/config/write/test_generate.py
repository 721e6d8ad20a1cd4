"""The folder that `lava up` writes, and what badmin says of it."""

import pytest

from config.read.load import load
from config.write.generate import write_cluster
from config.write.showconf import showconf


def test_a_written_cluster_loads_without_a_problem(tmp_path):
    confdir = tmp_path / "conf"
    extra = {"LAVA_HEARTBEAT": "1", "LAVA_HOST_TIMEOUT": "4", "LAVA_LEASE": "10"}
    extra |= {"LSB_SHAREDIR": "/a b/#c", "LSF_ROOT_USER": "Y"}
    write_cluster(confdir, "mine", [("host1", 4), ("host2", None)], ["ann", "bob"], extra)
    loaded = load(str(confdir))
    config = loaded.config
    assert loaded.problems == ()
    assert (config.name, config.admins) == ("mine", ("ann", "bob"))
    assert [(host.name, host.slots, host.batch) for host in config.hosts] == [("host1", 4, True), ("host2", None, True)]
    assert config.default_host is None
    assert (config.params.lava_lease, config.params.lava_lease_margin) == (10, 40)
    assert (config.params.lsb_sharedir, config.params.lsf_root_user) == ("/a b/#c", True)
    assert (confdir / "lsf.conf").read_text().count("LAVA_LEASE=") == 1


def test_lsfs_place_of_lsb_params_leads_there(tmp_path):
    write_cluster(tmp_path, "mine", [("host1", 1)], ["ann"], {})
    text = (tmp_path / "lsbatch" / "mine" / "configdir" / "lsb.params").read_text()
    assert "DEFAULT_QUEUE  = normal   " in text


def test_files_that_exist_are_kept(tmp_path):
    (tmp_path / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = own\nEnd Queue\n")
    (tmp_path / "lsb.params").write_text("")
    for _ in range(2):
        write_cluster(tmp_path, "lava", [("host1", 1)], ["ann"], {})
    assert [queue.name for queue in load(str(tmp_path)).config.queues] == ["own"]


@pytest.mark.parametrize(
    ("name", "hosts", "admins", "extra"),
    [
        ("no/way", [("h", 1)], ["a"], {}),
        ("c", [], ["a"], {}),
        ("c", [("h 1", 1)], ["a"], {}),
        ("c", [("h", -1)], ["a"], {}),
        ("c", [("h", 1)], ["a b"], {}),
        ("c", [("h", 1)], ["a"], {"X": "1\nY=2"}),
        ("c", [("h", 1)], ["a"], {"X": "' \" # \\"}),
    ],
)
def test_names_and_values_that_cannot_be_are_refused(tmp_path, name, hosts, admins, extra):
    with pytest.raises(ValueError):
        write_cluster(tmp_path, name, hosts, admins, extra)


def test_showconf_is_a_heading_and_pairs(tmp_path):
    write_cluster(tmp_path, "lava", [("host1", 1)], ["ann"], {"LAVA_DATABASE_URL": "postgresql://u:geheim@h/d"})
    heading, *lines = showconf(load(str(tmp_path)).config, "host1", "Fri Nov 20 11:31:35 2026")
    assert heading == "MBD configuration at Fri Nov 20 11:31:35 2026 on host1"
    pairs = dict(line.strip().split(" = ") for line in lines)
    assert {"LSB_SHAREDIR", "LSF_CONFDIR"} <= set(pairs)
    assert pairs["LSF_UNIT_FOR_LIMITS"] == "MB"
    assert "geheim" not in "\n".join(lines)
