"""A submission put together: options from script and command line, environment, esubs -> the ask, sent and reported."""

from __future__ import annotations

import os
import time

from cli.client.client import Client, read_conf
from cli.client.context import FOLDER_GONE, Context, Fail, Refused
from cli.client.options import HELP
from cli.client.texts import is_text, printable
from cli.submit.submit_options import propagated
from config.lsfconf import is_yes
from proto.options import OPTIONS, SECRETS_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options
    from cli.submit.esub import Site
    from cli.submit.script import Work
    from proto.answers import Answer

LAUNCHERS = (
    "mpirun",
    "mpiexec",
    "mpiexec.hydra",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpiexec.mpich",
    "orterun",
    "prterun",
    "srun",
)
KILLED_WHILE_PENDING = 126
NOT_SENT = {*HELP, *(option.name for option in OPTIONS if not option.sent and option.only != "bmod")}
BAD_RESREQ = "Bad resource requirement syntax"


def passed_environment(context: Context, options: Options) -> dict[str, str]:
    """The job's environment. What no text can hold is left out, and said."""
    wish = options.get("env")
    env = propagated(context.environ, wish if isinstance(wish, str) else None)
    bad = [] if is_text("".join([*env, *env.values()])) else [name for name, value in env.items() if not is_text(name + value)]
    for name in bad:
        context.err(f"bsub: the variable {printable(name)} holds bytes that are not UTF-8 and is not passed on\n")
        del env[name]
    return env


def home_of(context: Context) -> str:
    """The caller's home folder."""
    home = context.environ.get("HOME")
    if home:
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def submission(context: Context, work: Work, options: Options, env: dict[str, str], restart_of: int = 0) -> Frame:
    """The ask."""
    if not context.cwd:
        raise Fail(FOLDER_GONE)
    sent = {name: value for name, value in options.items() if name not in NOT_SENT}
    frame: Frame = {
        "ask": "submit",
        "command": work.command,
        "script": work.script,
        "env": env,
        "cwd": context.cwd,
        "home": home_of(context),
        "umask": context.umask,
        "shell": context.environ.get("SHELL", ""),
        "options": sent,
    }
    if restart_of:
        frame["restart_of"] = restart_of
    if folder := checkpoint_folder(sent.get("k"), context):
        frame["checkpoint_folder"] = folder
    _check_text(frame)
    check_options(sent)
    return frame


def missing_secrets(given: object, home: str) -> list[tuple[str, str]]:
    """(variable, file) of what ``-secret`` names and is not here. Other hosts may have it, where homes are not shared."""
    found = []
    for word in str(given or "").split():
        name, named, path = word.partition("=")
        path = os.path.join(home, path.removeprefix("~/")) if named else os.path.join(home, SECRETS_FOLDER, name)
        if not os.path.exists(path):
            found.append((name, path))
    return found


def checkpoint_folder(given: object, context: Context) -> str:
    """The folder of ``-k`` that all hosts must see, without links, so that the master can tell where it is; "" for none.

    That is the one with copies, where generations are staged; where they are copied to hosts there is none.
    """
    words = str(given[-1] if isinstance(given, list) and given else given or "").split()
    folder = words[0] if words else ""
    for word in words[1:]:
        if word.startswith("stage="):
            folder = word.removeprefix("stage=") or folder
        elif word == "stage":
            folder = read_conf(context).get("LAVA_CHKPNT_STAGE_DIR", "")
    found = os.path.realpath(os.path.join(context.cwd, folder)) if folder else ""
    return found if is_text(found) else ""


def _check_text(frame: Frame) -> None:
    for what in ("command", "cwd", "home", "shell"):
        text = str(frame[what])
        if not is_text(text):
            raise Fail(f"The {what} holds bytes that are not UTF-8: {printable(text)[:200]}")


def check_options(options: Options) -> None:
    """What can be sent: text."""
    for name, value in options.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not is_text(text):
                raise Fail(f"-{name} holds bytes that are not UTF-8: {printable(text)[:200]}")


def check_launch(work: Work, options: Options) -> None:
    """``-a mpi`` starts every rank: a launcher in the command would start n times n of them."""
    asked = options.get("a")
    names = {word.partition("(")[0] for value in (asked if isinstance(asked, list) else []) for word in value.split()}
    first = work.command.split()[:1] if not work.script else []
    if "mpi" in names and first and os.path.basename(first[0]) in LAUNCHERS:
        launcher = os.path.basename(first[0])
        raise Fail(
            f"-a mpi starts every rank itself, and {launcher} would start them all again in each: leave out {launcher}"
            f" (bsub -a mpi -n 4 ./program), or leave out -a mpi"
        )


