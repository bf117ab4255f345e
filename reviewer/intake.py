"""Importing: what is found in folders, files and zip archives is stored, and every file's fate is told."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from reviewer.archive import ArchiveRefused, is_zip, unpack
from reviewer.errors import ReviewerError
from reviewer.importers import Refusal, find
from reviewer.judges import Cancelled, Progress
from reviewer.library import Library, refusal_record
from reviewer.trajectory import Problem, Trajectory

log = logging.getLogger(__name__)


def ignore_progress(done: int, total: int | None, message: str) -> None:
    """Progress that nobody looks at."""


def import_paths(
    library: Library,
    paths: Sequence[Path],
    *,
    task: str | None = None,
    format: str | None = None,
    is_trusted: bool = False,
    progress: Progress = ignore_progress,
) -> Iterator[dict[str, Any]]:
    """Store every trajectory in ``paths`` and yield its import record; what is refused has ``id`` None.

    Files of trusted paths may name media anywhere on this machine. Raises only what ``progress`` raises.
    """
    for done, found in enumerate(_found(library, paths, task, format, is_trusted)):
        progress(done, None, found.source)
        yield _stored(library, found)


def _stored(library: Library, found: Trajectory | Refusal) -> dict[str, Any]:
    if isinstance(found, Refusal):
        return refusal_record(found.source, found.problems)
    try:
        return library.store(found).record
    except Cancelled:
        raise
    except ReviewerError as error:
        message = str(error)
    except Exception as error:
        log.exception("storing %s failed", found.source)
        message = f"It can't be stored ({type(error).__name__}: {error}); please report this."
    return refusal_record(found.source, (*found.problems, Problem(found.source, message)))


def _found(
    library: Library, paths: Sequence[Path], task: str | None, format: str | None, is_trusted: bool
) -> Iterator[Trajectory | Refusal]:
    zips = [zip_path for path in paths for zip_path in _zips(path)]
    emptied = {
        str(path.absolute()) for path in paths if path.is_dir() and any(path in zip_path.parents for zip_path in zips)
    }
    plain = [path for path in paths if path not in zips]
    for found in find(plain, task=task, format=format, follow_paths=is_trusted):
        if not (isinstance(found, Refusal) and found.source in emptied):
            yield found
    for zip_path in zips:
        yield from _found_in_zip(library, zip_path, task, format)


def _zips(path: Path) -> Iterator[Path]:
    """The zip archive a path is, or those in the folder it is."""
    if path.is_file() and is_zip(path):
        yield path
    for folder, _, names in os.walk(path):
        candidates = (Path(folder, name) for name in sorted(names) if name.lower().endswith(".zip"))
        yield from (candidate for candidate in candidates if is_zip(candidate))


def _found_in_zip(
    library: Library, zip_path: Path, task: str | None, format: str | None
) -> Iterator[Trajectory | Refusal]:
    """What a zip holds; it is unpacked to a place of its own, and its files are told by their place in the zip."""
    name = str(zip_path.absolute())
    folder = library.home / "unpacked"
    target = folder / hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    fresh = folder / uuid4().hex
    try:
        problems = unpack(zip_path, fresh)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except (ArchiveRefused, OSError) as error:
        yield Refusal(name, (Problem(zip_path.name, str(error)),))
        return
    if problems:
        yield Refusal(name, tuple(problems))
    for found in find([target], task=task, format=format):
        yield replace(found, source=name + found.source.removeprefix(str(target)))
    if not library.refers_to(target):
        shutil.rmtree(target, ignore_errors=True)
