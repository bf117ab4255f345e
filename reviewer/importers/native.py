"""The reviewer's own JSON: lines of the ``jsonl`` recipe, and a short form for writing by hand (docs/formats.md)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from reviewer import actions
from reviewer.exported import SCHEMA, from_line
from reviewer.importers.files import (
    MAX_TEXT_CHARACTERS,
    Context,
    ImportRefused,
    Refusal,
    absence,
    absolute,
    capped,
    first_objects,
    observe,
    readable_name,
    short_id,
    within,
)
from reviewer.importers.screenshots import unknown_steps
from reviewer.media import MediaError, probe
from reviewer.pyautogui_code import number
from reviewer.tolerant_json import Entry, JsonError, read_entries
from reviewer.trajectory import Action, ActionKind, CoordinateSpace, Observation, Point, Problem, Step, Trajectory

NAME = "native"

_KEYS = frozenset(
    {"id", "task", "video", "screenshots", "steps", "score", "agent", "platform", "recorded_at", "extra", "schema"}
)
_STEP_KEYS = frozenset({"action", "actions", "thought", "at_s", "screenshot", "number"})
_ACTION_KEYS = frozenset({"kind", "points", "text", "keys", "scroll_x", "scroll_y", "duration_s", "raw"})
_CONTENT_KEYS = ("video", "screenshots", "steps")
_NO_RUN = 'no object in it is a run: give each "task" and "steps", "screenshots" or "video" (docs/formats.md)'
_ID = re.compile(r"[0-9a-f]{16}")
_DEFAULT_SCREEN = actions.Screen(1920, 1080)


class Complaint(NamedTuple):
    """Why a file gives no run, and at which line; ``is_log`` tells that it may well be the log of another run."""

    reason: str
    line: int | None = None
    is_log: bool = False


def detect(path: Path) -> bool:
    """Whether a file holds the reviewer's own objects: exported lines, or a task with steps, pictures or video."""
    return path.is_file() and any(_is_native(value) for value in first_objects(path))


def read(path: Path, context: Context | None = None) -> Trajectory:
    """Read a file with one trajectory. Raises ImportRefused when it holds none, or more than one."""
    found = list(read_all(path, context))
    for item in found:
        if isinstance(item, Refusal):
            first = item.problems[0]
            raise ImportRefused(first.message, f"{path}:{first.line}", item.problems)
    trajectories = [item for item in found if isinstance(item, Trajectory)]
    if len(trajectories) != 1:
        raise ImportRefused(f"{len(trajectories)} trajectories in it: import them with `reviewer import`", path)
    return trajectories[0]


def read_all(path: Path, context: Context | None = None) -> Iterator[Trajectory | Refusal]:
    """Every trajectory of a file, and a refusal for each object that is none.

    Exported lines carry what people and judges said in ``extra["export"]``: media, alignment, reviews and judgements.
    Raises ImportRefused on an unreadable file.
    """
    context = context or Context()
    try:
        entries = read_entries(path)
    except JsonError as error:
        raise ImportRefused(error.reason, path) from None
    broken = {problem.line: problem for problem in entries.problems}
    is_single = len(entries.values) == 1
    for entry in entries.values:
        problem = broken.pop(entry.line, None)
        try:
            trajectory = _trajectory(path, entry, context, is_single)
        except ImportRefused as error:
            yield _refusal(path, entry.line, error.reason, context)
            continue
        yield replace(trajectory, problems=(*((problem,) if problem else ()), *trajectory.problems))
    for line, problem in broken.items():
        yield _refusal(path, line or 1, problem.message, context)


