"""Words of jobs with roles that commands, master and agents share."""

MAX_TASKS = 10_000
"""Of all roles of a job."""
LAUNCHERS = ("launcher", "launcher_worker")
"""Kinds of roles that start tasks in the others. The second one has tasks started in itself too."""
PLUGINS = {
    "pytorch": ("master", "worker"),
    "tensorflow": ("ps", "worker", "chief", "evaluator"),
    "mpi": ("master", "worker"),
}
"""Volcano's plugins for frameworks, as words of ``volcano(...)``, and what each calls the roles of a job."""
