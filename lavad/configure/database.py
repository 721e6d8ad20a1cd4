"""Which store a site has: by command line, by a file that holds its URL, or by lsf.conf."""

from __future__ import annotations

from pathlib import Path

from config.model.site_params import SiteParams
from lavad.store.errors import StoreRefused


def database_url(params: SiteParams, url: str = "", file: str = "") -> str:
    """The SQLAlchemy URL; raises StoreRefused where the file that should hold it does not read, or holds nothing: another store
    than the site's is never begun."""
    url = url or ("" if file else params.lava_database_url)
    file = file or params.lava_database_url_file
    if not url and file:
        return _read(file)
    return url or f"sqlite:///{params.lava_spooldir}/lavad.sqlite"


def _read(file: str) -> str:
    try:
        url = Path(file).read_text().strip()
    except OSError as error:
        raise StoreRefused(f"{file}, which should hold the URL of the database: {error.strerror}") from None
    except ValueError:
        raise StoreRefused(f"{file}, which should hold the URL of the database: this is not text") from None
    if not url:
        raise StoreRefused(f"{file}, which should hold the URL of the database, is empty")
    return url