def complaint(path: Path) -> Complaint | None:
    """Why a JSON file of which no object is the reviewer's own gives no run; None where it was hardly meant to.

    A single sound object is taken for settings or scores of something else, unless it has the steps or screenshots of a
    run.
    """
    try:
        entries = read_entries(path)
    except JsonError as error:
        return Complaint(error.reason)
    values = [entry.value for entry in entries.values]
    lines = {entry.line for entry in entries.values}
    broken = [problem for problem in entries.problems if problem.line not in lines]
    is_lines = path.suffix.lower() != ".json"
    if broken and not any(isinstance(value, dict) for value in values):
        return Complaint(f"nothing in it can be read: {broken[0].message}", broken[0].line)
    if not values and not entries.is_array:
        return Complaint("an empty file: copy it again", is_log=is_lines)
    if broken or entries.is_array or is_lines or len(values) > 1 or not isinstance(values[0], dict):
        return Complaint(_NO_RUN, is_log=not broken and all(isinstance(value, dict) for value in values))
    if any(isinstance(values[0].get(key), list) for key in ("steps", "screenshots")):
        return Complaint('it has no "task": write what the agent was asked to do')
    return None


def _refusal(path: Path, line: int, message: str, context: Context) -> Refusal:
    return Refusal(f"{readable_name(absolute(path))}#{line}", (Problem(context.name_of(path), message, line),))


def _is_native(value: dict[str, Any]) -> bool:
    return value.get("schema") == SCHEMA or (
        "task" in value and any(isinstance(value.get(key), list | str) for key in _CONTENT_KEYS)
    )


def _trajectory(path: Path, entry: Entry, context: Context, is_single: bool) -> Trajectory:
    if not isinstance(entry.value, dict):
        raise ImportRefused("not an object: write one trajectory as {…} on each line")
    if entry.value.get("schema") == SCHEMA:
        return _exported(path, entry, context)
    return _Written(path, entry, context).trajectory(is_single)


def _exported(path: Path, entry: Entry, context: Context) -> Trajectory:
    """A line the ``jsonl`` recipe wrote, its media looked for where it says or beside the file."""
    try:
        exported = from_line(entry.value)
    except ValueError as error:
        raise ImportRefused(str(error)) from None
    trajectory = exported.trajectory
    if not _ID.fullmatch(trajectory.id):
        raise ImportRefused(f"id: {trajectory.id!r} is not 16 hex digits")
    problems: list[Problem] = []
    observations = []
    for observation in trajectory.observations:
        found = _media(path, str(observation.path), context) if observation.path else None
        if observation.path and not found:
            problems.append(Problem(path.name, f"{observation.path.name} is not beside the file: missing", entry.line))
        observations.append(replace(observation, path=found))
    video = _media(path, str(trajectory.video_path), context) if trajectory.video_path else None
    if trajectory.video_path and not video:
        problems.append(Problem(path.name, f"{trajectory.video_path.name} is not beside the file: missing", entry.line))
    export = {
        "media": exported.media,
        "alignment": exported.alignment,
        "reviews": exported.reviews,
        "judgements": exported.judgements,
    }
    known = [problem for problem in problems if problem not in trajectory.problems]
    return replace(
        trajectory,
        task=context.task or trajectory.task,
        observations=tuple(observations),
        video_path=video,
        problems=capped([*trajectory.problems, *known]),
        extra={**trajectory.extra, "export": export},
    )


def _media(path: Path, name: str, context: Context) -> Path | None:
    """The file a JSON file names: where it says if its paths may be followed, else by name in the file's folder."""
    if context.follows_paths and "\0" not in name:
        stated = path.parent / name
        try:
            if stated.is_file():
                return absolute(stated)
        except OSError:
            return None
    found = within(path.parent, name)
    return absolute(found) if found else None


