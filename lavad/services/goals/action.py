"""Runs CONTROL_ACTION of a service class: a command of the site's, by /bin/sh.

Rule: where lavad is root's it runs as the first administrator of the cluster, as LSF's actions do; as root alone if that is root,
and nobody but root can write the file that has the command.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from config.model.guarantees import ControlAction, Goal
from config.programs.owner import only_root_writes
from lavad.core.site.conf import Conf
from proto.daemon.programs import Account, account_of, run_program, site_environment
from proto.daemon.workers import Workers
from proto.names import Entry, NoAnswer, find_user

log = logging.getLogger(__name__)

SECONDS = 60.0
"""That a command may take."""


class Actions:
    """``lsf``: lsf.conf; ``root``: this process may become another user."""

    def __init__(
        self, lsf: Mapping[str, str], conf: Callable[[], Conf], root: bool, find: Callable[[str], Entry | None] = find_user
    ) -> None:
        self._lsf = lsf
        self._conf = conf
        self._root = root
        self._find = find
        self._looking = Workers("control actions")

    async def run(self, service: str, goal: Goal, action: ControlAction) -> None:
        """Run the command once; what keeps it from that is in the log."""
        what = f"CONTROL_ACTION of service class {service}, whose goal {goal} is missed,"
        try:
            account = await self._looking.run(self._account, action.file)
        except (NoAnswer, LookupError, OSError) as error:
            log.warning("%s cannot be run: %s", what, error)
            return
        words = ["/bin/sh", "-c", action.command]
        how, text = await run_program(words, SECONDS, account=account, env=site_environment(self._lsf, account))
        log.log(logging.INFO if how == "exited with 0" else logging.WARNING, "%s %s%s", what, how, f": {text}" if text else "")

    def _account(self, file: str) -> Account | None:
        """As whom it runs; None: as this process. May take long; raises NoAnswer, LookupError, OSError."""
        if not self._root:
            return None
        admins = self._conf().admins
        if not admins:
            raise LookupError("the cluster has no administrator")
        account = account_of(admins[0], self._find)
        if account.uid == 0 and not only_root_writes(os.path.abspath(file)):
            raise PermissionError(f"it is not run as root, as others than root may write {file}")
        return account
