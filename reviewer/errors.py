"""Errors meant for a person: the message names the file (or thing) and the fix, and no traceback is shown."""

from __future__ import annotations

from pathlib import Path


class ReviewerError(Exception):
    """Base of every error whose message a user is meant to read.

    An error about one ``file`` gives its ``reason`` apart, for where the file is named already.
    """

    def __init__(self, reason: str, file: Path | str | None = None) -> None:
        super().__init__(reason if file is None else f"{file}: {reason}")
        self.reason = reason
        self.file = file
