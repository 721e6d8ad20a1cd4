"""What other people's launchers find in a job's environment, and the part's fields for blaunch."""

from __future__ import annotations

from pathlib import Path

from agent.launch import launchers, mpi
from agent.launch.hostfiles import HostFiles
from agent.launch.site import Site
from agent.starter.protocol.part import BlaunchSpec, LinkSpec
from config.read.params import settings_of
from proto import agent_pb2 as pb


def site(**conf: str) -> Site:
    return Site(
        host="h1", run_dir="/run", spool="/spool", conf_dir="/conf", conf=conf, settings=settings_of(conf), address="10.0.0.1"
    )


def start(*hosts: tuple[str, int, str], place: int = 0) -> pb.Start:
    slots = [pb.HostSlots(host=host, slots=count, address=address) for host, count, address in hosts]
    return pb.Start(hosts=slots, place=place, cert_pem=b"CERT", key_pem=b"KEY")


TWO = (("h1", 2, "10.0.0.1"), ("h2", 1, "10.0.0.2"))


def test_each_library_is_pointed_to_blaunch() -> None:
    """Open MPI 4.1 and 5.0, Intel MPI; Hydra finds it by LSF_BINDIR."""
    env = launchers.shared(site(LSF_BINDIR="/lava/bin"), 1000, pb.JobText())
    assert env["OMPI_MCA_plm_rsh_agent"] == env["PRTE_MCA_plm_ssh_agent"] == "/lava/bin/blaunch"
    assert env["I_MPI_HYDRA_BOOTSTRAP"] == "lsf"
    assert env["I_MPI_HYDRA_BOOTSTRAP_EXEC"] == "/lava/bin/blaunch"
    assert not {"OMPI_ALLOW_RUN_AS_ROOT", "LAVA_MPI", "HYDRA_IFACE"} & env.keys()


def test_nothing_points_to_blaunch_where_it_is_disabled() -> None:
    text = pb.JobText(djob_disabled=True, launch="openmpi")
    env = launchers.shared(site(LSF_BINDIR="/lava/bin"), 1000, text)
    assert not any("blaunch" in value or (value == "lsf" and "BOOTSTRAP" in name) for name, value in env.items())
    assert env["LAVA_MPI"] == "openmpi"
    assert launchers.serve(start(*TWO), text) is None


def test_root_may_run_open_mpi_where_root_may_have_jobs() -> None:
    """Refused by default by the library, allowed where the site allows root's jobs."""
    env = launchers.shared(site(), 0, pb.JobText(launch="openmpi"))
    assert env["OMPI_ALLOW_RUN_AS_ROOT"] == env["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    assert env["LAVA_MPI"] == "openmpi"
    assert env["PRTE_MCA_plm_ssh_agent"] == "blaunch"


def test_a_site_may_name_the_interface() -> None:
    """Where names do not resolve, mpiexec gives its proxies an address."""
    env = launchers.shared(site(LAVA_MPI_INTERFACE="eth1"), 1000, pb.JobText())
    assert (env["HYDRA_IFACE"], env["I_MPI_HYDRA_IFACE"]) == ("eth1", "eth1")
    assert launchers.interface_of("127.0.0.1") == "lo"
    assert launchers.interface_of("203.0.113.77") == ""


def test_open_mpis_host_file(tmp_path: Path) -> None:
    """Slots are written; hosts that are one machine are named as the machine calls itself."""
    names = launchers.names(start(*TWO).hosts, "10.0.0.1", "machine")
    assert names == ["h1", "h1", "h2"]
    assert launchers.names(start(("a", 1, "127.0.0.1"), ("b", 1, "127.0.0.1")).hosts, "127.0.0.1", "vm") == ["vm", "vm"]
    assert launchers.names(start(("h1", 2, "10.0.0.1")).hosts, "10.0.0.1", "machine") == ["machine"] * 2
    files = HostFiles(str(tmp_path))
    path = files.slots_of(names)
    assert Path(path).read_text() == "h1 slots=2\nh2 slots=1\n"
    assert files.slots_of(names) == path


def test_a_part_serves_tasks_when_the_job_has_several_slots() -> None:
    """Several hosts get a link as well; one slot needs nothing."""
    text = pb.JobText()
    one_slot, one_host, two = start(("h1", 1, "")), start(("h1", 4, "")), start(*TWO, place=1)
    assert (launchers.serve(one_slot, text), mpi.link(one_slot, "10.0.0.1", ranks=False)) == (None, None)
    assert (launchers.serve(one_host, text), mpi.link(one_host, "10.0.0.1", ranks=False)) == (BlaunchSpec(0, ("h1",)), None)
    assert launchers.serve(two, text) == BlaunchSpec(1, ("h1", "h2"))
    assert mpi.link(two, "10.0.0.2", ranks=False) == LinkSpec(1, "CERT", "KEY", nodes=2, bind="10.0.0.2", ranks=False)
