"""What every importer shares: refusing, hashing, natural order, and pictures found without leaving a folder."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from reviewer.errors import ReviewerError
from reviewer.tolerant_json import JsonError, clean_text, decode, entries_of, is_lfs_pointer, read_bytes, read_entries
from reviewer.trajectory import Observation, Problem

PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
MAX_TASK_BYTES = 1024 * 1024
MAX_PICTURE_PX = 100_000_000
MAX_PROBLEMS = 200
MAX_TEXT_CHARACTERS = 100_000

_PICTURE_FORMATS = ("PNG", "JPEG", "WEBP")
_MAX_MATCHED_PARTS = 8
_SNIFFED_BYTES = 1024 * 1024
_PNG_END = b"IEND"


class ImportRefused(ReviewerError):
    """A source that can't be imported; the message names the file and the fix, ``problems`` say what else is wrong."""

    def __init__(self, reason: str, file: Path | str | None = None, problems: Iterable[Problem] = ()) -> None:
        super().__init__(reason, file)
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Refusal:
    """A file, folder or object that gave no trajectory, and why."""

    source: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Context:
    """What an import was told: the task text, the folders of task definitions, and whose paths may be followed.

    ``follows_paths`` lets a JSON file name media outside its own folder. It must stay off for files that come from
    somebody else, who could otherwise have any file of this machine shown. ``root`` is the file or folder that was
    given, which names of files are told from.
    """

    task: str | None = None
    examples: tuple[Path, ...] = ()
    follows_paths: bool = False
    root: Path | None = None

    def name_of(self, path: Path) -> str:
        """What a problem calls a file: its path in the given folder, or the name alone of what was given itself."""
        whole, root = absolute(path), absolute(self.root or path)
        is_inside = whole != root and whole.is_relative_to(root)
        return readable_name(whole.relative_to(root) if is_inside else Path(whole.name or whole))


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """A sort key that puts ``step_2`` before ``step_10``, and ``reset``, ``start`` and ``initial`` as number 0."""
    plain = re.sub(r"reset|start|initial", "0", name.lower())
    return [
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]{1,18})", plain)
        if part
    ]


def absolute(path: Path) -> Path:
    """The path from the root, without ``..`` and with links left as they are."""
    return Path(os.path.abspath(path))


def short_id(hexdigest: str) -> str:
    """The 16 hex digits that identify a trajectory."""
    return hexdigest[:16]


def sha256_of_files(paths: Iterable[Path]) -> str:
    """The SHA-256 of the bytes of files one after the other. Raises ImportRefused naming the one that can't be read."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                while block := file.read(1024 * 1024):
                    digest.update(block)
        except OSError as error:
            raise ImportRefused(f"can't be read ({error.strerror}): check its permissions", path) from None
    return digest.hexdigest()


def within(folder: Path, name: str) -> Path | None:
    """The file that a source calls ``name``, if it lies in ``folder``.

    A name from elsewhere, absolute or of another machine, is looked for by its last parts, the longest match first.
    None where there is no such file, or where it lies outside the folder, by ``..`` or by a link.
    """
    parts = [part for part in name.removeprefix("file://").replace("\\", "/").split("/") if part]
    try:
        root = folder.resolve()
        for start in range(max(0, len(parts) - _MAX_MATCHED_PARTS), len(parts)):
            path = folder.joinpath(*parts[start:])
            if path.is_file() and path.resolve().is_relative_to(root):
                return path
    except (OSError, RuntimeError, ValueError):
        return None
    return None


def absence(folder: Path, name: str) -> str:
    """Why ``within`` finds no such file, to follow its name in a sentence."""
    if os.path.islink(folder / name):
        return "is a link that leads outside the folder, copy the file there"
    return "is not in the folder"


def capped(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The first problems of a source, and how many more there are: past some point a list helps nobody."""
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    left_out = len(problems) - MAX_PROBLEMS
    return (*problems[:MAX_PROBLEMS], Problem(problems[0].file, f"{left_out} more problems are not listed"))


def observe(index: int, path: Path | None) -> tuple[Observation, str | None]:
    """The observation a picture gives, from its header alone, and what is wrong with the picture, if anything."""
    if path is None:
        return Observation(index), None
    try:
        width_px, height_px = _picture_size(path)
    except ImportRefused as error:
        return Observation(index), error.reason
    return Observation(index, path, width_px, height_px), None


def read_text(path: Path) -> str:
    """The text of a small file, stripped, or "" where it is missing or no text."""
    try:
        data = read_bytes(path, MAX_TASK_BYTES)
    except JsonError:
        return ""
    return "" if b"\0" in data[:1024] and not data.startswith((b"\xff\xfe", b"\xfe\xff")) else _stripped(decode(data))


def first_objects(path: Path, count: int = 5) -> list[dict[str, Any]]:
    """The first few objects of a JSON or JSON Lines file; none where it is no such file."""
    try:
        with path.open("rb") as file:
            start = decode(file.read(_SNIFFED_BYTES))
        if not start.lstrip().startswith(("{", "[")):
            return []
        values = entries_of(start.rpartition("\n")[0], path.name).values or read_entries(path).values
    except (OSError, JsonError):
        return []
    return [entry.value for entry in values[:count] if isinstance(entry.value, dict)]


def readable_name(path: Path) -> str:
    """A path as text that can be stored and shown; bytes that are no UTF-8 become U+FFFD."""
    return clean_text(os.fspath(path))


def is_storable(path: Path) -> bool:
    """Whether the path's name is UTF-8, so that a database can hold it and find the file again."""
    return readable_name(path) == os.fspath(path)


def _stripped(text: str) -> str:
    return clean_text(text).replace("\r\n", "\n").strip()


def _picture_size(path: Path) -> tuple[int, int]:
    try:
        with path.open("rb") as file:
            start = file.read(64)
            file.seek(max(0, path.stat().st_size - 1024))
            end = file.read()
        if not start:
            raise ImportRefused("the picture is an empty file: record or copy it again")
        if is_lfs_pointer(start):
            raise ImportRefused("a Git LFS pointer, not the picture: run `git lfs pull`")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=_PICTURE_FORMATS) as image:
                width_px, height_px = image.size
                is_cut_off = image.format == "PNG" and _PNG_END not in end
    except Image.DecompressionBombError:
        raise ImportRefused("the picture has too many pixels: make it smaller") from None
    except (OSError, ValueError, SyntaxError, EOFError):
        raise ImportRefused("the picture can't be read: save it again as PNG, JPEG or WebP") from None
    if width_px * height_px > MAX_PICTURE_PX:
        raise ImportRefused(f"the picture is {width_px}x{height_px}: make it smaller")
    if is_cut_off:
        raise ImportRefused("the picture is cut off: copy it again")
    return width_px, height_px
