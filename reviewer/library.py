"""The library: what was imported, with its media, alignment and everything people did to it.

The originals are never changed; proxies and thumbnails live under ``home/media``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from db.models import MediaRow, TrajectoryRow, utc_now
from db.session import Database
from reviewer import alignment_versions, job_queue
from reviewer.errors import ReviewerError
from reviewer.exchange import put_back, take_out
from reviewer.exported import json_value
from reviewer.judges import DEFAULT_JUDGE, known
from reviewer.ledger import UnknownTrajectory
from reviewer.media_ids import THUMBNAIL, VIDEO, media_id, observation_role
from reviewer.playable import Playable, make_playable, picture_size_px, sha256_of_file
from reviewer.recipes import RECIPES, ExportedTrajectory, Manifest
from reviewer.settings import Settings
from reviewer.tolerant_json import clean_text
from reviewer.trajectory import Action, Point, Problem, Trajectory

_ABOUT = ("source", "problems", "task", "agent", "platform")
FROM_PICTURES = "Made from the screenshots, one second each"


State = Literal["new", "changed", "unchanged"]


@dataclass(frozen=True)
class Stored:
    """``record`` is the import record of one trajectory; ``state`` what storing it did."""

    record: dict[str, Any]
    state: State


def open_library(settings: Settings) -> Library:
    """The library of this machine, made where there is none. Raises ReviewerError when it can't be opened."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReviewerError(
            f"{settings.home}: the folder can't be made ({error.strerror}); set REVIEWER_HOME to another."
        ) from error
    return Library(Database.open(settings.database_url), settings.home)


class Library:
    """Stores trajectories in ``database`` and what is made from them under ``home``."""

    def __init__(self, database: Database, home: Path) -> None:
        self.database = database
        self.home = home

    @property
    def media_folder(self) -> Path:
        """Where proxies and thumbnails are kept."""
        return self.home / "media"

    @property
    def uploads_folder(self) -> Path:
        """Where uploaded files are kept, one folder per upload."""
        return self.home / "uploads"

    def store(self, found: Trajectory) -> Stored:
        """Store one trajectory as an importer found it.

        Again with the same content it changes nothing but paths that moved and a task that was missing; the same source
        with other content keeps its id as a new revision, and everything people did. Raises ReviewerError where nothing
        can be shown.
        """
        export = found.extra.get("export")
        trajectory = _clean(replace(found, extra={key: value for key, value in found.extra.items() if key != "export"}))
        content = _content_hash(trajectory)
        with self.database.read() as session:
            row = _find(session, trajectory)
            is_stored = row is not None and (export is not None or _is_stored(session, row, trajectory, content))
        playable = None if is_stored else make_playable(trajectory, self.media_folder, content)
        with self.database.write() as session:
            row = _find(session, trajectory)
            is_same = row is not None and (playable is None or row.content_hash == content)
            state: State = "unchanged" if is_same else "changed" if row else "new"
            if playable is not None:
                row = _write(session, row, content, playable)
            elif row is not None:
                _relink(session, row, trajectory)
            else:
                raise ReviewerError("it was removed while it was imported; import it again", trajectory.source)
            if state != "unchanged" and DEFAULT_JUDGE in known():
                job_queue.enqueue(session, "judge", row.id, {"judge": DEFAULT_JUDGE})
            if export is not None:
                put_back(session, row, export)
            return Stored(_record(session, row, trajectory.source), state)

    def trajectory(self, trajectory_id: str) -> Trajectory:
        """Read one trajectory back. Raises UnknownTrajectory."""
        with self.database.read() as session:
            row = session.get(TrajectoryRow, trajectory_id)
            if row is None:
                raise UnknownTrajectory(trajectory_id)
            return Trajectory.from_json(row.document)

    def export(self, recipe: str, folder: Path, ids: Sequence[str] | None = None) -> Manifest:
        """Write the trajectories of these ids, or all, into ``folder`` by a recipe.

        Raises ReviewerError for an unknown recipe, an unknown id, or a folder that can't be written to.
        """
        if recipe not in RECIPES:
            raise ReviewerError(f"No recipe is called '{recipe}'. Known recipes: {', '.join(RECIPES)}.")
        with self.database.read() as session:
            if ids is None:
                ids = session.scalars(
                    select(TrajectoryRow.id).order_by(TrajectoryRow.imported_utc, TrajectoryRow.id)
                ).all()
            return RECIPES[recipe]((_taken(session, id) for id in ids), folder)

    def refers_to(self, folder: Path) -> bool:
        """Whether any stored trajectory or media lies in ``folder``."""
        start = f"{folder}{os.sep}"
        with self.database.read() as session:
            stored = select(MediaRow.id).where(
                or_(
                    MediaRow.path.startswith(start, autoescape=True),
                    MediaRow.original_path.startswith(start, autoescape=True),
                )
            )
            return session.scalars(stored.limit(1)).first() is not None


