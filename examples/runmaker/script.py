"""What a recorded run is made of: a task, the agent's steps, and the truth that the script declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .actions import Action

State = dict[str, Any]
Predicate = Callable[[State], bool]
DESKTOP_PX = (1280, 720)
PHONE_PX = (412, 892)
KINDS = ("correct", "wrong_element", "no_effect_click", "wrong_field", "loop", "stopped_early", "recovered")
WRITTEN_WITH_FAMILIES = ("mail", "settings")


@dataclass(frozen=True)
class Task:
    """A task on one page, with the conditions of success on the page's state."""

    id: str
    family: str
    instruction: str
    success: dict[str, Predicate]
    fragment: str = ""
    size_px: tuple[int, int] = DESKTOP_PX
    partial_credit: bool = False

    @property
    def page(self) -> str:
        """File name of the page."""
        return f"{self.family}.html"


@dataclass(frozen=True)
class Step:
    """One action of an agent. `wrong` says what is wrong with it, `check` what it must do to the state."""

    thought: str
    action: Action
    wrong: str | None = None
    check: tuple[str, Callable[[State, State], bool]] | None = None
    no_effect: bool = False
    same_reply: bool = False
    recovers: bool = False


@dataclass(frozen=True)
class Script:
    """One run: which agent does which task, how, and with which kind of outcome.

    `off_track` tells a state that the task does not lead through; it must hold exactly from the first wrong step
    to the step that repairs it. Kinds whose mistake leaves no mark on the state have none.
    """

    agent: str
    task: Task
    kind: str
    steps: list[Step] = field(repr=False)
    off_track: Predicate | None = None

    @property
    def name(self) -> str:
        """Folder of the run below runs/."""
        return f"{self.agent}/{self.task.family}/{self.task.id}"

    @property
    def outcome(self) -> str:
        """The outcome that this kind stands for."""
        return "correct" if self.kind in ("correct", "recovered") else "incorrect"

    @property
    def set_name(self) -> str:
        """Whether rules may be written while looking at this run, or only measured on it."""
        return "written_with" if self.task.family in WRITTEN_WITH_FAMILIES else "held_out"

    @property
    def error_steps(self) -> list[int]:
        """Indexes of the steps that are wrong in themselves."""
        return [i for i, step in enumerate(self.steps) if step.wrong]


NOTHING = "nothing happens: the state and the picture stay as they were"


def dead(thought: str, action: Action, wrong: str = NOTHING, **more: Any) -> Step:
    """A step that must leave the page's state and picture unchanged."""
    return Step(thought, action, wrong=wrong, no_effect=True, **more)
