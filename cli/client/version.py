"""What ``-V`` prints."""

VERSION = "0.1.0"
DATE = "Nov 20 2026"


def version_line(conf: dict[str, str]) -> str:
    """A site may say what tools that look for LSF's own line shall read."""
    return conf.get("LSF_COMPAT_VERSION") or f"lava {VERSION}, {DATE}"