def refusal_record(source: str, problems: tuple[Problem, ...]) -> dict[str, Any]:
    """The import record of a file that was refused."""
    return {
        "id": None,
        "format": None,
        "source": source,
        "task": None,
        "steps": 0,
        "video": None,
        "score": None,
        "outcome": None,
        "problems": [_problem(problem) for problem in problems],
    }


def _taken(session: Session, trajectory_id: str) -> ExportedTrajectory:
    row = session.get(TrajectoryRow, trajectory_id)
    if row is None:
        raise UnknownTrajectory(trajectory_id)
    return take_out(session, row)


def _find(session: Session, trajectory: Trajectory) -> TrajectoryRow | None:
    """The stored trajectory this one is: the same defining bytes, else the same source."""
    same_source = select(TrajectoryRow).where(TrajectoryRow.source == trajectory.source)
    return session.get(TrajectoryRow, trajectory.id) or session.scalars(same_source).first()


def _is_stored(session: Session, row: TrajectoryRow, trajectory: Trajectory, content: str) -> bool:
    """Whether there is nothing to learn from importing this again."""
    has_news = trajectory.task not in ("", row.task) or (trajectory.agent and not row.agent)
    made = session.scalars(select(MediaRow.path).where(MediaRow.id.in_((row.media_id, row.thumbnail_id)))).all()
    return (
        row.content_hash == content and not has_news and (len(made) > 0 and all(Path(path).exists() for path in made))
    )


def _free_source(session: Session, row: TrajectoryRow, source: str) -> str:
    """The source a trajectory is to have: the one it was found at, unless that is another's."""
    is_taken = session.scalars(
        select(TrajectoryRow.id).where(TrajectoryRow.source == source, TrajectoryRow.id != row.id)
    )
    return row.source if is_taken.first() else source


def _relink(session: Session, row: TrajectoryRow, trajectory: Trajectory) -> None:
    """Follow files that moved; a copy beside the original changes nothing."""
    stored = Trajectory.from_json(row.document)
    if all(path.exists() for path in _paths(stored)) or len(stored.observations) != len(trajectory.observations):
        return
    source = _free_source(session, row, trajectory.source)
    observations = tuple(
        replace(old, path=new.path if old.path else None)
        for old, new in zip(stored.observations, trajectory.observations, strict=True)
    )
    moved = replace(stored, source=source, video_path=trajectory.video_path, observations=observations)
    row.source, row.document = source, moved.to_json()
    for observation in observations:
        media = session.get(MediaRow, media_id(row.content_hash, observation_role(observation.index)))
        if media is not None and observation.path is not None:
            media.path = str(observation.path)
    video = session.get(MediaRow, row.media_id) if row.media_id else None
    if video is not None and moved.video_path is not None:
        if video.original_path is None:
            video.path = str(moved.video_path)
        else:
            video.original_path = str(moved.video_path)


def _paths(trajectory: Trajectory) -> list[Path]:
    pictures = [observation.path for observation in trajectory.observations if observation.path]
    return [*pictures, *([trajectory.video_path] if trajectory.video_path else [])]


def _write(session: Session, before: TrajectoryRow | None, content: str, playable: Playable) -> TrajectoryRow:
    """Write a new trajectory, or what is new of one that was stored ``before``."""
    row = before or TrajectoryRow(id=playable.trajectory.id, revision=0, content_hash="")
    is_changed = row.content_hash != content
    trajectory = replace(playable.trajectory, id=row.id)
    if playable.original is not None:
        about = {key: getattr(playable.original, key) for key in ("width_px", "height_px", "duration_s", "codec")}
        trajectory = replace(trajectory, extra=trajectory.extra | {"video": about})
    if before is not None:
        kept = {name: getattr(trajectory, name) or getattr(before, name) for name in ("task", "agent")}
        trajectory = replace(trajectory, source=_free_source(session, before, trajectory.source), **kept)
    if before is not None and is_changed:
        note = f"changed since the import of {before.imported_utc[:10]}; its reviews and corrections were kept"
        changed = Problem(Path(trajectory.source).name, note)
        trajectory = replace(trajectory, problems=(*trajectory.problems, changed))
    # An export brings the problems met when it was imported before.
    trajectory = replace(trajectory, problems=tuple(dict.fromkeys(trajectory.problems)))
    outdated = set(_media_ids(before)) if before else set()
    for media in _media_rows(trajectory, playable, content):
        session.merge(media)
        outdated.discard(media.id)
    session.flush()
    row.revision += is_changed
    row.content_hash = content
    row.format = trajectory.format
    row.source = trajectory.source
    row.task = trajectory.task
    row.agent = trajectory.agent
    row.step_count = len(trajectory.steps)
    row.duration_s = playable.video.duration_s
    row.score = trajectory.score
    row.outcome = trajectory.outcome
    row.problem_count = len(trajectory.problems)
    row.problems = [_problem(problem) for problem in trajectory.problems]
    row.imported_utc = utc_now() if is_changed else row.imported_utc
    row.media_id = media_id(content, VIDEO)
    row.thumbnail_id = media_id(content, THUMBNAIL) if playable.thumbnail else None
    row.document = trajectory.to_json()
    session.add(row)
    session.flush()
    session.execute(delete(MediaRow).where(MediaRow.id.in_(outdated)))
    if is_changed:
        alignment_versions.store_found(session, row, playable.alignment)
    return row


