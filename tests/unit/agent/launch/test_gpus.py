"""What a part and each of its tasks see of a host's GPUs."""

from __future__ import annotations

import pytest

from agent.launch import environ, gpus
from agent.starter.protocol.part import NOTHING, CgroupLimits, DeviceRule, MpsSpec, PartSpec, TaskSpec
from proto import agent_pb2 as pb

HOSTS = [
    pb.HostSlots(host="h1", slots=2, gpus=["GPU-a", "GPU-c", "GPU-b", "GPU-d"]),
    pb.HostSlots(host="h2", slots=1, gpus=["MIG-e", "MIG-f"]),
]


def start(place: int) -> pb.Start:
    return pb.Start(hosts=HOSTS, place=place)


def test_a_task_has_its_own_gpus_where_they_are_asked_for_by_task() -> None:
    text = pb.JobText(gpus_per_task=2)
    assert gpus.by_task(text, start(0)) == [["GPU-a", "GPU-c"], ["GPU-b", "GPU-d"]]
    assert gpus.of_rank(text, start(0), 1) == {
        "CUDA_VISIBLE_DEVICES": "GPU-b,GPU-d",
        "NVIDIA_VISIBLE_DEVICES": "GPU-b,GPU-d",
    }
    assert gpus.of_part(text, start(1)) == {
        "CUDA_VISIBLE_DEVICES": "MIG-e,MIG-f",
        "CUDA_VISIBLE_DEVICES3": "MIG-e,MIG-f",
        "NVIDIA_VISIBLE_DEVICES": "MIG-e,MIG-f",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def test_tasks_see_all_of_the_host_where_the_number_is_by_host_or_does_not_fit() -> None:
    for each in (0, 1):
        text = pb.JobText(gpus_per_task=each)
        assert gpus.by_task(text, start(0)) == []
        assert gpus.of_rank(text, start(0), 0) == {}
    assert gpus.of_part(pb.JobText(), start(0))["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-c,GPU-b,GPU-d"


@pytest.mark.parametrize(
    ("slots", "found"),
    [
        (8, "a a c c b b d d"),
        (6, "a a c b b d"),
        (5, "a a c b d"),
        (4, ""),
        (2, ""),
    ],
)
def test_block_gives_one_gpu_after_the_other_to_as_many_tasks(slots: int, found: str) -> None:
    begin = pb.Start(hosts=[pb.HostSlots(host="h1", slots=slots, gpus=["GPU-a", "GPU-c", "GPU-b", "GPU-d"])])
    own = gpus.by_task(pb.JobText(gpu_blocks=True), begin)
    assert " ".join(one.removeprefix("GPU-") for (one,) in own) == found
    if own:
        assert gpus.of_rank(pb.JobText(gpu_blocks=True), begin, slots - 1)["CUDA_VISIBLE_DEVICES"] == "GPU-d"


def test_a_job_without_gpus_sees_none() -> None:
    found = gpus.of_part(pb.JobText(), pb.Start(hosts=[pb.HostSlots(host="h", slots=1)]))
    assert found == {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


def test_a_submission_does_not_bring_its_own() -> None:
    given = {"CUDA_VISIBLE_DEVICES": "0,1", "CUDA_VISIBLE_DEVICES1": "0", "NVIDIA_VISIBLE_DEVICES": "all"}
    assert environ.inherited(given | {"CUDA_VISIBLE_DEVICES_OF_MINE": "x"}) == {"CUDA_VISIBLE_DEVICES_OF_MINE": "x"}


def test_other_gpus_cannot_be_opened_where_the_site_says_so() -> None:
    """By minor numbers; of a MIG instance that of its GPU. A number that is not known makes no rule that takes it away."""
    cards = [pb.Gpu(uuid=f"GPU-{name}", minor=minor) for minor, name in enumerate("abcd")]
    cards += [
        pb.Gpu(uuid="MIG-e", parent="GPU-c", minor=-1),
        pb.Gpu(uuid="MIG-f", parent="GPU-c"),
        pb.Gpu(uuid="GPU-x", minor=-1),
    ]
    text, limits = pb.JobText(enforce_gpu=True), NOTHING._replace(cgroup=CgroupLimits(pids=7))

    def rules(*uuids: str) -> CgroupLimits | None:
        return gpus.apart(limits, text, pb.Start(hosts=[pb.HostSlots(gpus=uuids)]), cards).cgroup

    assert rules("GPU-d", "GPU-b") == CgroupLimits(pids=7, devices=(DeviceRule(195, (1, 3), 254),))
    assert rules("MIG-e", "MIG-f") == CgroupLimits(pids=7, devices=(DeviceRule(195, (2,), 254),))
    assert rules() == CgroupLimits(pids=7, devices=(DeviceRule(195, (), 254),))
    assert rules("GPU-x") == rules("GPU-unknown") == CgroupLimits(pids=7)
    assert gpus.apart(limits, pb.JobText(), pb.Start(hosts=[pb.HostSlots()]), cards) == limits
    assert gpus.apart(limits, text, pb.Start(hosts=[pb.HostSlots()]), ()) == limits


def test_a_task_is_a_client_of_the_mps_daemon_that_has_its_gpu() -> None:
    cards = [pb.Gpu(uuid=f"GPU-{name}", numa=number // 2) for number, name in enumerate("abcd")]

    def part(mps: str) -> PartSpec:
        text = pb.JobText(gpu_mps=mps, gpus_per_task=2)
        first = start(0)
        tasks = tuple(TaskSpec(rank, gpus.of_rank(text, first, rank)) for rank in (0, 1))
        whole = NOTHING._replace(uid="x", env=gpus.of_part(text, first), tasks=tasks)
        return gpus.with_mps(whole, text, first, cards, "/tmp")

    def pipes(found: PartSpec) -> list[str]:
        return [env["CUDA_MPS_PIPE_DIRECTORY"] for env in (found.env, *(task.env for task in found.tasks or ()))]

    assert part("yes").mps == (MpsSpec("/tmp/lava-x.mps0", "GPU-a,GPU-c,GPU-b,GPU-d"),)
    assert pipes(part("yes,shared")) == ["/tmp/lava-x.mps0/pipe"] * 3
    assert part("per_socket").mps == (MpsSpec("/tmp/lava-x.mps0", "GPU-a,GPU-b"), MpsSpec("/tmp/lava-x.mps1", "GPU-c,GPU-d"))
    assert [daemon.gpus for daemon in part("per_gpu").mps] == ["GPU-a", "GPU-c", "GPU-b", "GPU-d"]
    assert pipes(part("per_gpu")) == ["/tmp/lava-x.mps0/pipe", "/tmp/lava-x.mps0/pipe", "/tmp/lava-x.mps2/pipe"]
    hidden = part("yes,nocvd")
    assert not [name for env in (hidden.env, *(task.env for task in hidden.tasks or ())) for name in env if "CUDA_VIS" in name]
    assert part("no").mps == part("").mps == ()
    assert "CUDA_MPS_PIPE_DIRECTORY" not in part("no").env
