"""OSWorld result folders: ``traj.jsonl``, a picture after each action, ``result.txt`` and often ``recording.mp4``.

The writers of the family differ in what a line holds; all of it is optional here but the lines themselves. A picture is
normally the one after its line's action; OS-Symphony's is the one before.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from reviewer import actions
from reviewer.importers.files import (
    MAX_TEXT_CHARACTERS,
    Context,
    ImportRefused,
    absence,
    absolute,
    capped,
    first_objects,
    observe,
    read_text,
    short_id,
    within,
)
from reviewer.pyautogui_code import number
from reviewer.tolerant_json import Entries, Entry, JsonError, decode, entries_of, read_bytes, read_entries
from reviewer.trajectory import Action, ActionKind, CoordinateSpace, Observation, Problem, Step, Trajectory

NAME = "osworld"
LINES = "traj.jsonl"

_LINE_KEYS = frozenset({"step_num", "action", "action_timestamp"})
_RECORDING = "recording.mp4"
_DEFAULT_SCREEN = actions.Screen(1920, 1080)
_OBSERVATION_TYPES = frozenset({"screenshot", "a11y_tree", "screenshot_a11y_tree", "som"})
_ACTION_SPACES = frozenset({"pyautogui", "computer_13", "claude_computer_use"})
_DOMAINS = frozenset(
    {"chrome", "gimp", "libreoffice_calc", "libreoffice_impress", "libreoffice_writer", "multi_apps", "os"}
    | {"thunderbird", "vlc", "vs_code"}
)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_STAMP = re.compile(r"(\d{8})@(\d{6})(\d{1,6})?")
_PLAIN_PICTURE = re.compile(r"step_\d+\.png", re.IGNORECASE)
_FIRST_PICTURES = ("step_0.png", "step_0_*.png", "step_reset_*.png", "initial_state.png")
_THOUGHT_KEYS = ("thought", "response", "raw_response", "text", "content", "output_text", "plan", "reasoning")
_WORDS_OF_TRUTH = {"true": 1.0, "false": 0.0}


def detect(path: Path) -> bool:
    """Whether this is a result folder of OSWorld or of a relative ``read`` refuses by name, or the lines of one."""
    return _lines_file(path) is not None


def read(path: Path, context: Context | None = None) -> Trajectory:
    """Read one result folder. Raises ImportRefused when there is nothing of a run in it."""
    context = context or Context()
    file = _lines_file(path)
    if file is None:
        raise ImportRefused(f"no {LINES} in it: give a folder OSWorld wrote its results to", path)
    try:
        data = read_bytes(file)
    except JsonError as error:
        raise ImportRefused(error.reason, file) from None
    entries = entries_of(decode(data), file.name)
    if relative := _relative(entries):
        raise ImportRefused(f"a {relative} run: not supported yet", file.parent)
    return _Run(file, entries, context).trajectory(short_id(hashlib.sha256(data).hexdigest()))


def _lines_file(path: Path) -> Path | None:
    """The file with a run's lines: ``traj.jsonl`` of a folder, or a file of any name that holds such lines."""
    if path.is_dir():
        return path / LINES if (path / LINES).is_file() else None
    if path.name == LINES or any(value.keys() >= _LINE_KEYS for value in first_objects(path)):
        return path
    return None


def _relative(entries: Entries) -> str | None:
    """The relative of OSWorld that wrote the lines, which look alike but mean something else; None for OSWorld."""
    objects = [entry.value for entry in entries.values if isinstance(entry.value, dict)]
    if any("screenshot" in value and "screenshot_file" not in value and "step_num" in value for value in objects):
        return "Windows Agent Arena"
    if any(isinstance(value.get("actions"), list) and "rewards" in value for value in objects):
        return "MacOSArena"
    return None


class _Line(NamedTuple):
    """A line that holds an action."""

    number: int
    value: dict[str, Any]


class _Stamp(NamedTuple):
    at: datetime
    resolution_s: float