def _media_ids(row: TrajectoryRow) -> list[str]:
    roles = [VIDEO, THUMBNAIL, *(observation_role(index) for index in range(len(row.document["observations"])))]
    return [media_id(row.content_hash, role) for role in roles]


def _media_rows(trajectory: Trajectory, playable: Playable, content: str) -> list[MediaRow]:
    video, original = playable.video, playable.original
    is_proxy = original is None or original.path != video.path
    rows = [
        MediaRow(
            id=media_id(content, VIDEO),
            kind="video",
            path=str(video.path),
            original_path=str(original.path if original else video.path) if is_proxy else None,
            proxy_reason=(original.proxy_reason if original else FROM_PICTURES) if is_proxy else "",
            width_px=video.width_px,
            height_px=video.height_px,
            duration_s=video.duration_s,
            start_s=original.start_s if original else 0.0,
            clock=video.clock.to_json(),
        )
    ]
    pictures = [(observation_role(observation.index), observation.path) for observation in trajectory.observations]
    for role, path in [*pictures, (THUMBNAIL, playable.thumbnail)]:
        if path is not None:
            width_px, height_px = picture_size_px(path)
            rows.append(
                MediaRow(
                    id=media_id(content, role), kind="image", path=str(path), width_px=width_px, height_px=height_px
                )
            )
    return rows


def _record(session: Session, row: TrajectoryRow, source: str) -> dict[str, Any]:
    """The import record of what was found at ``source``, which may be a copy of what is stored."""
    video = row.document["extra"].get("video")
    is_copy = source != row.source
    first = Path(row.source).name
    copy = Problem(Path(source).name, f"the same run is in the library already, from {first}; nothing was added")
    return {
        "id": row.id,
        "format": row.format,
        "source": source,
        "task": row.task,
        "steps": row.step_count,
        "video": {"width": video["width_px"], "height": video["height_px"], "duration_s": video["duration_s"]}
        if video
        else None,
        "score": row.score,
        "outcome": row.outcome,
        "problems": [*row.problems, *([_problem(copy)] if is_copy else [])],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {"file": problem.file, "line": problem.line, "message": problem.message}


def _clean(trajectory: Trajectory) -> Trajectory:
    """Without what a database or a browser can't take: lone surrogates, NUL, numbers that are not finite."""
    for path in map(str, _paths(trajectory)):
        if clean_text(path) != path:
            raise ReviewerError("the name is not valid UTF-8; rename the file or its folder", clean_text(path))
    steps = tuple(replace(step, actions=tuple(map(_placed, step.actions))) for step in trajectory.steps)
    return Trajectory.from_json(json_value(replace(trajectory, steps=steps).to_json()))


def _placed(action: Action) -> Action:
    """The action without points that are nowhere."""
    return replace(action, points=tuple(filter(_is_finite, action.points)))


def _is_finite(point: Point) -> bool:
    try:
        return all(map(math.isfinite, (point.x, point.y))) and point.width > 0 and point.height > 0
    except OverflowError:
        return False


def _content_hash(trajectory: Trajectory) -> str:
    """A hash of what happened and of all media; where the files lie and what they are called does not count."""
    extra = {key: value for key, value in trajectory.extra.items() if key != "video"}
    document = trajectory.to_json() | {key: None for key in _ABOUT} | {"extra": extra}
    document["video_path"] = _file_hash(trajectory.video_path)
    for observation, values in zip(trajectory.observations, document["observations"], strict=True):
        values["path"] = _file_hash(observation.path)
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _file_hash(path: Path | None) -> str | None:
    try:
        return sha256_of_file(path) if path else None
    except OSError:
        return None
