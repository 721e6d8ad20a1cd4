"""Runs CONTROL_ACTION of a service class: a command of the site's, by /bin/sh, as ``config.programs.as_admin`` says."""

from __future__ import annotations

import logging

from config.model.guarantees import ControlAction, Goal
from config.programs.as_admin import AsAdmin
from proto.daemon.workers import Workers
from proto.names import NoAnswer

log = logging.getLogger(__name__)

SECONDS = 60.0
"""That a command may take."""


class Actions:
    """Those of all service classes."""

    def __init__(self, as_admin: AsAdmin) -> None:
        self._as_admin = as_admin
        self._looking = Workers("control actions")

    async def run(self, service: str, goal: Goal, action: ControlAction) -> None:
        """Run the command once; what keeps it from that is in the log."""
        what = f"CONTROL_ACTION of service class {service}, whose goal {goal} is missed,"
        try:
            account = await self._looking.run(self._as_admin.account, action.file)
        except (NoAnswer, LookupError, OSError) as error:
            log.warning("%s cannot be run: %s", what, error)
            return
        how, text = await self._as_admin.run(["/bin/sh", "-c", action.command], SECONDS, account)
        log.log(logging.INFO if how == "exited with 0" else logging.WARNING, "%s %s%s", what, how, f": {text}" if text else "")
