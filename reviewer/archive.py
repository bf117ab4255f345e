"""Unpack a zip that somebody else made: only plain files, only below the target, only as much as was agreed."""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from reviewer.errors import ReviewerError
from reviewer.trajectory import Problem

_BLOCK_BYTES = 1024 * 1024
_RATIO_COUNTS_FROM_BYTES = 10 * 1024 * 1024
_DRIVE = re.compile(r"[A-Za-z]:")
_NESTED = (".zip", ".tar", ".tgz", ".gz", ".7z", ".rar", ".xz", ".bz2")


class ArchiveRefused(ReviewerError):
    """An archive that was not unpacked; the message names it, the entry and the fix."""


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold. ``max_ratio`` is unpacked to packed bytes, counted from 10 MiB unpacked on."""

    max_bytes: int = 20 * 1024**3
    max_entries: int = 200_000
    max_depth: int = 32
    max_ratio: float = 200.0


def is_zip(path: Path) -> bool:
    """Whether a file is a zip archive, by its content."""
    try:
        return path.is_file() and zipfile.is_zipfile(path)
    except OSError:
        return False


def unpack(zip_path: Path, target_dir: Path, limits: Limits | None = None) -> list[Problem]:
    """Unpack into ``target_dir``, which must be empty or new, and say what was left out.

    Raises ArchiveRefused, with the target as it was before, for an archive that is damaged, encrypted or too large, or
    that holds a link or an entry that would land outside the target.
    """
    limits = limits or Limits()
    if target_dir.exists() and (not target_dir.is_dir() or any(target_dir.iterdir())):
        raise ArchiveRefused("not an empty folder: unpack into a new one", target_dir)
    is_new = not target_dir.exists()
    try:
        with zipfile.ZipFile(zip_path) as archive:
            entries = [entry for entry in archive.infolist() if not _is_clutter(entry.filename)]
            _check(zip_path, entries, limits)
            target_dir.mkdir(parents=True, exist_ok=True)
            return _extract(archive, zip_path, entries, target_dir)
    except BaseException as error:
        _clear(target_dir, is_new)
        if isinstance(error, zipfile.BadZipFile | zlib.error | EOFError | NotImplementedError | ValueError):
            raise ArchiveRefused(f"the archive is damaged ({error}): make it again", zip_path.name) from None
        if isinstance(error, OSError):
            raise ArchiveRefused(f"can't be unpacked ({error.strerror or error})", zip_path.name) from None
        raise


def _check(zip_path: Path, entries: list[zipfile.ZipInfo], limits: Limits) -> None:
    """Refuse what the directory of the archive already tells."""
    name = zip_path.name
    if len(entries) > limits.max_entries:
        raise ArchiveRefused(f"{len(entries):,} entries, over the limit of {limits.max_entries:,}: split it", name)
    unpacked_bytes = sum(entry.file_size for entry in entries)
    if unpacked_bytes > limits.max_bytes:
        raise ArchiveRefused(f"unpacks to more than {limits.max_bytes:,} bytes: split it", name)
    if unpacked_bytes > max(_RATIO_COUNTS_FROM_BYTES, limits.max_ratio * zip_path.stat().st_size):
        raise ArchiveRefused(f"unpacks to over {limits.max_ratio:g} times its size: leave out what is so empty", name)
    for entry in entries:
        reason = _refusal(entry, limits)
        if reason:
            raise ArchiveRefused(f"{entry.filename!r} {reason}", name)


def _refusal(entry: zipfile.ZipInfo, limits: Limits) -> str | None:
    name = entry.orig_filename
    parts = name.rstrip("/").split("/")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if name.startswith("/") or "\\" in name or "\0" in name or _DRIVE.match(name):
        return "is an absolute path or one of another system: make the archive with relative paths and `/`"
    if any(part in ("", ".", "..") for part in parts):
        return "would land outside the folder: make the archive without `..` and empty names"
    if len(parts) > limits.max_depth:
        return f"lies more than {limits.max_depth} folders deep: make the archive flatter"
    if kind == stat.S_IFLNK:
        return "is a link: make the archive with the files themselves"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is no plain file: leave it out"
    if entry.flag_bits & 0x1:
        return "is encrypted: make the archive without a password"
    return None


def _extract(
    archive: zipfile.ZipFile, zip_path: Path, entries: list[zipfile.ZipInfo], target_dir: Path
) -> list[Problem]:
    """Write the entries. One that holds more than it states is cut there and then fails its checksum."""
    problems: list[Problem] = []
    for entry in entries:
        path = target_dir / entry.filename
        if entry.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            continue
        if path.exists():
            problems.append(Problem(zip_path.name, f"{entry.filename} stands in it twice: the first was kept"))
            continue
        if path.suffix.lower() in _NESTED:
            problems.append(Problem(zip_path.name, f"{entry.filename} is an archive itself: unpack it to import it"))
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as source, path.open("xb") as file:
            shutil.copyfileobj(source, file, _BLOCK_BYTES)
    return problems


def _is_clutter(name: str) -> bool:
    """Whether macOS put the entry there rather than a person."""
    parts = name.rstrip("/").split("/")
    return parts[0] == "__MACOSX" or parts[-1].startswith("._") or parts[-1] == ".DS_Store"


def _clear(folder: Path, is_new: bool) -> None:
    """Remove what was written: all of a new folder, else what lies in it."""
    if is_new:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