class _Written:
    """One object written by hand while it is read; collects the problems met on the way."""

    def __init__(self, path: Path, entry: Entry, context: Context) -> None:
        self.path = path
        self.line = entry.line
        self.value: dict[str, Any] = entry.value
        self.context = context
        self.problems: list[Problem] = []

    def trajectory(self, is_single: bool) -> Trajectory:
        value = self.value
        self._report_unknown(value, _KEYS, "")
        if not any(value.get(key) for key in _CONTENT_KEYS):
            raise ImportRefused('nothing to show: give "steps", "screenshots" or "video"')
        written = self._list("steps")
        observations = self._observations(written)
        video = self._file(self._text("video"), "video")
        if video is None and not any(observation.path for observation in observations):
            raise ImportRefused("neither its video nor any of its pictures is beside the file: put them there")
        any_screen = self._any_screen(observations, video) if written else _DEFAULT_SCREEN
        steps = tuple(
            self._step(index, item, _screen_around(index, observations) or any_screen)
            for index, item in enumerate(written)
        )
        task = self.context.task or self._text("task")
        if not task.strip():
            self._problem('"task" is empty: write what the agent was asked to do, or give --task')
        extra = value.get("extra")
        source = str(absolute(self.path))
        return Trajectory(
            id=self._id(),
            format=NAME,
            source=source if is_single else f"{source}#{self.line}",
            task=task[:MAX_TEXT_CHARACTERS],
            steps=steps or unknown_steps(len(observations) - 1),
            observations=observations,
            video_path=video,
            agent=self._text("agent"),
            platform=self._text("platform"),
            recorded_at=self._text("recorded_at"),
            score=self._score(),
            problems=capped(self.problems),
            extra=extra if isinstance(extra, dict) else {},
        )

    def _problem(self, message: str) -> None:
        self.problems.append(Problem(self.path.name, message, self.line))

    def _report_unknown(self, value: dict[str, Any], known: frozenset[str], where: str) -> None:
        for key in sorted(value.keys() - known)[:5]:
            self._problem(f"Unknown key {where}{key!r} was left out; known are {', '.join(sorted(known))}")

    def _id(self) -> str:
        given = self.value.get("id")
        if isinstance(given, str) and _ID.fullmatch(given):
            return given
        canonical = json.dumps(self.value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return short_id(hashlib.sha256(canonical.encode()).hexdigest())

    def _text(self, key: str) -> str:
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ImportRefused(f'"{key}" must be text, not {_kind(value)}')
        return value

    def _list(self, key: str) -> list[Any]:
        value = self.value.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ImportRefused(f'"{key}" must be a list, not {_kind(value)}')
        return value

    def _score(self) -> float | None:
        value = self.value.get("score")
        score = float(value) if isinstance(value, bool) else number(value)
        if value is None or (score is not None and 0 <= score <= 1):
            return score
        given = value if type(value) in (int, float) else _kind(value)
        self._problem(f'"score" must be a number from 0 to 1, not {given}: left out')
        return None

    def _file(self, name: str, key: str) -> Path | None:
        if not name:
            return None
        found = _media(self.path, name, self.context)
        if found is None:
            self._problem(f'"{key}": {name} {absence(self.path.parent, name)}')
        return found

    def _observations(self, written: list[Any]) -> tuple[Observation, ...]:
        """The pictures: ``screenshots`` in order, else each step's own, which is the one after it."""
        names = self._list("screenshots")
        own = [item.get("screenshot") if isinstance(item, dict) else None for item in written]
        if not names and (any(own) or written):
            names = [None, *own]
        elif any(own):
            self._problem('Both "screenshots" and the steps name pictures: "screenshots" was used')
        if written and len(names) == len(written):
            names = [None, *names]
        if written and len(names) != len(written) + 1:
            self._problem(f'"screenshots" has {len(names)} names for {len(written)} steps; give one more than steps')
            names = [*names, *[None] * (len(written) + 1)][: len(written) + 1]
        observations = []
        for index, name in enumerate(names):
            if name is not None and not isinstance(name, str):
                raise ImportRefused(f'"screenshots"[{index}] must be a file name or null, not {_kind(name)}')
            observation, trouble = observe(index, self._file(name or "", f"screenshots[{index}]"))
            if trouble:
                self._problem(f"{name}: {trouble}")
            observations.append(observation)
        return tuple(observations)

    def _any_screen(self, observations: tuple[Observation, ...], video: Path | None) -> actions.Screen:
        """The size that pixels count in where a step has no picture: that of any picture, else of the video."""
        for observation in observations:
            if observation.width_px and observation.height_px:
                return actions.Screen(observation.width_px, observation.height_px)
        try:
            info = probe(video) if video else None
        except MediaError:
            info = None
        if info is not None:
            return actions.Screen(info.width_px, info.height_px)
        self._problem("Neither a picture nor the video tells the screen size: 1920x1080 was assumed for the points")
        return _DEFAULT_SCREEN

    def _step(self, index: int, value: Any, screen: actions.Screen) -> Step:
        where = f'"steps"[{index}]'
        if not isinstance(value, dict):
            self._problem(f"{where} must be an object, not {_kind(value)}: kept without an action")
            return Step(index, (Action(ActionKind.OTHER),), source_number=str(index + 1))
        self._report_unknown(value, _STEP_KEYS, f"{where}.")
        given = value.get("actions", value.get("action"))
        thought, at_s = value.get("thought"), value.get("at_s")
        if at_s is not None and number(at_s) is None:
            is_number = type(at_s) in (int, float)
            wrong = "is too large" if is_number else f"must be a number of seconds, not {_kind(at_s)}"
            self._problem(f"{where}.at_s {wrong}: left out")
        if thought is not None and not isinstance(thought, str):
            self._problem(f"{where}.thought must be text, not {_kind(thought)}: left out")
        return Step(
            index=index,
            actions=self._actions(given, where, screen),
            source_number=str(value.get("number", index + 1)),
            thought=thought[:MAX_TEXT_CHARACTERS] if isinstance(thought, str) else "",
            raw=actions.raw_text(given),
            at_s=number(at_s),
        )

    def _actions(self, given: Any, where: str, screen: actions.Screen) -> tuple[Action, ...]:
        read: list[Action] = []
        for item in given if isinstance(given, list) else [given]:
            if isinstance(item, dict) and "kind" in item:
                read.append(self._action(item, where, screen))
            elif isinstance(item, str | dict):
                read.extend(actions.parse_action(item, screen).actions)
        if not read:
            self._problem(f'{where}.action is missing: give pyautogui source or {{"kind": …}}')
        return tuple(read) or (Action(ActionKind.OTHER, raw=actions.raw_text(given)),)

    def _action(self, value: dict[str, Any], where: str, screen: actions.Screen) -> Action:
        self._report_unknown(value, _ACTION_KEYS, f"{where}.action.")
        raw = value["raw"] if isinstance(value.get("raw"), str) else json.dumps(value, ensure_ascii=False)
        kinds = [kind.value for kind in ActionKind]
        if value["kind"] not in kinds:
            self._problem(f"{where}.action.kind {value['kind']!r} is not known; write one of {', '.join(kinds)}")
            return Action(ActionKind.OTHER, raw=raw)
        text, keys = value.get("text"), value.get("keys") or []
        return Action(
            kind=ActionKind(value["kind"]),
            points=self._points(value.get("points") or [], where, screen),
            text=text if isinstance(text, str) else None,
            keys=tuple(map(str, keys)) if isinstance(keys, list) else (str(keys),),
            scroll_x=number(value.get("scroll_x")) or 0.0,
            scroll_y=number(value.get("scroll_y")) or 0.0,
            duration_s=number(value.get("duration_s")),
            raw=raw,
        )

    def _points(self, value: Any, where: str, screen: actions.Screen) -> tuple[Point, ...]:
        items = value if isinstance(value, list) else [value]
        points = [_point(item, screen) for item in items]
        if None in points:
            self._problem(f'{where}.action.points must be a list of {{"x": …, "y": …}} below 1e9: a point was left out')
        return tuple(point for point in points if point)


def _screen_around(index: int, observations: tuple[Observation, ...]) -> actions.Screen | None:
    for observation in observations[index : index + 2]:
        if observation.width_px and observation.height_px:
            return actions.Screen(observation.width_px, observation.height_px)
    return None


def _point(value: Any, screen: actions.Screen) -> Point | None:
    """A point in the space it states, else as fractions where both are floats in 0…1, else as pixels."""
    if not isinstance(value, dict):
        return None
    x, y, width, height = (number(value.get(key)) for key in ("x", "y", "width", "height"))
    if x is None or y is None:
        return None
    space = value.get("space")
    if space is None:
        return actions.point_of(x, y, screen)
    if space == CoordinateSpace.FRACTION:
        return Point(x, y, CoordinateSpace.FRACTION, 1, 1)
    if space not in list(CoordinateSpace):
        return None
    is_sized = width is not None and height is not None and width > 0 and height > 0
    extent = (width, height) if is_sized else screen
    return Point(x, y, CoordinateSpace(space), extent[0] or 1, extent[1] or 1)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
