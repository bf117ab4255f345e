"""Find trajectories on disk: recognise each format by its content, read it, and say what could not be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from reviewer.archive import is_zip
from reviewer.importers import native, osworld, screenshots, video
from reviewer.importers.files import Context, ImportRefused, Refusal, absolute, is_storable, natural_key, readable_name
from reviewer.trajectory import Problem, Trajectory

__all__ = ["FORMATS", "ImportRefused", "Refusal", "example_folders", "find"]

FORMATS = (osworld.NAME, native.NAME, screenshots.NAME, video.NAME)

_EXAMPLES = "evaluation_examples"
_JSON_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
# What runs and exports have beside them; OSWorld's all_result.json is not even JSON.
_COMPANIONS = frozenset({"args.json", "all_result.json", "manifest.json"})
_TASK_FILES = frozenset({"task.txt", "instruction.txt"})
_LOOKED_FOR = (
    "an OSWorld result folder (traj.jsonl), a video, numbered screenshots, or the reviewer's own JSON (docs/formats.md)"
)
_NOTHING = f"nothing to import in it: looked for {_LOOKED_FOR}"
_ONLY_TASKS = "it only defines tasks: give it along with the results of a run"


Found = Trajectory | Refusal


def find(
    paths: Sequence[Path],
    *,
    task: str | None = None,
    format: str | None = None,
    follow_paths: bool = False,
    answer_each: bool = False,
    read_apart: Collection[Path] = (),
) -> Iterator[Found]:
    """Yield every trajectory in files and folders as it is read, and a refusal for each that can't be.

    ``task`` is the task text of everything found, ``format`` one of FORMATS to look for nothing else. ``follow_paths``
    lets the reviewer's own JSON name media anywhere on this machine: only for files the caller trusts. With
    ``answer_each`` what lies directly in a given folder counts as given itself: what gives nothing is refused by name.
    ``read_apart`` are files that the caller reads, so that their folders are not empty. Never raises.
    """
    context = Context(task=task, examples=tuple(example_folders(paths)), follows_paths=follow_paths)
    apart = frozenset(map(absolute, read_apart))
    has_results = bool(apart) or not all(map(_is_examples, paths))
    for path in paths:
        given = replace(context, root=path)
        if format is not None and format not in FORMATS:
            yield _refused(path, f"unknown format {format!r}: use one of {', '.join(FORMATS)}", given)
        elif not path.exists():
            yield _refused(path, "it does not exist: check the path", given)
        elif _is_examples(path):
            if not has_results:
                yield _refused(path, _ONLY_TASKS, given)
        elif path.is_dir():
            walk = _Walk(path, given, format, apart)
            yield from walk.found()
            yield from walk.unanswered(answer_each)
        elif not path.is_file():
            yield _refused(path, "neither a file nor a folder: give the file itself", given)
        else:
            yield from _from_file(path, given, format)


def example_folders(paths: Sequence[Path]) -> Iterator[Path]:
    """Every ``evaluation_examples`` in the given folders."""
    for path in paths:
        if _is_examples(path):
            yield path
            continue
        for place, folders, names in os.walk(path):
            if _EXAMPLES in folders:
                yield Path(place) / _EXAMPLES
            folders[:] = [] if osworld.LINES in names else sorted(name for name in folders if not _is_skipped(name))


class _Walk:
    """One given folder while it is walked; remembers which things in it gave something, and the media of JSON files."""

    def __init__(self, root: Path, context: Context, format: str | None, apart: frozenset[Path]) -> None:
        self.root = root
        self.context = context
        self.format = format
        self.claimed: set[Path] = set()
        self.unread: set[Path] = set()
        self.answered: set[str] = set()
        self.run_count = 0
        for path in apart:
            self._answer(path)

    def found(self) -> Iterator[Found]:
        closed: list[OSError] = []
        for folder, names in _folders(self.root, closed):
            yield from self._in_folder(folder, names)
        for error in closed:
            yield from self._told(Path(error.filename), iter([_unreadable(error, Path(error.filename), self.context)]))

    def unanswered(self, each: bool) -> Iterator[Refusal]:
        """A refusal for the folder when nothing in it gave anything, else for each thing directly in it that gave none.

        What lies beside runs as a matter of course is not refused.
        """
        left = [path for path in self._top() if not self._is_answered(path)] if each else []
        for path in left:
            if path.is_dir():
                yield _refused(path, _ONLY_TASKS if _is_examples(path) else _NOTHING, self.context)
            else:
                yield _unknown_file(path, self.context)
        if not self.answered and not left:
            yield _refused(self.root, _NOTHING, self.context)

    def _top(self) -> list[Path]:
        try:
            return sorted((path for path in self.root.iterdir() if not path.name.startswith(".")), key=_natural_path)
        except OSError:
            return []

    def _is_answered(self, path: Path) -> bool:
        if path.name in self.answered or path.name == "__MACOSX":
            return True
        is_text = path.suffix.lower() == ".txt" and any(Path(name).stem == path.stem for name in self.answered)
        is_companion = path.name in _COMPANIONS | _TASK_FILES | {_EXAMPLES} or screenshots.is_readme(path)
        return self.run_count > 0 and (is_text or is_companion)

    def _answer(self, path: Path) -> None:
        """Note what a path is or lies in, as seen from the root; the root itself stands for all that is in it."""
        whole, root = absolute(path), absolute(self.root)
        if whole == root:
            self.answered.update([".", *(top.name for top in self._top())])
        elif whole.is_relative_to(root):
            self.answered.add(whole.relative_to(root).parts[0])

    def _in_folder(self, folder: Path, names: list[str]) -> Iterator[Found]:
        if osworld.LINES in names:
            if self._wants(osworld.NAME):
                yield from self._told(folder, _read(osworld.read, folder, self.context))
            return
        paths = [folder / name for name in names]
        complaints: list[tuple[Path, native.Complaint]] = []
        before = self.run_count
        if self._wants(native.NAME):
            for path in (path for path in paths if path.suffix.lower() in _JSON_SUFFIXES):
                if native.detect(path):
                    yield from self._told(path, _read_native(path, self.context))
                elif path.name not in _COMPANIONS and (complaint := native.complaint(path)):
                    complaints.append((path, complaint))
        if self._wants(screenshots.NAME) and self._holds_screenshots(folder):
            pictures = screenshots.pictures_of(folder)
            yield from self._told(pictures[0], _read(screenshots.read, folder, self.context))
            for path in pictures:
                self._answer(path)
        if self._wants(video.NAME):
            for path in paths:
                if self._is_video(path, is_beside_pictures=self.run_count > before and screenshots.detect(folder)):
                    yield from self._told(path, _read(video.read, path, self.context))
        for path, complaint in complaints:
            if complaint.is_log and self.run_count > before:
                continue
            if complaint.is_log and path.suffix.lower() == ".jsonl":
                self.unread.add(folder)
            yield from self._told(path, iter([_refused(path, complaint.reason, self.context, line=complaint.line)]))

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

    def _told(self, path: Path, items: Iterator[Found]) -> Iterator[Found]:
        """Pass on what a path gave, noting the other media it uses, so that none is imported a second time."""
        for item in items:
            self._answer(path)
            if isinstance(item, Trajectory):
                self.run_count += 1
                media = [item.video_path, *(observation.path for observation in item.observations)]
                used = [file for file in media if file and file != absolute(path)]
                self.claimed.update(file.resolve() for file in used)
                for file in used:
                    self._answer(file)
            yield item


def _from_file(path: Path, context: Context, format: str | None) -> Iterator[Found]:
    """What one given file holds; it is always told when that is nothing."""
    readers: dict[str, Callable[[], Iterator[Found]]] = {
        osworld.NAME: lambda: _read(osworld.read, path, context),
        native.NAME: lambda: _read_native(path, context),
        video.NAME: lambda: _read(video.read, path, context),
    }
    if format == screenshots.NAME:
        yield _refused(path, "not a folder: give the folder that holds the numbered screenshots", context)
    elif format is not None:
        yield from readers[format]()
    elif osworld.detect(path):
        yield from readers[osworld.NAME]()
    elif native.detect(path):
        yield from readers[native.NAME]()
    elif video.is_media(path):
        yield from readers[video.NAME]()
    else:
        yield _unknown_file(path, context)


def _read(read: Callable[[Path, Context], Trajectory], path: Path, context: Context) -> Iterator[Found]:
    if not is_storable(absolute(path)):
        yield _refused(path, "its name is not UTF-8: rename it", context)
        return
    try:
        yield read(path, context)
    except ImportRefused as error:
        yield _refused_by(error, path, context)
    except OSError as error:
        yield _unreadable(error, path, context)


def _read_native(path: Path, context: Context) -> Iterator[Found]:
    try:
        items = list(native.read_all(path, context))
    except ImportRefused as error:
        yield _refused_by(error, path, context)
        return
    except OSError as error:
        yield _unreadable(error, path, context)
        return
    if not items:
        yield _unknown_file(path, context)
    yield from items


def _unknown_file(path: Path, context: Context) -> Refusal:
    try:
        is_blank = path.stat().st_size == 0
    except OSError as error:
        return _unreadable(error, path, context)
    if is_blank:
        return _refused(path, "an empty file: copy it again", context)
    if is_zip(path):
        return _refused(path, "an archive: unpack it first", context)
    complaint = native.complaint(path) if path.suffix.lower() in _JSON_SUFFIXES else None
    if complaint:
        return _refused(path, complaint.reason, context, line=complaint.line)
    return _refused(path, f"not in a format the reviewer reads: give {_LOOKED_FOR}", context)


def _refused(
    path: Path, reason: str, context: Context, problems: tuple[Problem, ...] = (), line: int | None = None
) -> Refusal:
    return Refusal(readable_name(absolute(path)), (Problem(context.name_of(path), reason, line), *problems))


def _refused_by(error: ImportRefused, path: Path, context: Context) -> Refusal:
    """The refusal of a run or file; what is wrong with one file inside a run's folder is told by its name there."""
    about = absolute(Path(error.file or path))
    inside = about if about != absolute(path) and about.is_relative_to(absolute(path)) else None
    file = replace(context, root=path).name_of(inside) if inside else context.name_of(path)
    return Refusal(readable_name(absolute(path)), (Problem(file, error.reason), *error.problems))


def _unreadable(error: OSError, path: Path, context: Context) -> Refusal:
    kind = "opened" if path.is_dir() else "read"
    return _refused(path, f"can't be {kind} ({error.strerror}): check its permissions", context)


def _folders(root: Path, closed: list[OSError]) -> Iterator[tuple[Path, list[str]]]:
    """Every folder below a root, in natural order, with its file names; a run's own folder is not entered further.

    Folders that can't be opened are noted in ``closed``.
    """
    for place, folders, names in os.walk(root, onerror=closed.append):
        folders[:] = sorted((name for name in folders if not _is_skipped(name)), key=natural_key)
        if osworld.LINES in names:
            folders.clear()
        yield Path(place), sorted((name for name in names if not name.startswith("._")), key=natural_key)


def _natural_path(path: Path) -> list[tuple[int, int, str]]:
    return natural_key(path.name)


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name in (_EXAMPLES, "__MACOSX", "__pycache__", "node_modules")


def _is_examples(path: Path) -> bool:
    return absolute(path).name == _EXAMPLES and path.is_dir()
