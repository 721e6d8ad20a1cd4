"""Which store a site has: by command line, by a file that holds its URL, or by lsf.conf."""

from __future__ import annotations

from pathlib import Path

from config.model.site_params import SiteParams


def database_url(params: SiteParams, url: str = "", file: str = "") -> str:
    """The SQLAlchemy URL; raises OSError where the file that should hold it does not read."""
    url = url or ("" if file else params.lava_database_url)
    file = file or params.lava_database_url_file
    if not url and file:
        url = Path(file).read_text().strip()
    return url or f"sqlite:///{params.lava_spooldir}/lavad.sqlite"
