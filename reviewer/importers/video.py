"""Plain recordings: a video file, with the task in ``name.txt`` or ``task.txt`` beside it."""

from __future__ import annotations

from pathlib import Path

from reviewer.importers.files import (
    PICTURE_SUFFIXES,
    Context,
    ImportRefused,
    absolute,
    is_storable,
    read_text,
    readable_name,
    sha256_of_files,
    short_id,
)
from reviewer.media import MediaError, probe
from reviewer.tolerant_json import is_lfs_pointer
from reviewer.trajectory import Problem, Trajectory

NAME = "video"

SUFFIXES = frozenset(
    {".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi", ".mpg", ".mpeg", ".m2ts", ".gif", ".ogv", ".flv", ".wmv"}
    | {".3gp", ".mp3", ".m4a", ".ogg", ".oga", ".wav", ".aac", ".opus"}
)

_OTHER_SUFFIXES = PICTURE_SUFFIXES | {".json", ".jsonl", ".txt", ".md", ".log"}
_EBML, _RIFF, _GIF, _OGG, _FLV = b"\x1a\x45\xdf\xa3", b"RIFF", b"GIF8", b"OggS", b"FLV\x01"
_ASF, _MPEG = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", b"\x00\x00\x01\xba"
_MP4_BOXES = frozenset({b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp"})


def detect(path: Path) -> bool:
    """Whether a file begins like a video in a container the reviewer knows."""
    try:
        with path.open("rb") as file:
            start = file.read(512)
    except OSError:
        return False
    return (
        start.startswith((_EBML, _GIF, _OGG, _FLV, _ASF, _MPEG))
        or (start.startswith(_RIFF) and start[8:12] == b"AVI ")
        or start[4:8] in _MP4_BOXES
        or (start[:1] == b"\x47" and start[188:189] == b"\x47" and start[376:377] == b"\x47")
    )


def is_media(path: Path) -> bool:
    """Whether a file should be a video or a sound, by its content or its name: one that isn't is worth telling."""
    suffix = path.suffix.lower()
    return suffix in SUFFIXES or (suffix not in _OTHER_SUFFIXES and detect(path))


def read(path: Path, context: Context | None = None) -> Trajectory:
    """Read a recording: no steps and no observations. Raises ImportRefused when it is no video that can be read."""
    context = context or Context()
    if not is_storable(path):
        raise ImportRefused("its name is not UTF-8: rename the file", readable_name(path))
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise ImportRefused(f"can't be read ({error.strerror}): check its permissions", path) from None
    if not start:
        raise ImportRefused("an empty file: record or copy it again", path)
    if is_lfs_pointer(start):
        raise ImportRefused("a Git LFS pointer, not the video: run `git lfs pull`", path)
    try:
        probe(path)
    except MediaError as error:
        raise ImportRefused(error.reason, path) from None
    task = context.task or read_text(path.with_suffix(".txt")) or read_text(path.with_name("task.txt"))
    problems = () if task else (Problem(path.name, "No task text: give --task or a .txt beside it"),)
    return Trajectory(
        id=short_id(sha256_of_files([path])),
        format=NAME,
        source=str(absolute(path)),
        task=task,
        steps=(),
        observations=(),
        video_path=absolute(path),
        problems=problems,
    )
