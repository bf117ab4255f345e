"""The ``jsonl`` recipe: everything that is known of each reviewed trajectory, one JSON object a line.

Writes ``trajectories.jsonl`` and then ``manifest.json``: where the manifest is, the export is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from reviewer.errors import ReviewerError
from reviewer.exported import ExportedTrajectory, json_value, to_line

NAME = "jsonl"
SCHEMA = "trajectory-reviewer/export"
VERSION = 1
LINES = "trajectories.jsonl"
MANIFEST = "manifest.json"

_PARTIAL = re.compile(r"\..+\.[0-9a-f]{32}\.partial")
_LINE_BREAKS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class ExportRefused(ReviewerError):
    """An export that can't be written; the message names the folder and the fix."""


@dataclass(frozen=True)
class ExportedFile:
    """One file of an export."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What an export holds; ``counts`` are of trajectories, reviews, submitted reviews, overrides and judgements."""

    schema: str
    version: int
    recipe: str
    created_utc: str
    counts: dict[str, int]
    files: tuple[ExportedFile, ...]


def write(rows: Iterable[ExportedTrajectory], target: Path) -> Manifest:
    """Write an export into a new or empty folder, or over an earlier export there, which stays until the end.

    Raises ExportRefused when the folder holds anything else or can't be written to.
    """
    _check_target(target)
    is_new = not target.exists()
    partials: list[Path] = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        lines = _partial(target, LINES, partials)
        counts = dict.fromkeys(("trajectories", "reviews", "submitted", "overrides", "judgements"), 0)
        with lines.open("wb") as file:
            digest, size = _write_lines(rows, file, counts)
        manifest = Manifest(
            schema=SCHEMA,
            version=VERSION,
            recipe=NAME,
            created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            counts=counts,
            files=(ExportedFile(LINES, size, digest),),
        )
        stated = _partial(target, MANIFEST, partials)
        with stated.open("wb") as file:
            file.write((json.dumps(asdict(manifest), ensure_ascii=False, indent=2) + "\n").encode())
            _sync(file)
        lines.replace(target / LINES)
        stated.replace(target / MANIFEST)
        return manifest
    except OSError as error:
        raise ExportRefused(f"{target}: can't be written ({error.strerror}): choose another folder") from None
    finally:
        for partial in partials:
            partial.unlink(missing_ok=True)
        if is_new and target.is_dir() and not any(target.iterdir()):
            target.rmdir()


def line_text(line: dict[str, Any]) -> str:
    """One line as text: UTF-8 as it is, but nothing in it that any reader takes for the end of a line."""
    return json.dumps(json_value(line), ensure_ascii=False, allow_nan=False).translate(_LINE_BREAKS)


def _check_target(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise ExportRefused(f"{target}: a file, not a folder: choose another name")
    names = {path.name for path in target.iterdir()} if target.exists() else set()
    if all(_PARTIAL.fullmatch(name) for name in names) or _is_export(target / MANIFEST):
        return
    raise ExportRefused(f"{target}: the folder holds something else than an export: choose an empty one")


def _is_export(manifest: Path) -> bool:
    try:
        document = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("schema") == SCHEMA


def _partial(target: Path, name: str, partials: list[Path]) -> Path:
    """A file to write into before it takes its name, noted so that it never stays behind."""
    path = target / f".{name}.{uuid4().hex}.partial"
    partials.append(path)
    return path


def _write_lines(rows: Iterable[ExportedTrajectory], file: BinaryIO, counts: dict[str, int]) -> tuple[str, int]:
    """Write a line for each row, count what they hold, and answer the SHA-256 and the size of it all in bytes."""
    digest, size = hashlib.sha256(), 0
    for row in rows:
        data = f"{line_text(to_line(row))}\n".encode()
        file.write(data)
        digest.update(data)
        size += len(data)
        counts["trajectories"] += 1
        counts["reviews"] += len(row.reviews)
        counts["submitted"] += sum(review.get("status") == "submitted" for review in row.reviews)
        counts["overrides"] += sum(len(review.get("ops") or ()) for review in row.reviews)
        counts["judgements"] += len(row.judgements)
    _sync(file)
    return digest.hexdigest(), size


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
