"""Find trajectories on disk: recognise each format by its content, read it, and say what could not be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reviewer.archive import is_zip
from reviewer.importers import native, osworld, screenshots, video
from reviewer.importers.files import Context, ImportRefused, Refusal, absolute, is_storable, natural_key, readable_name
from reviewer.trajectory import Problem, Trajectory

__all__ = ["FORMATS", "ImportRefused", "Refusal", "find"]

FORMATS = (osworld.NAME, native.NAME, screenshots.NAME, video.NAME)

_EXAMPLES = "evaluation_examples"
_JSON_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
_LOOKED_FOR = (
    "an OSWorld result folder (traj.jsonl), a video, numbered screenshots, or the reviewer's own JSON (docs/formats.md)"
)


Found = Trajectory | Refusal


def find(
    paths: Sequence[Path], *, task: str | None = None, format: str | None = None, follow_paths: bool = False
) -> Iterator[Found]:
    """Yield every trajectory in files and folders as it is read, and a refusal for each that can't be.

    ``task`` is the task text of everything found, ``format`` one of FORMATS to look for nothing else. ``follow_paths``
    lets the reviewer's own JSON name media anywhere on this machine: only for files the caller trusts. Never raises.
    """
    context = Context(task=task, examples=tuple(_example_folders(paths)), follows_paths=follow_paths)
    for path in paths:
        if format is not None and format not in FORMATS:
            yield _refused(path, f"unknown format {format!r}: use one of {', '.join(FORMATS)}")
        elif not path.exists():
            yield _refused(path, "it does not exist: check the path")
        elif path.name == _EXAMPLES and path.is_dir():
            if len(paths) == 1:
                yield _refused(path, "it only defines tasks: give it along with the results of a run")
        elif path.is_dir():
            yield from _Walk(path, context, format).found()
        elif not path.is_file():
            yield _refused(path, "neither a file nor a folder: give the file itself")
        else:
            yield from _from_file(path, context, format)


class _Walk:
    """One given folder while it is walked; remembers the media that belong to a JSON file."""

    def __init__(self, root: Path, context: Context, format: str | None) -> None:
        self.root = root
        self.context = context
        self.format = format
        self.claimed: set[Path] = set()
        self.unread: set[Path] = set()

    def found(self) -> Iterator[Found]:
        is_empty = True
        closed: list[OSError] = []
        for folder, names in _folders(self.root, closed):
            for item in self._in_folder(folder, names):
                is_empty = False
                yield item
        for error in closed:
            is_empty = False
            yield _refused(Path(error.filename), f"can't be opened ({error.strerror}): check its permissions")
        if is_empty:
            yield _refused(self.root, f"nothing to import in it: looked for {_LOOKED_FOR}")

    def _in_folder(self, folder: Path, names: list[str]) -> Iterator[Found]:
        if osworld.LINES in names:
            if self._wants(osworld.NAME):
                yield from _read(osworld.read, folder, self.context)
            return
        paths = [folder / name for name in names]
        data = [path for path in paths if path.suffix.lower() in _JSON_SUFFIXES]
        is_known = False
        if self._wants(native.NAME):
            for path in data:
                if native.detect(path):
                    is_known = True
                    yield from self._claimed(_read_native(path, self.context))
        if self._wants(screenshots.NAME) and self._holds_screenshots(folder):
            is_known = True
            yield from self._claimed(_read(screenshots.read, folder, self.context))
        if self._wants(video.NAME):
            for path in paths:
                if self._is_video(path, is_beside_pictures=is_known and screenshots.detect(folder)):
                    is_known = True
                    yield from _read(video.read, path, self.context)
        if not is_known and self.format is None:
            for path in data:
                if path.suffix.lower() == ".jsonl":
                    self.unread.add(folder)
                    yield _unknown_file(path)

    def _wants(self, name: str) -> bool:
        return self.format in (None, name)

    def _is_video(self, path: Path, is_beside_pictures: bool) -> bool:
        if path.resolve() in self.claimed or (is_beside_pictures and path.suffix.lower() == ".gif"):
            return False
        return path.is_file() and video.is_media(path)

    def _holds_screenshots(self, folder: Path) -> bool:
        """Whether the folder is a run of its own, and no JSON file has its pictures or lies above them unread."""
        if folder.parent in self.unread or not screenshots.detect(folder):
            return False
        return not any(path.resolve() in self.claimed for path in screenshots.pictures_of(folder))

    def _claimed(self, items: Iterator[Found]) -> Iterator[Found]:
        """Pass items on, noting the media they use, so that none is imported a second time on its own."""
        for item in items:
            if isinstance(item, Trajectory):
                used = [item.video_path, *(observation.path for observation in item.observations)]
                self.claimed.update(path.resolve() for path in used if path)
            yield item


def _from_file(path: Path, context: Context, format: str | None) -> Iterator[Found]:
    """What one given file holds; it is always told when that is nothing."""
    readers: dict[str, Callable[[], Iterator[Found]]] = {
        osworld.NAME: lambda: _read(osworld.read, path, context),
        native.NAME: lambda: _read_native(path, context),
        video.NAME: lambda: _read(video.read, path, context),
    }
    if format == screenshots.NAME:
        yield _refused(path, "not a folder: give the folder that holds the numbered screenshots")
    elif format is not None:
        yield from readers[format]()
    elif osworld.detect(path):
        yield from readers[osworld.NAME]()
    elif native.detect(path):
        yield from readers[native.NAME]()
    elif video.is_media(path):
        yield from readers[video.NAME]()
    else:
        yield _unknown_file(path)


def _read(read: Callable[[Path, Context], Trajectory], path: Path, context: Context) -> Iterator[Found]:
    if not is_storable(absolute(path)):
        yield _refused(path, "its name is not UTF-8: rename it")
        return
    try:
        yield read(path, context)
    except ImportRefused as error:
        yield _refused(path, str(error), error.problems)
    except OSError as error:
        yield _refused(path, f"can't be read ({error.strerror}): check its permissions")


def _read_native(path: Path, context: Context) -> Iterator[Found]:
    try:
        items = list(native.read_all(path, context))
    except ImportRefused as error:
        yield _refused(path, str(error))
        return
    except OSError as error:
        yield _refused(path, f"can't be read ({error.strerror}): check its permissions")
        return
    if not items:
        yield _unknown_file(path)
    yield from items


def _unknown_file(path: Path) -> Refusal:
    try:
        is_blank = path.stat().st_size == 0
    except OSError as error:
        return _refused(path, f"can't be read ({error.strerror}): check its permissions")
    if is_blank:
        return _refused(path, "an empty file: copy it again")
    if is_zip(path):
        return _refused(path, "an archive: unpack it first")
    return _refused(path, f"not in a format the reviewer reads: give {_LOOKED_FOR}")


def _refused(path: Path, message: str, problems: tuple[Problem, ...] = ()) -> Refusal:
    """A refusal whose first problem says why in one sentence that names the file."""
    name = readable_name(path)
    stated = message if message.startswith((name, path.name)) else f"{name}: {message}"
    return Refusal(readable_name(absolute(path)), (Problem(name, stated), *problems))


def _folders(root: Path, closed: list[OSError]) -> Iterator[tuple[Path, list[str]]]:
    """Every folder below a root, in natural order, with its file names; a run's own folder is not entered further.

    Folders that can't be opened are noted in ``closed``.
    """
    for place, folders, names in os.walk(root, onerror=closed.append):
        folders[:] = sorted((name for name in folders if not _is_skipped(name)), key=natural_key)
        if osworld.LINES in names:
            folders.clear()
        yield Path(place), sorted((name for name in names if not name.startswith("._")), key=natural_key)


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name in (_EXAMPLES, "__MACOSX", "__pycache__", "node_modules")


def _example_folders(paths: Sequence[Path]) -> Iterator[Path]:
    """Every ``evaluation_examples`` in the given folders."""
    for path in paths:
        if path.name == _EXAMPLES and path.is_dir():
            yield path
            continue
        for place, folders, names in os.walk(path):
            if _EXAMPLES in folders:
                yield Path(place) / _EXAMPLES
            folders[:] = [] if osworld.LINES in names else sorted(name for name in folders if not _is_skipped(name))