def esub_folder(context: Context, conf: dict[str, str]) -> str:
    """The folder with the site's esubs; "" where there are none."""
    folder = conf.get("LSF_SERVERDIR") or context.environ.get("LSF_SERVERDIR") or ""
    try:
        names = os.listdir(folder) if folder else []
    except OSError:
        return ""
    return folder if any(name.startswith(("esub", "epsub")) for name in names) else ""


def site_of(context: Context, conf: dict[str, str], command: str, esubs: str | None = None) -> Site | None:
    """The site's esubs, where it has any; run as the caller's own. ``esubs``: their folder as ``esub_folder`` found it."""
    folder = esub_folder(context, conf) if esubs is None else esubs
    if not folder:
        return None
    context.need_own_process()
    from cli.submit.esub import Site

    return Site(context, conf, folder, command)


def send(context: Context, client: Client, frame: Frame) -> Answer:
    """Submit and print what LSF prints; the answer."""
    if frame.get("checkpoint_folder"):
        from cli.submit.folder_probe import written

        with written(frame) as tried:
            ok = _accepted(context, client, tried)
    else:
        ok = _accepted(context, client, frame)
    tell(context, ok, frame)
    return ok


def tell(context: Context, ok: Answer, frame: Frame) -> None:
    """Print what LSF prints of a job that is submitted, by this ask."""
    for notice in ok.get("notices") or ():
        context.err(f"{notice}\n")
    options = frame["options"]
    given = options.get("secret") if isinstance(options, dict) else None
    for name, path in missing_secrets(given, home_of(context)) if given else ():
        context.err(f"secret {printable(name)}: {printable(path)} is not on this host: the job fails where its host has none\n")
    if "BSUB_QUIET" not in context.environ:
        kind = "default queue" if ok.get("default") else "queue"
        told = f"Job <{ok['job']}> is submitted to {kind} <{ok['queue']}>.\n"
        try:
            context.out(told)
        except OSError:
            context.err(told)  # the job is there, whatever becomes of the line
            raise


def _accepted(context: Context, client: Client, frame: Frame) -> Answer:
    """The answer; where the user has too many jobs, it is asked again at intervals, LSB_NTRIES times if that is set."""
    tries = 0
    while True:
        try:
            return client.change(frame)
        except Refused as refused:
            tries += 1
            if not refused.retry or tries == client.tries:
                raise
            context.err(f"{refused}. Retrying in {refused.retry} seconds...\n")
            time.sleep(refused.retry)


def wait_for(context: Context, client: Client, conf: dict[str, str], job: int, is_array: bool) -> int:
    """``-K``: until the job has ended; its exit status. What it says on the way: LSB_SUBK_SHOW_EXEC_HOST, LSB_SUBK_SHOW_JOBID."""
    quiet = "BSUB_QUIET2" in context.environ
    if not quiet:
        context.err("<<Waiting for dispatch ...>>\n")
        if not is_array and is_yes(conf.get("LSB_SUBK_SHOW_EXEC_HOST", "")):
            host = client.ask({"ask": "wait", "job": job, "until": "started"}, patience=None).get("host")
            context.err(f"<<Starting on {host}>>\n" if host else "")
    while True:
        ok = client.ask({"ask": "wait", "job": job, "until": "finished"}, patience=None)
        if ok.get("state") in ("DONE", "EXIT"):
            break
    if not quiet:
        named = is_yes(context.environ.get("LSB_SUBK_SHOW_JOBID") or conf.get("LSB_SUBK_SHOW_JOBID", ""))
        context.err(f"<<Job <{job}> is finished>>\n" if named else "<<Job is finished>>\n")
    return exit_status(str(ok["state"]), int(ok.get("status") or 0))


def exit_status(state: str, status: int) -> int:
    """A wait status as a shell shows it; a job that ended badly without one was killed while pending."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return 128 - code
    return code if code or state == "DONE" else KILLED_WHILE_PENDING


def not_done(context: Context, fail: Fail, command: str, ending: str) -> Fail:
    """A failure with LSF's ending, ``Job not submitted.`` or ``Job not modified.``

    What is wrong in a requirement follows on a line of its own, for people only: programs compare LSF's line.
    Of a role, which LSF has not, it is said as it is.
    """
    text = fail.text.rstrip("\n").removesuffix(".")
    detail, colon, rest = text.rpartition(": ")
    if colon and rest == BAD_RESREQ and not detail.startswith("role "):
        return type(fail)(f"{rest}. {ending}" + (f"\n{detail}" if os.isatty(context.stderr) else ""), fail.status)
    if text.startswith("option -"):
        text = f"{command}: {text}"
    lsf = text.startswith(f"{command}: ")
    return type(fail)(f"{text}\n. {ending}" if lsf else f"{text}. {ending}", fail.status)
