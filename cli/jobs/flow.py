"""JobFlow of Volcano (flow.volcano.sh): jobs made of JobTemplates, of which some wait for others.

A JobTemplate is a document of the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cli.jobs.fields import Fields
from cli.jobs.model import JobFile
from cli.jobs.patches import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json

KIND, TEMPLATE = "JobFlow", "JobTemplate"
GROUP = "flow.volcano.sh"
_PHASES = {"Completed": "done", "Failed": "exit", "Aborted": "exit", "Terminated": "exit", "Running": "started"}
"""What a phase of a job that is waited for is as a condition."""


def templates_of(documents: list[Json]) -> dict[str, Json]:
    """``JobTemplate/name`` to spec of each template among documents."""
    tops = [Fields(one, TEMPLATE) for one in documents if isinstance(one, dict) and one.get("kind") == TEMPLATE]
    return {f"{TEMPLATE}/{top.part('metadata').text('name')}": top.any("spec") for top in tops}


def read_flow(
    top: Fields, name: str, namespace: str, templates: Mapping[str, Json], read: Callable[[Json, str], JobFile]
) -> list[JobFile]:
    """The jobs of a flow, named ``name-TEMPLATE``. ``read``: a manifest, and where it is, as a job."""
    spec = top.part("spec")
    spec.any("jobRetainPolicy")  # how long a job is shown is the site's: CLEAN_PERIOD
    jobs: dict[str, JobFile] = {}
    depends: dict[str, Fields] = {}
    for flow in spec.items("flows"):
        title = flow.text("name")
        if f"{TEMPLATE}/{title}" not in templates:
            raise flow.fail("name", f"{title[:64]}: give its {TEMPLATE} as a document too")
        if title in jobs:
            raise flow.fail("name", f"{title[:64]} is there twice")
        meta: Json = {"name": f"{name}-{title}", "namespace": namespace or "default"}
        made: Json = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": meta,
            "spec": merged(templates[f"{TEMPLATE}/{title}"], flow.part("patch").any("spec") or {}),
        }
        jobs[title], depends[title] = read(made, f"{TEMPLATE} {title[:64]}"), flow.part("dependsOn")
        jobs[title].ignore(*(f"flows.{one}" for one in flow.others()))
    if not jobs:
        raise spec.fail("flows", "there is none")
    for title, job in jobs.items():
        job.before = _before(depends[title], jobs)
        if job.before:
            job.options["ti"] = True  # it never runs where what it waits for has come otherwise
    _refuse_circles(spec, jobs)
    found = list(jobs.values())
    found[0].ignore(*spec.unread())
    return found


def _before(depends: Fields, jobs: Mapping[str, JobFile]) -> list[tuple[str, JobFile]]:
    """(condition, job) of all that a job waits for."""
    if depends.part("probe").names():
        raise depends.fail("probe", "lava waits for ends and starts of jobs, and looks at none of their ports")
    wanted = [("targets", one, "Completed") for one in depends.words("targets")]
    for at, target in enumerate(depends.items("targetsWithStatus")):
        phase = target.text("phase", "Completed")
        if phase not in _PHASES:
            raise target.fail("phase", f"{phase[:40]}: it is one of {', '.join(_PHASES)}")
        wanted.append((f"targetsWithStatus[{at}].name", target.text("name"), phase))
    if unknown := next(((field, one) for field, one, _ in wanted if one not in jobs), None):
        raise depends.fail(unknown[0], f"{unknown[1][:64]}: there is no such flow")
    return [(_PHASES[phase], jobs[one]) for _, one, phase in wanted]


def _refuse_circles(spec: Fields, jobs: Mapping[str, JobFile]) -> None:
    left = dict(jobs)
    while left:
        waiting = {id(job) for job in left.values()}
        ready = [title for title, job in left.items() if waiting.isdisjoint(id(one) for _, one in job.before)]
        if not ready:
            raise spec.fail("flows", f"{', '.join(left)} wait for each other")
        for title in ready:
            del left[title]
