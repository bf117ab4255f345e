"""The trajectory: one run of an agent on one task, as every other module sees it.

Frozen values without I/O. A trajectory has ``n`` steps and ``n + 1`` observations: step ``i`` is the action between
``observations[i]`` and ``observations[i + 1]``. Indexes are 0-based here and in JSON, 1-based on screen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class ActionKind(StrEnum):
    """What an action does, in one vocabulary for every source format."""

    CLICK = "click"
    DOUBLE_CLICK = "double_click"
    TRIPLE_CLICK = "triple_click"
    RIGHT_CLICK = "right_click"
    MIDDLE_CLICK = "middle_click"
    DRAG = "drag"
    MOVE = "move"
    SCROLL = "scroll"
    TYPE = "type"
    KEY = "key"
    HOLD = "hold"
    WAIT = "wait"
    OPEN_APP = "open_app"
    SYSTEM_BUTTON = "system_button"
    SCREENSHOT = "screenshot"
    ANSWER = "answer"
    FINISH = "finish"
    FAIL = "fail"
    CODE = "code"
    OTHER = "other"


TERMINAL_KINDS = frozenset({ActionKind.FINISH, ActionKind.FAIL, ActionKind.ANSWER})


class CoordinateSpace(StrEnum):
    """How the numbers of a point are to be read; the size they were resolved against stands in the point."""

    PIXEL = "pixel"
    FRACTION = "fraction"
    GRID = "grid"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Point:
    """A place on the screen, as the source wrote it.

    ``width`` and ``height`` are the extent of the space the numbers live in: the size in pixels of the reference
    picture (``pixel``), 1 and 1 (``fraction``), or the largest grid value (``grid``).
    """

    x: float
    y: float
    space: CoordinateSpace
    width: float
    height: float

    @property
    def fraction(self) -> tuple[float, float]:
        """The place as (x, y) fractions of the screen; outside [0, 1] when the agent aimed outside the screen."""
        return self.x / self.width, self.y / self.height


@dataclass(frozen=True)
class Action:
    """One primitive action. ``raw`` is the source's own text of it, shown to people and never run."""

    kind: ActionKind
    points: tuple[Point, ...] = ()
    text: str | None = None
    keys: tuple[str, ...] = ()
    scroll_x: float = 0.0
    scroll_y: float = 0.0
    duration_s: float | None = None
    raw: str = ""


@dataclass(frozen=True)
class Step:
    """What the agent did between two observations: one or more primitive actions executed as one.

    ``source_number`` is the number the source gave the step (duplicates and gaps happen); ``stamp_s`` is the moment the
    step began on the source's own clock, in seconds from an arbitrary zero, with ``stamp_resolution_s`` its grain;
    ``at_s`` is that moment in seconds of the video, where the source itself says so.
    """

    index: int
    actions: tuple[Action, ...]
    source_number: str = ""
    thought: str = ""
    raw: str = ""
    stamp_s: float | None = None
    stamp_resolution_s: float | None = None
    at_s: float | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the step ends the run: the agent says done, failed or gives its answer."""
        return any(action.kind in TERMINAL_KINDS for action in self.actions)


@dataclass(frozen=True)
class Observation:
    """A screenshot, or the place of one that is missing (``path`` is None)."""

    index: int
    path: Path | None = None
    width_px: int | None = None
    height_px: int | None = None


@dataclass(frozen=True)
class Problem:
    """Something wrong in the source, told once: which file, which line if any, and what to do about it."""

    file: str
    message: str
    line: int | None = None


@dataclass(frozen=True)
class Trajectory:
    """One run of an agent on one task, with paths to its pictures. ``id`` is 16 hex digits of a SHA-256.

    ``score`` is what the source's evaluator said; ``outcome`` derives from it alone: correct at 0.999 and above,
    incorrect at exactly 0, otherwise None.
    """

    id: str
    format: str
    source: str
    task: str
    steps: tuple[Step, ...]
    observations: tuple[Observation, ...]
    video_path: Path | None = None
    agent: str = ""
    platform: str = ""
    recorded_at: str = ""
    score: float | None = None
    problems: tuple[Problem, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> str | None:
        """The evaluator's score read as an outcome."""
        return outcome_of_score(self.score)

    def to_json(self) -> dict[str, Any]:
        """The trajectory as JSON values; paths become strings. ``from_json`` reads it back."""
        document = asdict(self)
        document["video_path"] = str(self.video_path) if self.video_path else None
        for observation in document["observations"]:
            observation["path"] = str(observation["path"]) if observation["path"] else None
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Trajectory:
        """Read what ``to_json`` wrote. Raises KeyError, TypeError or ValueError on anything else."""
        fields = dict(document)
        fields["steps"] = tuple(_step_from_json(step) for step in document["steps"])
        fields["observations"] = tuple(
            Observation(**{**observation, "path": Path(observation["path"]) if observation["path"] else None})
            for observation in document["observations"]
        )
        fields["problems"] = tuple(Problem(**problem) for problem in document["problems"])
        fields["video_path"] = Path(document["video_path"]) if document["video_path"] else None
        return cls(**fields)


def outcome_of_score(score: float | None) -> str | None:
    """Read an evaluator's score: correct at 0.999 and above, incorrect at exactly 0, otherwise None."""
    if score is None:
        return None
    if score >= 0.999:
        return "correct"
    return "incorrect" if score == 0 else None


def _step_from_json(document: dict[str, Any]) -> Step:
    return Step(**{**document, "actions": tuple(_action_from_json(action) for action in document["actions"])})


def _action_from_json(document: dict[str, Any]) -> Action:
    points = tuple(Point(**{**point, "space": CoordinateSpace(point["space"])}) for point in document["points"])
    return Action(
        **{**document, "kind": ActionKind(document["kind"]), "points": points, "keys": tuple(document["keys"])}
    )
