"""A site's esub and epsub programs (LSF_SERVERDIR): they check and change a submission beforehand, and are told of it afterwards.

Rule: LSF's protocol. The parameters lie as ``NAME="value"`` lines in LSB_SUB_PARM_FILE; what a program writes to
LSB_SUB_MODIFY_FILE and LSB_SUB_MODIFY_ENVFILE changes the options and the environment; the exit value of
LSB_SUB_ABORT_VALUE ends the submission.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

from cli.client.context import Context, Fail
from cli.submit.esub_file import file_lines, from_file, names_of, parse_assignments
from cli.submit.submit_options import propagated
from proto.options import ESUBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options
    from cli.submit.script import Work
    from proto.answers import Answer

ABORT_VALUE = 97
EEXEC_DATA = "LAVA_EEXEC_DATA"
LARGEST_DATA = 1 << 16


class Site:
    """The programs of one submission: the site's general one, the site's mandatory ones, the ones of ``-a``."""

    def __init__(self, context: Context, conf: dict[str, str], folder: str, command: str) -> None:
        self.context = context
        self.folder = folder
        self.command = command
        method = conf.get("LSB_ESUB_METHOD") or context.environ.get("LSB_ESUB_METHOD", "")
        self._calls: list[tuple[str, list[str]]] = [("", []), *names_of(method.strip("\"'"))]
        self._parameters = ""
        self._for_eexec = b""
        """What esubs wrote to standard output, where the site has an eexec to read it."""

    def check(self, work: Work | None, options: Options, env: dict[str, str]) -> None:
        """Run the esubs; changes ``work``, ``options`` and ``env`` in place. Raises Fail where one aborts."""
        asked = options.pop("a", [])
        left = []
        asked = asked if isinstance(asked, list) else []
        for name, arguments in [call for value in asked for call in names_of(value)]:
            self._calls.append((name, arguments))
            if not self._program("esub", name) and not self._program("epsub", name):
                left.append(f"{name}({','.join(arguments)})" if arguments else name)
        for name, arguments in self._calls:
            program = self._program("esub", name)
            if program:
                self._parameters = file_lines(work, options, asked, self.command)
                self._run(program, arguments, work, options, env)
        if left:
            options["a"] = left
        if asked:
            env[ESUBS] = " ".join(asked)
        if self._for_eexec:
            env[EEXEC_DATA] = self._for_eexec[:LARGEST_DATA].decode("utf-8", "replace").replace("\0", "")

    def submitted(self, ok: Answer) -> None:
        """Run the epsubs: the job has its id."""
        told = {"LSB_SUB_JOB_ID": str(ok.get("job", -1)), "LSB_SUB_JOB_QUEUE": str(ok.get("queue", ""))}
        for name, arguments in self._calls:
            program = self._program("epsub", name)
            if program:
                self._call(program, arguments, told)

    def _program(self, kind: str, name: str) -> str:
        path = os.path.join(self.folder, f"{kind}.{name}" if name else kind)
        return path if os.path.isfile(path) and os.access(path, os.X_OK) else ""

    def _run(self, program: str, arguments: list[str], work: Work | None, options: Options, env: dict[str, str]) -> None:
        status, changes, environment = self._call(program, arguments, {})
        if status == ABORT_VALUE:
            raise Fail("Request aborted by esub")
        wish = options.get("env")
        from_file(parse_assignments(changes), work, options, self.command)
        if options.get("env") != wish and isinstance(new := options.get("env"), str):
            kept = propagated(self.context.environ, new)
            env.clear()
            env.update(kept)
        env.update(parse_assignments(environment))

    def _call(self, program: str, arguments: list[str], told: dict[str, str]) -> tuple[int, str, str]:
        """-> (exit status, the text of the modify file, the text of the environment file)."""
        folder = tempfile.mkdtemp(prefix="esub.")
        try:
            paths = {name: os.path.join(folder, name) for name in ("parm", "modify", "modifyenv")}
            for name, path in paths.items():
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(self._parameters if name == "parm" else "")
            environ = {
                **self.context.environ,
                "LSB_SUB_ABORT_VALUE": str(ABORT_VALUE),
                "LSB_SUB_PARM_FILE": paths["parm"],
                "LSB_SUB_MODIFY_FILE": paths["modify"],
                "LSB_SUB_MODIFY_ENVFILE": paths["modifyenv"],
                "LSF_INVOKE_CMD": self.command,
                **told,
            }
            done = subprocess.run(
                [program, *arguments],
                env=environ,
                cwd=self.context.cwd or None,
                stdin=subprocess.DEVNULL,
                stdout=self.context.stderr if told or not self._program("eexec", "") else subprocess.PIPE,
                stderr=self.context.stderr,
                check=False,
            )
            self._for_eexec += done.stdout or b""
            return done.returncode, _read(paths["modify"]), _read(paths["modifyenv"])
        except OSError as error:
            raise Fail(f"{program}: {error.strerror}") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()