class _Run:
    """One result folder while it is read; collects the problems met on the way."""

    def __init__(self, file: Path, entries: Entries, context: Context) -> None:
        self.file = file.name
        self.folder = absolute(file.parent)
        self.context = context
        self.problems = list(entries.problems)
        self.notes: list[dict[str, Any]] = []
        self.arguments = self._read_arguments()
        self.lines = self._last_run(self._action_lines(entries.values))

    def trajectory(self, trajectory_id: str) -> Trajectory:
        observations = self._observations()
        video_path = self._video()
        if not self.lines and video_path is None and observations[0].path is None:
            detail = f" ({self.problems[0].message})" if self.problems else ""
            raise ImportRefused(
                f"it holds no action{detail}: run the task again", self.folder / self.file, self.problems
            )
        steps = self._steps(observations)
        stamps = [stamp for line in self.lines if (stamp := _stamp(line.value))]
        domain, example = self._domain_and_example()
        return Trajectory(
            id=trajectory_id,
            format=NAME,
            source=str(self.folder),
            task=self._task(domain, example),
            steps=steps,
            observations=observations,
            video_path=video_path,
            agent=self._agent(domain),
            platform=domain,
            recorded_at=stamps[0].at.isoformat() if stamps else "",
            score=self._score(),
            problems=capped(self.problems),
            extra={key: value for key, value in (("domain", domain), ("example_id", example)) if value},
        )

    def _problem(self, message: str, line: int | None = None, file: str | None = None) -> None:
        self.problems.append(Problem(file or self.file, message, line))

    def _action_lines(self, entries: tuple[Entry, ...]) -> list[_Line]:
        lines = []
        for entry in entries:
            value = entry.value
            if not isinstance(value, dict):
                self._problem("Not an object: the line was left out", entry.line)
            elif "Error" in value and "action" not in value:
                self._problem(f"The run reported an error: {_short(value['Error'])}", entry.line)
            elif _is_reset(value) or ("action" not in value and ("instruction" in value or "initial_state" in value)):
                self.notes.append(value)
                lines.append(_Line(entry.line, value))
            elif value.get("action") is None:
                told = "An event" if "event" in value else "A line"
                self._problem(f"{told} without an action: it is not a step", entry.line)
            else:
                self.notes.append(value)
                lines.append(_Line(entry.line, value))
        return lines

    def _last_run(self, lines: list[_Line]) -> list[_Line]:
        """The lines of the last run in a file that several were appended to, without those that hold no action."""
        start = 0
        for index in range(1, len(lines)):
            if _restarts(lines[start], lines[index - 1], lines[index]):
                start = index
        if start:
            first, last = lines[0].number, lines[start].number - 1
            self._problem(f"Lines {first} to {last} are an earlier run of the task: only the last run was kept", first)
            self.notes = [line.value for line in lines[start:]]
        kept = [line for line in lines[start:] if line.value.get("action") is not None and not _is_reset(line.value)]
        for before, line in pairwise(kept):
            earlier, later = _stamp(before.value), _stamp(line.value)
            if earlier and later and later.at < earlier.at:
                self._problem("Earlier than the line above: the order of the file was kept", line.number)
        return kept

    def _observations(self) -> tuple[Observation, ...]:
        """The n + 1 observations around the n steps."""
        names = [_text(line.value.get("screenshot_file")) for line in self.lines]
        places = [line.number for line in self.lines]
        if self._is_before_action(names):
            paths, told_at = [*self._before_paths(names), None], [*places, None]
        else:
            after = [self._picture(name, line) for name, line in zip(names, self.lines, strict=True)]
            paths, told_at = [self._first_picture(names), *after], [None, *places]
        observations = []
        for index, (path, place) in enumerate(zip(paths, told_at, strict=True)):
            observation, trouble = observe(index, path)
            if trouble and path:
                self._problem(f"{path.name}: {trouble}", place)
            observations.append(observation)
        return tuple(observations)

    def _is_before_action(self, names: list[str]) -> bool:
        """Whether the pictures are OS-Symphony's, taken before the action: no time in their names, variants beside."""
        if not all(not name or _PLAIN_PICTURE.fullmatch(name) for name in names):
            return False
        return any(self.folder.glob("step_*_milestone.png")) or any(self.folder.glob("step_*_draw.png"))

    def _before_paths(self, names: list[str]) -> list[Path | None]:
        """Two actions of one step write the same file: it shows the screen before the last of them."""
        given = [name or f"step_{line.value.get('step_num')}.png" for name, line in zip(names, self.lines, strict=True)]
        last = {name: index for index, name in enumerate(given)}
        paths: list[Path | None] = []
        for index, (name, line) in enumerate(zip(given, self.lines, strict=True)):
            if last[name] == index:
                paths.append(self._picture(name, line))
            else:
                self._problem(f"{name} was overwritten by a later action of the same step", line.number)
                paths.append(None)
        return paths

    def _picture(self, name: str, line: _Line) -> Path | None:
        if not name:
            self._problem("No screenshot_file: the step has no picture", line.number)
            return None
        path = within(self.folder, name)
        if path is None:
            self._problem(f"{name} {absence(self.folder, name)}: the step has no picture", line.number)
        return path

    def _first_picture(self, names: list[str]) -> Path | None:
        """The picture before the first action, where the run kept one."""
        starts = [note for note in self.notes if _is_start(note)]
        told = [_text(note.get("initial_state") or note.get("screenshot_file")) for note in starts]
        found = [path.name for pattern in _FIRST_PICTURES for path in sorted(self.folder.glob(pattern), reverse=True)]
        paths = (within(self.folder, name) for name in [*reversed(told), *found] if name not in names)
        return next((path for path in paths if path), None)

    def _steps(self, observations: tuple[Observation, ...]) -> tuple[Step, ...]:
        repeats = Counter(_number_text(line.value) for line in self.lines)
        steps = []
        is_guessed = False
        for index, line in enumerate(self.lines):
            screen = self._screen(observations, index)
            step = _step(index, line.value, screen or _DEFAULT_SCREEN)
            is_guessed |= screen is None and _has_pixels(step)
            if not step.raw:
                self._problem("The action is empty", line.number)
            steps.append(step)
        if is_guessed:
            self._problem("Neither args.json nor a picture tells the screen size: 1920x1080 was assumed for the points")
        if "" in repeats and len(repeats) > 1:
            self._problem(f"{repeats['']} lines have no step_num: they were kept in the order of the file")
        return tuple(steps)

    def _screen(self, observations: tuple[Observation, ...], index: int) -> actions.Screen | None:
        """The screen's size from args.json, else from the picture around the step, else from any picture."""
        width, height = (number(self.arguments.get(key)) for key in ("screen_width", "screen_height"))
        if width and height and width > 0 and height > 0:
            return actions.Screen(width, height)
        for observation in (*observations[index : index + 2], *observations):
            if observation.width_px and observation.height_px:
                return actions.Screen(observation.width_px, observation.height_px)
        return None

    def _video(self) -> Path | None:
        path = within(self.folder, _RECORDING)
        if path is not None and path.stat().st_size == 0:
            self._problem("An empty file: the run is shown without it", file=_RECORDING)
            return None
        if path is None and (self.folder / _RECORDING).is_symlink():
            self._problem(f"It {absence(self.folder, _RECORDING)}", file=_RECORDING)
        return path

    def _score(self) -> float | None:
        path = within(self.folder, "result.txt")
        text = read_text(path) if path else ""
        if path is None:
            self._problem("Missing: the run was never evaluated, so it has no score", file="result.txt")
            return None
        score = _WORDS_OF_TRUTH.get(text.lower())
        if score is None:
            try:
                score = float(text)
            except ValueError:
                score = math.nan
        if not math.isfinite(score):
            self._problem(f"Not a score: {_short(text)!r}; write a number such as 0 or 1", file="result.txt")
            return None
        return score

    def _task(self, domain: str, example: str) -> str:
        if self.context.task:
            return self.context.task
        for note in self.notes:
            if text := _text(note.get("instruction")).strip():
                return text[:MAX_TEXT_CHARACTERS]
        for name in ("instruction.txt", "task.txt"):
            path = within(self.folder, name)
            if path and (text := read_text(path)):
                return text
        for path in _definitions(self.context.examples, domain, example):
            text = _instruction(path)
            if text:
                return text
        self._problem("No task text: import the evaluation_examples folder along with the results, or give --task")
        return ""

    def _domain_and_example(self) -> tuple[str, str]:
        """The last two folders, where they look like OSWorld's."""
        domain, example = self.folder.parent.name, self.folder.name
        if domain in _DOMAINS or _UUID.match(example) or _definitions(self.context.examples, domain, example):
            return domain, example
        return "", ""

    def _agent(self, domain: str) -> str:
        """The model from args.json, else the folders between observation type and domain, else the one above those."""
        model = _text(self.arguments.get("model")).strip()
        if model:
            return model
        parts = self.folder.parts[:-2]
        for index in range(len(parts) - 1, 0, -1):
            if parts[index - 1] in _ACTION_SPACES and parts[index] in _OBSERVATION_TYPES:
                return "/".join(parts[index + 1 :])
        return parts[-1] if parts and domain else ""

    def _read_arguments(self) -> dict[str, Any]:
        """The nearest args.json, beside the run or a few folders up."""
        for parent in (self.folder, *list(self.folder.parents)[:3]):
            path = parent / "args.json"
            if path.is_file():
                try:
                    values = read_entries(path, 16 * 1024 * 1024).values
                except JsonError:
                    return {}
                return values[0].value if values and isinstance(values[0].value, dict) else {}
        return {}


