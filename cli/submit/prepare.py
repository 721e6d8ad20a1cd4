"""The words of bsub put together with the script, job file, environment and esubs that they name: what is to be sent."""

from __future__ import annotations

from cli.client.context import Context, Fail
from cli.submit.script import find_work
from cli.submit.submission import check_launch, passed_environment, site_of, submission
from cli.submit.submit_options import bsub_table, last_rival, merged, with_defaults
from config.lsfconf import is_yes
from proto.options import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options
    from cli.submit.esub import Site

INTERACTIVE = ("I", "Ip", "Is")
LOCAL_INPUTS = frozenset(("is", "hostfile", "ul"))


class Prepared:
    """A submission: its ask, the site's esubs that hear of the answer, the option for which bsub stays (I, Ip, Is, K).

    ``forwards``: the windows of its programs are to be shown on the user's display (-XF).
    """

    __slots__ = ("forwards", "frame", "site", "stays")

    def __init__(self, frame: Frame, site: Site | None, stays: str, forwards: bool = False) -> None:
        self.frame = frame
        self.site = site
        self.stays = stays
        self.forwards = forwards

    @property
    def options(self) -> dict[str, object]:
        """Those of script, file and command line together, as they are sent."""
        options = self.frame["options"]
        return options if isinstance(options, dict) else {}

    @property
    def is_array(self) -> bool:
        return "[" in str(self.options.get("J", ""))


def prepared(context: Context, conf: dict[str, str], given: Options, words: list[str], esubs: str | None = None) -> Prepared:
    """Reads what the options and words name, and runs the esubs (in the folder ``esubs``, if that is known). Raises Fail."""
    described: Options = {}
    if any(BY_NAME[name].options_file for name in given):
        from cli.submit.job_file import read_job_file

        described, command = read_job_file(context, given, bsub_table())
        words = words or ([command] if command else [])
    work = find_work(context, words, is_yes(conf.get("LSB_BSUB_PARSE_SCRIPT", "")), "Zs" in given)
    inside: Options = {}
    if work.directives:
        from cli.submit.directives import read_directives

        inside = read_directives(work.directives, bsub_table())
    options = with_defaults(context, merged(merged(inside, described), last_rival(given)))
    forwards = _forwards(options)
    site = site_of(context, conf, "bsub", esubs)
    if not options.keys().isdisjoint((*INTERACTIVE, "K")):
        context.need_own_process()
    if "\r\n" in work.script:
        context.err("bsub: lines of the script end with CR LF, as in DOS: a shell takes the CR for a part of their last word\n")
    env = passed_environment(context, options)
    if site is not None:
        site.check(work, options, env)
    check_launch(work, options)
    stays = [name for name in (*INTERACTIVE, "K") if options.get(name)]
    if len(stays) > 1:
        raise Fail(f"-{stays[0]} and -{stays[1]} cannot be given together")
    if not LOCAL_INPUTS.isdisjoint(options):
        from cli.submit.local_inputs import add_local_inputs

        add_local_inputs(context, options)
    return Prepared(submission(context, work, options, env), site, stays[0] if stays else "", forwards)


def _forwards(options: Options) -> bool:
    """Whether X11 is forwarded (-XF, -IX). Raises Fail."""
    interactive = [name for name in INTERACTIVE if options.get(name)]
    if options.get("IX"):
        if interactive:
            raise Fail(f"-IX and -{interactive[0]} cannot be given together")
        options["I"] = options["XF"] = True
    elif not options.get("XF"):
        return False
    elif not interactive:
        raise Fail("-XF: only interactive jobs have a display: give -I, -Ip or -Is with it")
    for name in ("K", "r"):
        if options.get(name):
            raise Fail(f"-{'IX' if options.get('IX') else 'XF'} and -{name} cannot be given together")
    return True
