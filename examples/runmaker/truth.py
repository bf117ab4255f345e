"""Holds a script's declared truth against what really happened, and writes it down once it matches."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from .script import KINDS
from .session import Played, Recording
from .video import frame_at

CHANGED_LEVEL = 40
SAME_PICTURE_MAX_PX = 60
VISIBLE_MIN_PX = 25
SHOT_MATCHES_MAX_DIFF = 2.0
LOOP_MIN_REPEATS = 3


class TruthError(Exception):
    """The run did not go as its script declares."""


@dataclass
class Checks:
    """Checks passed so far; the first one that fails ends the recording of the run."""

    run: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, check: str, passed: bool) -> None:
        """Note a check, or refuse the run."""
        if not passed:
            raise TruthError(f"{self.run}: not as declared: {check}")
        self.rows.append({"check": check, "passed": True})


def changed_px(recording: Recording, played: Played) -> int:
    """Pixels that differ between the moment before a step and its screenshot; a text cursor stays below the limit."""
    before = frame_at(recording.frames, played.action_at_s).pixels().astype(np.int16)
    after = frame_at(recording.frames, played.screenshot_at_s).pixels().astype(np.int16)
    return int((np.abs(before - after).max(axis=2) > CHANGED_LEVEL).sum())


def shot_difference(recording: Recording, played: Played) -> float:
    """Mean grey difference between a screenshot and the frame on screen at its time."""
    shot = np.asarray(Image.open(io.BytesIO(played.screenshot)).convert("L"), dtype=np.int16)
    frame = np.asarray(Image.open(io.BytesIO(frame_at(recording.frames, played.screenshot_at_s).png)).convert("L"))
    return float(np.abs(shot - frame.astype(np.int16)).mean())


def verify(recording: Recording) -> list[dict[str, Any]]:
    """Check every declaration of the run's script; raises TruthError at the first that does not hold."""
    script, steps = recording.script, recording.steps
    checks = Checks(script.name)
    for i, played in enumerate(steps):
        _verify_step(recording, played, i, checks)
    final = steps[-1].after
    met = {name: bool(holds(final)) for name, holds in script.task.success.items()}
    if script.outcome == "correct":
        for name, passed in met.items():
            checks.add(f"at the end: {name}", passed)
    else:
        missed = [name for name, passed in met.items() if not passed]
        checks.add(f"at the end the task is not solved: {'; '.join(missed)}", bool(missed))
    _verify_kind(recording, checks)
    _verify_track(recording, checks)
    return checks.rows


def _verify_step(recording: Recording, played: Played, i: int, checks: Checks) -> None:
    step, name = played.step, f"step {i} {played.source.splitlines()[0]}"
    if shot_difference(recording, played) > SHOT_MATCHES_MAX_DIFF:
        raise TruthError(f"{checks.run}: {name}: the screenshot and the video differ")
    if played.source not in ("WAIT", "DONE", "FAIL"):
        pixels = changed_px(recording, played)
        if step.no_effect:
            checks.add(f"{name}: page state unchanged", played.before == played.after)
            checks.add(f"{name}: picture unchanged", pixels <= SAME_PICTURE_MAX_PX)
        elif pixels < VISIBLE_MIN_PX:
            raise TruthError(f"{checks.run}: {name}: should be visible, but only {pixels} px differ")
    if step.check:
        checks.add(f"{name}: {step.check[0]}", bool(step.check[1](played.before, played.after)))


def stretches_of(indexes: list[int]) -> list[int]:
    """Lengths of the runs of consecutive numbers in a rising list."""
    lengths: list[int] = []
    for i, index in enumerate(indexes):
        if i and index == indexes[i - 1] + 1:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


def _verify_kind(recording: Recording, checks: Checks) -> None:
    script, steps = recording.script, recording.steps
    wrong = [steps[i] for i in script.error_steps]
    ends_done = steps[-1].source == "DONE"
    if script.kind not in KINDS:
        raise TruthError(f"{script.name}: unknown kind {script.kind}")
    if script.kind == "correct":
        checks.add("no step is declared wrong", not wrong)
    elif script.kind in ("wrong_element", "wrong_field"):
        checks.add("the wrong steps each prove what they did", bool(wrong) and all(p.step.check for p in wrong))
    elif script.kind == "no_effect_click":
        first = wrong[0]
        checks.add("the first wrong step is a click without effect", first.step.no_effect and "click" in first.source)
    elif script.kind == "loop":
        same = {played.source for played in wrong}
        stretches = [str(length) for length in stretches_of(script.error_steps)]
        checks.add(
            f"one action is repeated on the same screen, {' and '.join(stretches)} times in a row",
            len(same) == 1
            and all(played.step.no_effect for played in wrong)
            and min(stretches_of(script.error_steps)) >= LOOP_MIN_REPEATS,
        )
    elif script.kind == "recovered":
        checks.add(
            "a wrong step is followed by one that repairs it", bool(wrong) and recovery_step(recording) is not None
        )
    checks.add(
        "the run ends " + ("with" if ends_done else "without") + " DONE", ends_done != (script.kind == "stopped_early")
    )


def _verify_track(recording: Recording, checks: Checks) -> None:
    script = recording.script
    if script.off_track is None:
        if script.kind in ("wrong_element", "wrong_field", "recovered"):
            raise TruthError(f"{script.name}: this kind needs off_track")
        return
    first, repaired = script.error_steps[0], recovery_step(recording)
    end = len(recording.steps) if repaired is None else repaired
    seen = [bool(script.off_track(played.after)) for played in recording.steps]
    checks.add(
        f"the state is off track exactly after steps {first} to {end - 1}",
        seen == [first <= i < end for i in range(len(seen))],
    )


def recovery_step(recording: Recording) -> int | None:
    """Index of the step that repairs the run, if any."""
    return next((i for i, played in enumerate(recording.steps) if played.step.recovers), None)


def result_of(recording: Recording) -> float:
    """The score an automatic checker would give."""
    final = recording.steps[-1].after
    met = [bool(holds(final)) for holds in recording.script.task.success.values()]
    if recording.script.task.partial_credit:
        return round(sum(met) / len(met), 2)
    return float(all(met))


def truth_of(recording: Recording, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """The contents of truth.json."""
    script, steps = recording.script, recording.steps
    first = script.error_steps[0] if script.error_steps else None
    repaired = recovery_step(recording)
    deviation = None
    if first is not None:
        end_s = recording.end_s if repaired is None else steps[repaired].action_end_s
        deviation = {"start_s": round(steps[first].action_at_s, 3), "end_s": round(end_s, 3)}
    return {
        "outcome": script.outcome,
        "kind": script.kind,
        "first_error_step": first,
        "error_steps": script.error_steps,
        "error_notes": [steps[i].step.wrong for i in script.error_steps],
        "deviation": deviation,
        "action_at_s": [round(played.action_at_s, 3) for played in steps],
        "screenshot_at_s": [round(played.screenshot_at_s, 3) for played in steps],
        "family": script.task.family,
        "set": script.set_name,
        "checks": checks,
    }
