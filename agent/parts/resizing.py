"""When the hosts of a resizable job change: rewrite its host files, tell its shepherd, run its resize command.

Rule: the command is a part of the agent's own whose uid names the resize, so that the starter runs it once however often
the master asks; it is forgotten when the master goes on to something else.
"""

from __future__ import annotations

import logging
import os

from agent.launch import environ, livefiles, outputs, report
from agent.parts import report_messages as messages
from agent.parts.entry import Entry
from agent.parts.job_report import RESIZED
from agent.parts.table import PartTable, Reporter
from agent.starter.protocol.orders import Forget, JobHosts, Kill, NumberedHost
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb

log = logging.getLogger("lava-agent")


class Resizing:
    """``folder``: where host files are."""

    def __init__(self, table: PartTable, reporter: Reporter, starter: Outgoing, folder: str) -> None:
        self._folder = folder
        self._table = table
        self._reporter = reporter
        self._starter = starter
        self._commands: dict[str, str] = {}
        """Uid of a part to the uid of its command."""

    def hosts(self, entry: Entry, told: pb.Hosts) -> None:
        """The job has these hosts now."""
        hosts = [(host.host, host.slots) for host in told.hosts]
        stem = livefiles.stem_of(self._folder, outputs.job_stem(entry.key), entry.part.attempt)
        if entry.live_hosts != hosts:
            try:
                livefiles.write(stem, hosts)
                entry.live_hosts = hosts
            except OSError as e:
                log.warning("job %s: its host files are not up to date: %s", outputs.show(entry.key), e)
        self._starter.put(JobHosts(entry.uid, tuple(NumberedHost(host.node_index, host.host) for host in told.hosts)))
        self._notify(entry, told, stem)

    def _notify(self, entry: Entry, told: pb.Hosts, stem: str) -> None:
        uid = f"{entry.uid}.{told.number}{RESIZED}" if told.number else ""
        before = self._commands.get(entry.uid, "")
        if before and before != uid:
            del self._commands[entry.uid]
            self._starter.put(Forget((before,)))
        if not uid or entry.made is None or entry.end is not None:
            return
        self._commands[entry.uid] = uid
        made, order = entry.made, entry.order
        files = (f"{stem}.hosts", f"{stem}.ranks")
        env = environ.own(made.text, order.key, order.start, files) | livefiles.variables(stem)
        changed = " ".join(f"{host.host} {host.slots}" for host in told.changed)
        env |= {
            "LSB_MCPU_HOSTS": "".join(f"{host.host} {host.slots} " for host in told.hosts),
            "LSB_HOSTS": " ".join(host.host for host in told.hosts for _ in range(host.slots)),
            "LSB_DJOB_NUMPROC": str(sum(host.slots for host in told.hosts)),
            "LSB_RESIZE_NAME": entry.name(),
            "LSB_RESIZE_EVENT": "grow" if told.grow else "shrink",
            "LSB_RESIZE_HOSTS": changed,
            "LSB_RESIZE_NOTIFY_OK": "0",
            "LSB_RESIZE_NOTIFY_FAIL": "1",
        }
        part = report.command_part(uid, order, made, "resize", entry.folder(), told.command, env)
        log.info("job %s: %s is told: %s", outputs.show(entry.key), "growth" if told.grow else "release", changed)
        self._starter.start(0, made.template, part)

    def ended(self, uid: str, status: int, why: str) -> None:
        """A command has ended, or could not be run."""
        owner, number, _ = uid.split(".", 2)
        entry = self._table.find(owner)
        if entry is None or not number.isdecimal():
            self._starter.put(Forget((uid,)))
            return
        self._commands[owner] = uid
        if status and not why:
            why = f"exit code {os.waitstatus_to_exitcode(status)}"
        resized = pb.Resized(number=int(number), ok=not status and not why, why=why)
        self._reporter.put(messages.about(entry, resized=resized), entry)

    def over(self, entry: Entry) -> None:
        """A part is over: its command and its host files go."""
        command = self._commands.pop(entry.uid, "")
        if command:
            self._starter.put(Kill((command,)))
            self._starter.put(Forget((command,)))
        if entry.text is not None and entry.text.resizable:
            livefiles.remove(livefiles.stem_of(self._folder, outputs.job_stem(entry.key), entry.part.attempt))
