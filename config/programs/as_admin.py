"""As whom lavad runs programs of the site: eadmin, a mailer, CONTROL_ACTION.

Rule: where lavad is root's, as the first administrator of the cluster, as LSF does; as root alone if that is root, and nobody but
root can write the file that says what runs.
"""

from collections.abc import Callable, Mapping, Sequence

from config.programs.owner import why_not_as_root
from proto.daemon.programs import Account, account_of, run_program, site_environment
from proto.names import Entry, find_user


class AsAdmin:
    """``lsf``: lsf.conf; ``admins``: of the cluster, as they are now; ``root``: this process may become another user."""

    def __init__(
        self,
        lsf: Mapping[str, str],
        admins: Callable[[], Sequence[str]],
        root: bool,
        find: Callable[[str], Entry | None] = find_user,
    ) -> None:
        self.lsf = lsf
        self._admins = admins
        self._root = root
        self._find = find

    def admins(self) -> Sequence[str]:
        """The administrators, the first of them first. Raises LookupError where there is none."""
        if admins := self._admins():
            return admins
        raise LookupError("the cluster has no administrator")

    def account(self, file: str) -> Account | None:
        """As whom runs what a file says, or the file itself ("": a server that runs as its own user); None: as this process.

        Asks a directory of users and a file system: not for the thread of a loop. Raises NoAnswer, LookupError, OSError.
        """
        if not self._root:
            return None
        account = account_of(self.admins()[0], self._find)
        if file and account.uid == 0 and (why := why_not_as_root(file)):
            raise PermissionError(why)
        return account

    async def run(self, words: Sequence[str], seconds: float, account: Account | None, given: bytes = b"") -> tuple[str, str]:
        """How a program ended within so many seconds, and the end of what it wrote; ``given``: its standard input."""
        return await run_program(words, seconds, given=given, account=account, env=site_environment(self.lsf, account))
