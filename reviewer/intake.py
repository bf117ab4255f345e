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
from reviewer.importers import Refusal, example_folders, find
from reviewer.importers.files import Context, absolute
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
    answer_each: bool = False,
    progress: Progress = ignore_progress,
) -> Iterator[dict[str, Any]]:
    """Store every trajectory in ``paths`` and yield its import record; what is refused has ``id`` None.

    Files of trusted paths may name media anywhere on this machine. With ``answer_each`` what lies directly in a given
    folder is answered for as if it had been given itself. Raises only what ``progress`` raises.
    """
    for done, found in enumerate(_found(library, paths, task, format, is_trusted, answer_each)):
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
        message = error.reason
    except Exception as error:
        log.exception("storing %s failed", found.source)
        message = f"It can't be stored ({type(error).__name__}: {error}); please report this."
    return refusal_record(found.source, (*found.problems, Problem(Path(found.source).name, message)))


def _found(
    library: Library,
    paths: Sequence[Path],
    task: str | None,
    format: str | None,
    is_trusted: bool,
    answer_each: bool,
) -> Iterator[Trajectory | Refusal]:
    zips = {zip_path: Context(root=path).name_of(zip_path) for path in paths for zip_path in _zips(path)}
    plain = [path for path in paths if path not in zips]
    yield from find(plain, task=task, format=format, follow_paths=is_trusted, answer_each=answer_each, read_apart=zips)
    examples = list(example_folders(plain)) if zips else []
    for zip_path, name in zips.items():
        yield from _found_in_zip(library, zip_path, name, task, format, examples)


def _zips(path: Path) -> Iterator[Path]:
    """The zip archive a path is, or those in the folder it is."""
    if path.is_file() and is_zip(path):
        yield path
    for folder, _, names in os.walk(path):
        candidates = (Path(folder, name) for name in sorted(names) if name.lower().endswith(".zip"))
        yield from (candidate for candidate in candidates if is_zip(candidate))


def _found_in_zip(
    library: Library, zip_path: Path, name: str, task: str | None, format: str | None, examples: Sequence[Path]
) -> Iterator[Trajectory | Refusal]:
    """What a zip holds; it is unpacked to a place of its own, and its files are told by their place in the zip."""
    source = str(zip_path.absolute())
    folder = library.home / "unpacked"
    target = absolute(folder / hashlib.sha256(os.fsencode(source)).hexdigest()[:16])
    fresh = folder / uuid4().hex
    try:
        problems = unpack(zip_path, fresh)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except ArchiveRefused as error:
        yield Refusal(source, (Problem(name, error.reason),))
        return
    except OSError as error:
        yield Refusal(source, (Problem(name, f"can't be unpacked ({error.strerror}): free some space"),))
        return
    if problems:
        yield Refusal(source, tuple(replace(problem, file=name) for problem in problems))
    for found in find([target, *examples], task=task, format=format):
        if isinstance(found, Refusal) and found.source == str(target):
            found = replace(found, problems=(replace(found.problems[0], file=name), *found.problems[1:]))
        yield replace(found, source=source + found.source.removeprefix(str(target)))
    if not library.refers_to(target):
        shutil.rmtree(target, ignore_errors=True)