def _step(index: int, value: dict[str, Any], screen: actions.Screen) -> Step:
    parsed = actions.parse_action(value["action"], screen)
    thought = actions.words_of(_thought(value), value["action"], screen) or parsed.thought
    stamp = _stamp(value)
    return Step(
        index=index,
        actions=parsed.actions or (Action(ActionKind.OTHER, raw=actions.raw_text(value["action"])),),
        source_number=_number_text(value),
        thought=thought[:MAX_TEXT_CHARACTERS],
        raw=actions.raw_text(value["action"]),
        stamp_s=(stamp.at - datetime(1970, 1, 1)).total_seconds() if stamp else None,
        stamp_resolution_s=stamp.resolution_s if stamp else None,
    )


def _thought(value: dict[str, Any]) -> str:
    """The model's own words of a line, whatever shape they have."""
    for key in ("response", "natural_language_action", "prediction", "plan", "executor_plan"):
        text = _words(value.get(key)).strip()
        if text:
            return text
    return ""


def _words(value: Any) -> str:
    if isinstance(value, dict):
        named = [_words(value[key]) for key in _THOUGHT_KEYS if value.get(key)]
        return next((text for text in named if text.strip()), "") or json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "\n".join(text for item in value if (text := _words(item)))
    return _text(value)


def _stamp(value: dict[str, Any]) -> _Stamp | None:
    """The local time a line was written at: to the second, or to the microsecond where it has more digits."""
    match = _STAMP.fullmatch(_text(value.get("action_timestamp")).strip())
    if not match:
        return None
    day, second, fraction = match.groups()
    try:
        at = datetime.strptime(day + second, "%Y%m%d%H%M%S")
    except ValueError:
        return None
    if fraction is None:
        return _Stamp(at, 1.0)
    return _Stamp(at.replace(microsecond=int(fraction.ljust(6, "0"))), 1e-6)


