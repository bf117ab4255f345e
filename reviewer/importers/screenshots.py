"""Folders of numbered pictures, one per observation, with the task in ``task.txt`` or a README.

What the agent did between two pictures is not known: each such step has one action of kind ``other``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from reviewer.importers import video
from reviewer.importers.files import (
    PICTURE_SUFFIXES,
    Context,
    ImportRefused,
    absolute,
    capped,
    natural_key,
    observe,
    read_text,
    sha256_of_files,
    short_id,
)
from reviewer.tolerant_json import MAX_BYTES
from reviewer.trajectory import Action, ActionKind, Observation, Problem, Step, Trajectory

NAME = "screenshots"

_NUMBERED = re.compile(r"\d|reset|start|initial", re.IGNORECASE)
_README = re.compile(r"readme(\.md|\.txt|\.rst)?", re.IGNORECASE)
_LABELLED_TASK = re.compile(
    r"^[^\w\n]*(?:task|instruction|goal|(?:execution )?trace)[ \t*_`]*[:：][ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE
)


def detect(path: Path) -> bool:
    """Whether a folder holds at least two pictures with numbers in their names."""
    return path.is_dir() and len(pictures_of(path)) >= 2


def pictures_of(folder: Path) -> list[Path]:
    """The numbered pictures of a folder in natural order, ``reset`` and ``start`` first; hidden files are left out."""
    try:
        names = [entry.name for entry in folder.iterdir() if entry.suffix.lower() in PICTURE_SUFFIXES]
    except OSError:
        return []
    numbered = [name for name in names if _NUMBERED.search(Path(name).stem) and not name.startswith(".")]
    return [folder / name for name in sorted(numbered, key=natural_key)]


def read(path: Path, context: Context | None = None) -> Trajectory:
    """Read a folder of pictures. Raises ImportRefused when none of them can be read."""
    context = context or Context()
    path = absolute(path)
    problems: list[Problem] = []
    files = _inside(path, pictures_of(path), problems)
    observations: list[Observation] = []
    for index, picture in enumerate(files):
        observation, trouble = observe(index, picture)
        observations.append(observation)
        if trouble:
            problems.append(Problem(picture.name, trouble[:1].upper() + trouble[1:]))
    if not any(observation.path for observation in observations):
        told = f" ({problems[0].file}: {problems[0].message})" if problems else ""
        raise ImportRefused(f"none of its pictures can be read{told}", path, problems)
    task = context.task or read_text(path / "task.txt") or readme_task(path)
    if not task:
        problems.append(Problem(path.name, "No task text: give --task or a task.txt in the folder"))
    videos = [file for file in sorted(path.iterdir()) if file.suffix.lower() != ".gif" and video.is_media(file)]
    return Trajectory(
        id=short_id(sha256_of_files(files)),
        format=NAME,
        source=str(path),
        task=task,
        steps=unknown_steps(len(files) - 1),
        observations=tuple(observations),
        video_path=videos[0] if len(videos) == 1 else None,
        problems=capped(problems),
    )


def unknown_steps(count: int) -> tuple[Step, ...]:
    """Steps of which only the pictures before and after are known."""
    return tuple(Step(index, (Action(ActionKind.OTHER),), source_number=str(index + 1)) for index in range(count))


def is_readme(path: Path) -> bool:
    """Whether a file is a README by its name."""
    return _README.fullmatch(path.name) is not None


def readme_task(folder: Path) -> str:
    """The task a README tells: what follows task, instruction, goal or trace and a colon, else its first line."""
    try:
        readmes = sorted(file for file in folder.iterdir() if is_readme(file))
    except OSError:
        return ""
    for text in map(read_text, readmes):
        labelled = _LABELLED_TASK.search(text)
        lines = [labelled.group(1)] if labelled else [line for line in text.splitlines() if re.search(r"\w", line)]
        if lines:
            return lines[0].strip(' #*_`"\t')
    return ""


def _inside(folder: Path, files: Sequence[Path], problems: list[Problem]) -> list[Path]:
    """The files that are what their names say: no links out of the folder, no folders, none beyond all measure."""
    root = folder.resolve()
    kept = []
    for file in files:
        if not file.is_file() or not file.resolve().is_relative_to(root):
            problems.append(Problem(file.name, "Not a file of this folder: it was left out"))
        elif file.stat().st_size > MAX_BYTES:
            problems.append(Problem(file.name, "Over 512 MiB: it was left out"))
        else:
            kept.append(file)
    return kept
