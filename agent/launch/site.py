"""What is the same for every job on this host: names, folders, the site's settings. Made once by ``main``."""

from __future__ import annotations

import os

import msgspec

from agent.starter.protocol import part
from config.model.site_params import SiteParams
from proto import localsocket


class User(msgspec.Struct, frozen=True):
    """A user as this host knows them."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str
    group: str = ""

    @property
    def account(self) -> part.User:
        """What the starter must know to become this user."""
        return part.User(self.name, self.uid, self.gid, self.groups)


class Site(msgspec.Struct, frozen=True):
    """This host and its cluster."""

    host: str
    run_dir: str
    spool: str
    conf_dir: str
    conf: dict[str, str]
    """lsf.conf as it is written."""
    settings: SiteParams = SiteParams()
    """What lsf.conf says of numbers and of yes or no."""
    address: str = "127.0.0.1"
    root: bool = False
    """The agent may become any user."""
    own_user: str = ""
    exec_user: User | None = None
    """As whom commands of queues and hosts run before and after a job (lsf.sudoers); None: as the job's user."""
    eexec: str = ""
    """The site's eexec program (LSF_SERVERDIR/eexec), "" where there is none when the agent starts."""

    @property
    def masters(self) -> list[str]:
        """LSF_MASTER_LIST, each with LAVA_PORT; without certificates the master of this machine."""
        if not self.conf.get("LAVA_TLS_DIR"):
            return [localsocket.address(self.run_dir, "lavad")]
        return [f"{name}:{self.settings.lava_port}" for name in self.settings.lsf_master_list or ("localhost",)]

    @property
    def socket(self) -> str:
        """The agent's own socket, for the commands inside jobs."""
        return os.path.join(self.run_dir, f"agent-{self.host}.sock")

    @property
    def starter_socket(self) -> str:
        """The starter's socket."""
        return os.path.join(self.run_dir, f"starter-{self.host}.sock")

    @property
    def output_dir(self) -> str:
        """Where output without ``-o`` and scripts of jobs are kept, a folder for each user; best on a file system of its own."""
        return self.conf.get("LAVA_OUTPUTDIR") or f"{self.spool}/output"

    @property
    def hostfile_dir(self) -> str:
        """Where host files are."""
        return os.path.join(self.spool, "hostfiles")
