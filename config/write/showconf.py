"""The lines of `badmin showconf mbd`: the parameters in force, `NAME = value` each.

Rule: every line after the first has ` = ` exactly so (programs split on it), and no secret is shown.
"""

from config.model.cluster import ClusterConfig
from config.values.url_passwords import without_password

SECRET = ("KEY", "PASSWORD", "TOKEN", "SECRET")


def showconf(config: ClusterConfig, host: str, at: str, daemon: str = "mbd") -> list[str]:
    """`at` is the time as the caller prints it; the first line is LSF's heading."""
    shown = dict(config.lsf)
    params = config.params
    shown.setdefault("LSF_CONFDIR", config.confdir)
    shown.setdefault("LSB_CONFDIR", f"{config.confdir}/lsbatch")
    shown.setdefault("LSB_SHAREDIR", params.lsb_sharedir or params.lava_spooldir)
    shown.setdefault("LSF_LOGDIR", params.lsf_logdir)
    shown["LSF_UNIT_FOR_LIMITS"] = params.lsf_unit_for_limits
    heading = f"{daemon.upper()} configuration at {at} on {host}"
    return [heading, *(f" {name} = {safe(name, shown[name])}" for name in sorted(shown) if shown[name])]


def safe(name: str, value: str) -> str:
    """A parameter's value without secrets, on one line."""
    if name.endswith(SECRET):
        return "(not shown)"
    return without_password(value).replace("\n", " ")
