"""Where the reviewer keeps its data, read from the environment once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from db.session import sqlite_url

DATABASE_NAME = "reviewer.db"


@dataclass(frozen=True)
class Settings:
    """``home`` holds proxies, thumbnails and uploads; ``database_url`` is SQLite in it unless told otherwise.

    ``root_path`` is the prefix or full URL under which a reverse proxy serves the page, "" without one.
    """

    home: Path
    database_url: str
    root_path: str = ""

    @classmethod
    def from_environment(cls) -> Settings:
        """Read ``REVIEWER_HOME``, ``REVIEWER_DB_URL`` and ``GRADIO_ROOT_PATH``; nothing is created."""
        home = Path(os.environ.get("REVIEWER_HOME") or "reviewer-data").expanduser().resolve()
        url = os.environ.get("REVIEWER_DB_URL") or sqlite_url(home / DATABASE_NAME)
        return cls(home=home, database_url=url, root_path=os.environ.get("GRADIO_ROOT_PATH", "").rstrip("/"))
