"""What a TrainJob changes in its runtime's pods: runtimePatches, and podTemplateOverrides and podSpecOverrides of older versions.

Rule: as a strategic merge of Kubernetes. Mappings are merged, rows with names by their names; other rows are added, words take
the place of words.
"""

from __future__ import annotations

from cli.jobs.fields import Fields
from cli.jobs.model import JobFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json

Patch = tuple[Fields, str, "Json"]
"""Where it stands, the replicated job that it is about, and what it changes in that."""


def patched(runtime: Json, where: str, spec: Fields, job: JobFile, open_names: tuple[str, ...]) -> Json:
    """The runtime with what the job's spec changes.

    ``where`` names the runtime; ``open_names``: replicated jobs that it has without saying so. Raises Fail for others.
    """
    found = [*_patches(spec, job), *_overrides(spec, job)]
    if not found:
        return runtime
    top = Fields(runtime, where)
    template = top.part("template")
    inner = template.part("spec")
    rows = {Fields(row, where).text("name"): row for row in inner.rows("replicatedJobs")}
    for place, name, change in found:
        if name not in rows and name not in open_names:
            raise place.fail("name", f"{name[:64]}: the runtime has no such replicated job")
        rows[name] = merged(rows.get(name) or _plain(name), change)
    jobs: Json = list(rows.values())
    changed: Json = _whole(inner) | {"replicatedJobs": jobs}
    changed = _whole(template) | {"spec": changed}
    return _whole(top) | {"template": changed}


def _plain(name: str) -> Json:
    container: Json = {"name": "node"}
    pod: Json = {"spec": {"containers": [container]}}
    return {"name": name, "template": {"spec": {"template": pod}}}


def _whole(fields: Fields) -> dict[str, Json]:
    return {name: fields.any(name) for name in fields.names()}


def _patches(spec: Fields, job: JobFile) -> list[Patch]:
    """runtimePatches: each of a manager of its own, and of replicated jobs by their names."""
    found: list[Patch] = []
    for at, row in enumerate(spec.rows("runtimePatches")):
        patch = Fields(row, f"{spec.where}.runtimePatches[{at}]")
        patch.any("manager")
        runtime = patch.part("trainingRuntimeSpec")
        template = runtime.part("template")
        template.any("metadata")
        inner = template.part("spec")
        for number, one in enumerate(inner.rows("replicatedJobs")):
            place = Fields(one, f"{inner.where}.replicatedJobs[{number}]")
            found.append((place, place.text("name"), one))
        others = (*patch.others(), *runtime.others(), *template.others(), *inner.others())
        job.ignore(*(f"runtimePatches.{name}" for name in others))
    return found


def _overrides(spec: Fields, job: JobFile) -> list[Patch]:
    """Of the pods of some replicated jobs."""
    found: list[Patch] = []
    for field in ("podTemplateOverrides", "podSpecOverrides"):
        for at, row in enumerate(spec.rows(field)):
            one = Fields(row, f"{spec.where}.{field}[{at}]")
            targets = [Fields(target, f"{one.where}.targetJobs[{n}]") for n, target in enumerate(one.rows("targetJobs"))]
            own: Json = {name: one.any(name) for name in one.names() if name != "targetJobs"}
            pod: Json = {"spec": own} if field == "podSpecOverrides" else own
            change: Json = {"template": {"spec": {"template": pod}}}
            found += [(target, target.text("name"), change) for target in targets]
            if not targets:
                job.ignore(f"{field}[{at}] (it names no targetJobs)")
    return found


def merged(old: Json, new: Json) -> Json:
    """``old`` with what ``new`` changes in it."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {name: merged(old.get(name), value) for name, value in new.items()}
    if isinstance(old, list) and isinstance(new, list) and all(isinstance(one, dict) for one in (*old, *new)):
        return _merged_rows(old, new)
    return new


def _merged_rows(old: list[Json], new: list[Json]) -> Json:
    """Rows with names by their names, others behind each other."""
    found = list(old)
    for row in new:
        name = row.get("name") if isinstance(row, dict) else None
        at = next((at for at, one in enumerate(found) if isinstance(one, dict) and name and one.get("name") == name), -1)
        if at < 0:
            found.append(row)
        else:
            found[at] = merged(found[at], row)
    return found
