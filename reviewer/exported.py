"""A reviewed trajectory as one JSON object: what the ``jsonl`` recipe writes and the ``native`` importer reads back."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Any

from reviewer.media import Clock
from reviewer.tolerant_json import clean_text
from reviewer.trajectory import Action, Observation, Problem, Step, Trajectory

SCHEMA = "trajectory-reviewer/trajectory"
VERSION = 1

_TRAJECTORY_KEYS = tuple(Trajectory.__dataclass_fields__)


@dataclass(frozen=True)
class ExportedTrajectory:
    """A trajectory with everything said about it, as plain data.

    ``media`` is ``{"name", "original_path", "sha256", "width_px", "height_px", "duration_s", "start_s", "clock", …}``,
    ``alignment`` the newest one. Each review holds its reviewer's current view and, under ``ops``, all their overrides;
    each judgement its spans on both clocks with the frame plan.
    """

    trajectory: Trajectory
    media: dict[str, Any] | None = None
    alignment: dict[str, Any] | None = None
    reviews: list[dict[str, Any]] = field(default_factory=list)
    judgements: list[dict[str, Any]] = field(default_factory=list)


def to_line(exported: ExportedTrajectory) -> dict[str, Any]:
    """The object of one line: JSON values only, with each reviewer's spans also as pictures and steps."""
    line: dict[str, Any] = json_value(
        {
            "schema": SCHEMA,
            "version": VERSION,
            **exported.trajectory.to_json(),
            "outcome": exported.trajectory.outcome,
            "media": exported.media,
            "alignment": exported.alignment,
            "reviews": [_with_places(review, exported) for review in exported.reviews],
            "judgements": exported.judgements,
        }
    )
    return line


def from_line(document: dict[str, Any]) -> ExportedTrajectory:
    """Read what ``to_line`` wrote. Raises ValueError naming the key that is wrong."""
    if document.get("schema") != SCHEMA:
        raise ValueError(f"schema: {document.get('schema')!r} is not {SCHEMA!r}")
    if document.get("version") != VERSION:
        raise ValueError(f"version: {document.get('version')!r} is not {VERSION}; update the reviewer to read it")
    missing = [key for key in _TRAJECTORY_KEYS if key not in document]
    if missing:
        raise ValueError(f"{missing[0]}: missing")
    try:
        trajectory = Trajectory.from_json({key: document[key] for key in _TRAJECTORY_KEYS})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"steps, observations or problems: {error}") from None
    _check(trajectory)
    for key in ("media", "alignment"):
        if not isinstance(document.get(key), dict | None):
            raise ValueError(f"{key}: must be an object or null")
    for key in ("reviews", "judgements"):
        if not isinstance(document.get(key), list) or not all(isinstance(item, dict) for item in document[key]):
            raise ValueError(f"{key}: must be a list of objects")
    return ExportedTrajectory(
        trajectory, document["media"], document["alignment"], document["reviews"], document["judgements"]
    )


def json_value(value: Any) -> Any:
    """The value with nothing in it that JSON, UTF-8 or a database can't hold: no NaN, no lone surrogate, no path."""
    if isinstance(value, str):
        return clean_text(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean_text(str(key)): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if value is None or isinstance(value, bool | int):
        return value
    return clean_text(str(value))


def _with_places(review: dict[str, Any], exported: ExportedTrajectory) -> dict[str, Any]:
    """The review with, for each span, the pictures it runs over and the steps that begin before it ends."""
    clock = _clock(exported.media)
    step_at_s = list((exported.alignment or {}).get("step_at_s") or [])
    return {**review, "spans": [_placed(span, clock, step_at_s) for span in review.get("spans") or []]}


def _placed(span: dict[str, Any], clock: Clock | None, step_at_s: list[float]) -> dict[str, Any]:
    start_s, end_s = span["start_s"], span["end_s"]
    first_step = max(bisect_right(step_at_s, start_s) - 1, 0) if step_at_s else None
    last_step = max(bisect_left(step_at_s, end_s) - 1, first_step or 0) if step_at_s else None
    return {
        **span,
        "start_frame": clock.index_at(start_s) if clock else None,
        "end_frame": clock.index_at(end_s) if clock else None,
        "first_step": first_step,
        "last_step": last_step,
    }


def _clock(media: dict[str, Any] | None) -> Clock | None:
    document = (media or {}).get("clock")
    return Clock.from_json(document) if document else None


def _check(trajectory: Trajectory) -> None:
    """Raises ValueError where a field has another type than the dataclasses state, or the counts don't fit."""
    texts = ("id", "format", "source", "task", "agent", "platform", "recorded_at")
    for key in texts:
        if not isinstance(getattr(trajectory, key), str):
            raise ValueError(f"{key}: must be text")
    if not _is_number_or_none(trajectory.score):
        raise ValueError("score: must be a number or null")
    if not isinstance(trajectory.extra, dict):
        raise ValueError("extra: must be an object")
    if (trajectory.steps or trajectory.observations) and len(trajectory.observations) != len(trajectory.steps) + 1:
        raise ValueError("observations: there must be one more than steps")
    for index, step in enumerate(trajectory.steps):
        if not _is_sound_step(index, step):
            raise ValueError(f"steps[{index}]: not a step as the reviewer writes it")
    for index, observation in enumerate(trajectory.observations):
        if not _is_sound_observation(index, observation):
            raise ValueError(f"observations[{index}]: not an observation as the reviewer writes it")
    for index, problem in enumerate(trajectory.problems):
        if not _is_sound_problem(problem):
            raise ValueError(f"problems[{index}]: not a problem as the reviewer writes it")


def _is_sound_step(index: int, step: Step) -> bool:
    return (
        step.index == index
        and all(isinstance(text, str) for text in (step.source_number, step.thought, step.raw))
        and _is_number_or_none(step.stamp_s)
        and _is_number_or_none(step.stamp_resolution_s)
        and all(_is_sound_action(action) for action in step.actions)
    )


def _is_sound_action(action: Action) -> bool:
    return (
        isinstance(action.text, str | None)
        and isinstance(action.raw, str)
        and all(isinstance(key, str) for key in action.keys)
        and all(_is_number(value) for value in (action.scroll_x, action.scroll_y))
        and _is_number_or_none(action.duration_s)
        and all(_is_number(value) for point in action.points for value in (point.x, point.y))
        and all(_is_number(value) and value > 0 for point in action.points for value in (point.width, point.height))
    )


def _is_sound_observation(index: int, observation: Observation) -> bool:
    sizes_px = (observation.width_px, observation.height_px)
    return observation.index == index and all(_is_size_or_none(size_px) for size_px in sizes_px)


def _is_sound_problem(problem: Problem) -> bool:
    return isinstance(problem.file, str) and isinstance(problem.message, str) and _is_size_or_none(problem.line)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_number_or_none(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_size_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)