def _restarts(first: _Line, before: _Line, line: _Line) -> bool:
    """Whether a new run begins at a line: its number falls back to the first one and time goes on."""
    if _is_start(line.value):
        return not _is_start(before.value)
    current, previous, start = (_step_number(item.value) for item in (line, before, first))
    if current is None or previous is None or start is None or current > max(start, 1):
        return False
    if current == previous:
        return before.value.get("done") is True and before.value.get("action") is not None
    earlier, later = _stamp(before.value), _stamp(line.value)
    return current < previous and not (earlier and later and later.at < earlier.at)


def _is_reset(value: dict[str, Any]) -> bool:
    return value.get("action") == "reset" and _step_number(value) in (0, None)


def _is_start(value: dict[str, Any]) -> bool:
    return _is_reset(value) or "initial_state" in value


def _step_number(value: dict[str, Any]) -> int | None:
    given = value.get("step_num")
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _number_text(value: dict[str, Any]) -> str:
    return _text(value.get("step_num"))


def _has_pixels(step: Step) -> bool:
    return any(
        point.space is CoordinateSpace.PIXEL and (point.width, point.height) == _DEFAULT_SCREEN
        for action in step.actions
        for point in action.points
    )


def _definitions(examples: tuple[Path, ...], domain: str, example: str) -> list[Path]:
    """The files that may define a task, in the layouts of ``evaluation_examples``."""
    return [
        path
        for folder in examples
        for level in ("examples", "", "examples_windows")
        if (path := folder / level / domain / f"{example}.json").is_file()
    ]


def _instruction(path: Path) -> str:
    try:
        values = read_entries(path, 16 * 1024 * 1024).values
    except JsonError:
        return ""
    return _text(values[0].value.get("instruction")).strip() if values and isinstance(values[0].value, dict) else ""


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
