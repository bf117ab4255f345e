"""Judges: what one is, what it says, and which there are."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from reviewer.alignment import Alignment
from reviewer.errors import ReviewerError
from reviewer.frame_plan import FramePlan
from reviewer.media import FrameSource
from reviewer.trajectory import Trajectory

DEFAULT_JUDGE = "screen_rules"

Progress = Callable[[int, int | None, str], None]
"""Called with (done, total or None, message) between steps; raises Cancelled to stop the work."""


class Cancelled(ReviewerError):
    """The work was stopped on purpose."""


@dataclass(frozen=True)
class Span:
    """A deviation range in judge seconds."""

    start_s: float
    end_s: float
    reason: str = ""


@dataclass(frozen=True)
class StepLabel:
    """What a judge says of one step; ``probability`` is that of ``+``, None where the judge has none."""

    step_index: int
    label: Literal["+", "-"]
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True)
class Judgement:
    """What one run of a judge said of one trajectory. ``outcome`` is None where the judge abstains or can't be read.

    Spans are judge seconds and mean nothing without ``frame_plan``. ``error`` says why there is no answer.
    """

    outcome: Literal["correct", "incorrect"] | None = None
    probability: float | None = None
    spans: tuple[Span, ...] = ()
    step_labels: tuple[StepLabel, ...] = ()
    raw: str = ""
    frame_plan: FramePlan | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The judgement as JSON values."""
        return {
            "outcome": self.outcome,
            "probability": self.probability,
            "spans": [vars(span) for span in self.spans],
            "step_labels": [vars(label) for label in self.step_labels],
            "raw": self.raw,
            "frame_plan": self.frame_plan.to_json() if self.frame_plan else None,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Judgement:
        """Read what ``to_json`` wrote. Raises KeyError, TypeError or ValueError on anything else."""
        plan = document["frame_plan"]
        return cls(
            outcome=document["outcome"],
            probability=document["probability"],
            spans=tuple(Span(**span) for span in document["spans"]),
            step_labels=tuple(StepLabel(**label) for label in document["step_labels"]),
            raw=document["raw"],
            frame_plan=FramePlan.from_json(plan) if plan else None,
            error=document["error"],
        )


class Judge(Protocol):
    """A model or rule set. ``fingerprint`` changes whenever the same input could be answered differently."""

    name: str
    fingerprint: str

    def run(
        self, trajectory: Trajectory, frames: FrameSource, alignment: Alignment | None, progress: Progress
    ) -> Judgement:
        """Judge one trajectory, calling ``progress`` between steps. Raises Cancelled when that does."""
        ...


_CLASSES = {"screen_rules": ("reviewer.judges.screen_rules", "ScreenRules")}


def known() -> tuple[str, ...]:
    """The names of the judges there are."""
    return tuple(name for name, (module, _) in _CLASSES.items() if importlib.util.find_spec(module))


def load(name: str) -> Judge:
    """The judge of that name, ready to run. Raises ReviewerError naming the known ones."""
    if name not in known():
        raise ReviewerError(f"No judge is called '{name}'. Known judges: {', '.join(known()) or 'none'}.")
    module, cls = _CLASSES[name]
    judge: Judge = getattr(importlib.import_module(module), cls)()
    return judge
