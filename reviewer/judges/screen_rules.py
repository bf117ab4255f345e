"""The embedded judge: rules about what the screen shows, on any CPU and without a model.

It says ``-`` where the pictures or the actions themselves are the evidence, and nothing anywhere else: never ``+``, and
never that an outcome is correct.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise

from PIL import Image

from reviewer.alignment import Alignment
from reviewer.frame_plan import FramePlan, PlanFrame
from reviewer.judges import Judgement, Progress, Span, StepLabel
from reviewer.judges.screen_changes import Act, Change, ChangeKind, ChangeSettings, compare, count
from reviewer.media import FrameSource, MediaError
from reviewer.trajectory import TERMINAL_KINDS, Action, ActionKind, CoordinateSpace, Point, Step, Trajectory

VERSION = 1

_CLICK_KINDS = frozenset(
    {
        ActionKind.CLICK,
        ActionKind.DOUBLE_CLICK,
        ActionKind.TRIPLE_CLICK,
        ActionKind.RIGHT_CLICK,
        ActionKind.MIDDLE_CLICK,
    }
)
_POINTING_KINDS = _CLICK_KINDS | {ActionKind.DRAG, ActionKind.SCROLL}
_TYPING_KINDS = frozenset({ActionKind.TYPE, ActionKind.KEY})
_PASSIVE_KINDS = frozenset({ActionKind.WAIT, ActionKind.MOVE, ActionKind.SCREENSHOT})
_REPEATABLE_KINDS = _POINTING_KINDS | _TYPING_KINDS | {ActionKind.OPEN_APP, ActionKind.SYSTEM_BUTTON}
_UNKNOWN_KINDS = frozenset({ActionKind.CODE, ActionKind.OTHER})
_NOUNS = {ActionKind.TYPE: "typing", ActionKind.KEY: "key press", ActionKind.OPEN_APP: "opening of an app"}

_CTRL, _SHIFT, _ALT = "ctrl ctrlleft ctrlright control", "shift shiftleft shiftright", "alt altleft altright option"
_MODIFIERS = frozenset(f"{_CTRL} {_SHIFT} {_ALT} cmd command meta super win fn capslock numlock scrolllock".split())
_SILENT_KEYS = frozenset(
    {"esc", "escape", "home", "end", "printscreen", "prtsc", "volumeup", "volumedown", "volumemute", "playpause"}
)
_SILENT_WITH_MODIFIER = frozenset({"a", "c", "s", "insert"})


@dataclass(frozen=True)
class RuleSettings:
    """The thresholds of the rules; times in seconds, ``same_place`` a share of the screen.

    The video is looked at ``before_s`` ahead of a step and at ``sample_at_s`` after it, up to the next step; less than
    ``min_window_s`` is too little to say anything. A step may stand up to ``max_residual_s`` elsewhere, so both are
    longer than that.
    """

    changes: ChangeSettings = field(default_factory=ChangeSettings)
    video_min_blob_px: int = 8
    effect_window_s: float = 2.0
    min_window_s: float = 0.6
    before_s: float = 0.5
    edge_s: float = 0.05
    sample_at_s: tuple[float, ...] = (0.3, 1.0)
    max_residual_s: float = 0.4
    loop_length: int = 3
    same_place: float = 0.01


@dataclass(frozen=True)
class _Seen:
    """What the pictures show of one step; ``window_s`` is how much of the video after it was looked at."""

    pictures: Change | None = None
    video: Change | None = None
    window_s: float = 0.0
    is_cut_short: bool = False

    @property
    def change(self) -> Change | None:
        """The change that counts: screenshots that are the same can be overruled by a change in the video only."""
        if self.pictures is None or (self.video and self.video.kind is ChangeKind.CHANGED):
            return self.video
        return self.pictures

    @property
    def kind(self) -> ChangeKind | None:
        """Whether the screen changed, None where nothing could be looked at."""
        return self.change.kind if self.change else None


@dataclass(frozen=True)
class _Finding:
    """A rule that fired on a step."""

    step_index: int
    reason: str


class ScreenRules:
    """Marks steps without visible effect, repeated loops and aims outside the screen; tells runs that never finish."""

    name = "screen_rules"

    def __init__(self, settings: RuleSettings | None = None) -> None:
        self.settings = settings or RuleSettings()
        self.fingerprint = _fingerprint(self.settings)

    def run(
        self, trajectory: Trajectory, frames: FrameSource, alignment: Alignment | None, progress: Progress
    ) -> Judgement:
        """Judge one trajectory; two screenshots are held in memory at a time. Raises what ``progress`` raises."""
        if not trajectory.steps:
            return Judgement(raw="There are no steps, only pictures: the rules look at what each action does.")
        if alignment and len(alignment.step_at_s) != len(trajectory.steps):
            alignment = None
        seen = list(self._look(trajectory, frames, alignment, progress))
        kinds = [step.kind for step in seen]
        loops = _loops(trajectory.steps, kinds, self.settings)
        excuses = _excuses(trajectory.steps, kinds)
        findings = [
            *_no_effects(trajectory.steps, seen, excuses, self.settings),
            *_repeats(trajectory.steps, kinds, loops),
            *_outside(trajectory),
        ]
        labels = _labels(findings)
        outcome_reasons = _ends_badly(trajectory.steps, kinds, loops)
        plan = _frame_plan(trajectory, frames, alignment) if labels else None
        raw = [
            f"{self.name} {VERSION}: says - where it can show why, and abstains everywhere else.",
            *(f"outcome incorrect: {reason}" for reason in outcome_reasons),
            *(_account(step, seen[i], labels.get(i), excuses.get(i)) for i, step in enumerate(trajectory.steps)),
        ]
        return Judgement(
            outcome="incorrect" if outcome_reasons else None,
            spans=tuple(_spans(trajectory.steps, labels)) if plan else (),
            step_labels=tuple(labels.values()),
            raw="\n".join(raw),
            frame_plan=plan,
        )

    def _look(
        self, trajectory: Trajectory, frames: FrameSource, alignment: Alignment | None, progress: Progress
    ) -> Iterator[_Seen]:
        """What there is to see of each step, in order."""
        total = len(trajectory.steps)
        before = _observation(frames, 0)
        pointer_was: tuple[float, float] | None = None
        for i, step in enumerate(trajectory.steps):
            progress(i, total, f"step {i + 1} of {total}")
            after = _observation(frames, i + 1)
            act = Act(_is_pointing(step), _aim(step), pointer_was)
            pictures = compare(before, after, act, self.settings.changes) if before and after else None
            seen = _Seen(pictures)
            if _expects_effect(step) and (pictures is None or pictures.kind is ChangeKind.SAME):
                seen = self._watch(seen, trajectory, frames, alignment, i, act)
            yield seen
            before, pointer_was = after, act.at or pointer_was
        progress(total, total, "")

    def _watch(
        self,
        seen: _Seen,
        trajectory: Trajectory,
        frames: FrameSource,
        alignment: Alignment | None,
        i: int,
        act: Act,
    ) -> _Seen:
        """Add what the video shows after a step, where its place in the video is known well enough."""
        settings = self.settings
        at_s = _placed_at_s(alignment, i, settings)
        if trajectory.video_path is None or alignment is None or at_s is None:
            return seen
        try:
            end_s = alignment.step_at_s[i + 1] if i + 1 < len(trajectory.steps) else _duration_s(frames)
            full_s = settings.effect_window_s + _duration_of(trajectory.steps[i])
            window_s = min(full_s, end_s - at_s - settings.edge_s)
            if window_s < settings.min_window_s:
                return seen
            start_s = alignment.step_at_s[i - 1] if i else 0.0
            before = frames.at(max(at_s - settings.before_s, start_s))
            offsets_s = [*(offset_s for offset_s in settings.sample_at_s if offset_s < window_s), window_s]
            tolerant = replace(settings.changes, min_blob_px=settings.video_min_blob_px)
            changes = [compare(before, frames.at(at_s + offset_s), act, tolerant) for offset_s in offsets_s]
        except MediaError:
            return seen
        return replace(seen, video=_most(changes), window_s=window_s, is_cut_short=window_s < full_s)


def _fingerprint(settings: RuleSettings) -> str:
    """Changes with the rules and with every threshold."""
    text = json.dumps({"version": VERSION, "settings": asdict(settings)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _observation(frames: FrameSource, index: int) -> Image.Image | None:
    return frames.observation(index) if index < len(frames.trajectory.observations) else None


def _duration_s(frames: FrameSource) -> float:
    return frames.video.duration_s if frames.video else 0.0


def _most(changes: Sequence[Change]) -> Change:
    """The change that says most: a real one, else an unclear one, else the one with most pixels."""
    order = (ChangeKind.SAME, ChangeKind.UNCLEAR, ChangeKind.CHANGED)
    return max(changes, key=lambda change: (order.index(change.kind), change.changed_px))


def _placed_at_s(alignment: Alignment | None, i: int, settings: RuleSettings) -> float | None:
    """When a step begins in the video, None where that is only an estimate."""
    if alignment is None or alignment.step_weak[i]:
        return None
    residual_s = alignment.step_residual_s[i]
    is_known = residual_s is None or abs(residual_s) <= settings.max_residual_s
    return alignment.step_at_s[i] if is_known and math.isfinite(alignment.step_at_s[i]) else None


def _duration_of(step: Step) -> float:
    return sum(action.duration_s or 0.0 for action in step.actions)


def _kinds(step: Step) -> frozenset[ActionKind]:
    return frozenset(action.kind for action in step.actions)


def _is_pointing(step: Step) -> bool:
    return not _kinds(step).isdisjoint(_POINTING_KINDS) and _kinds(step).isdisjoint(_TYPING_KINDS)


def _is_passive(step: Step) -> bool:
    return _kinds(step) <= _PASSIVE_KINDS


def _is_typing(step: Step) -> bool:
    return not _kinds(step).isdisjoint(_TYPING_KINDS)


def _expects_effect(step: Step) -> bool:
    """Whether the step should show on the screen: all of it is understood, and some of it is not silent by nature."""
    if not _kinds(step).isdisjoint(_UNKNOWN_KINDS | TERMINAL_KINDS):
        return False
    return any(_shows(action) for action in step.actions)


def _shows(action: Action) -> bool:
    if action.kind is ActionKind.TYPE:
        return bool((action.text or "").strip())
    if action.kind is ActionKind.KEY:
        return not _is_silent(action.keys)
    return action.kind in _POINTING_KINDS


def _is_silent(keys: Sequence[str]) -> bool:
    """Whether a key or hotkey often leaves the screen as it is when it works: copy, save, select all, Esc."""
    names = [key.strip().lower().replace("_", "") for key in keys]
    others = [name for name in names if name not in _MODIFIERS]
    if not others:
        return True
    silent = _SILENT_KEYS | _SILENT_WITH_MODIFIER if len(others) < len(names) else _SILENT_KEYS
    return all(name in silent for name in others)


def _fraction(point: Point) -> tuple[float, float] | None:
    """The place of a point on the screen, None where its numbers say nothing."""
    numbers = (point.x, point.y, point.width, point.height)
    is_usable = all(map(math.isfinite, numbers)) and point.width > 0 and point.height > 0
    return point.fraction if is_usable else None


def _aim(step: Step) -> tuple[float, float] | None:
    """Where the step leaves the pointer, inside the screen."""
    places = [_fraction(point) for action in step.actions for point in action.points]
    last = places[-1] if places else None
    return last if last and all(0 <= value <= 1 for value in last) else None


def _noun(step: Step) -> str:
    """What a step is called in a reason."""
    kinds = {action.kind for action in step.actions if action.kind not in _PASSIVE_KINDS}
    if len(kinds) != 1:
        return "step"
    kind = kinds.pop()
    return _NOUNS.get(kind, kind.value.replace("_", " "))


def _no_effects(
    steps: Sequence[Step], seen: Sequence[_Seen], excuses: dict[int, str], settings: RuleSettings
) -> Iterator[_Finding]:
    for i, step in enumerate(steps):
        change = seen[i].change
        if change and change.kind is ChangeKind.SAME and _expects_effect(step) and i not in excuses:
            numbers = count(change.changed_px, "pixel") + " changed"
            numbers += f": {change.why}" if change.why else ""
            is_last = i + 1 == len(steps)
            yield _Finding(i, f"{_unchanged(seen[i], _noun(step), is_last)} ({numbers})")


def _unchanged(seen: _Seen, noun: str, is_last: bool) -> str:
    if seen.video is None or seen.video.kind is not ChangeKind.SAME:
        return f"the screenshots before and after this {noun} are the same"
    if not seen.is_cut_short:
        return f"the screen did not change within {seen.window_s:.1f} s of this {noun}"
    until = "the end of the recording" if is_last else "the next step"
    return f"the screen did not change in the {seen.window_s:.1f} s between this {noun} and {until}"


def _excuses(steps: Sequence[Step], kinds: Sequence[ChangeKind | None]) -> dict[int, str]:
    """Steps that may have done their work although the screen stayed the same, with the reason."""
    still = (i for i, step in enumerate(steps) if kinds[i] is ChangeKind.SAME and _expects_effect(step))
    return {i: excuse for i in still if (excuse := _excuse(steps, kinds, i))}


def _excuse(steps: Sequence[Step], kinds: Sequence[ChangeKind | None], i: int) -> str:
    """Why a step whose screen stayed the same may still have worked, '' where nothing speaks for it."""
    for later in range(i + 1, len(steps)):
        is_still = kinds[later] is ChangeKind.SAME
        if _is_passive(steps[later]) and is_still:
            continue
        if _is_passive(steps[later]):
            return f"its effect may have come during step {later + 1}"
        if _kinds(steps[i]) & _CLICK_KINDS and _is_typing(steps[later]) and not is_still:
            return f"it may have placed the focus for step {later + 1}"
        break
    return ""


def _loops(steps: Sequence[Step], kinds: Sequence[ChangeKind | None], settings: RuleSettings) -> list[tuple[int, ...]]:
    """Stretches of the same action on the same screen; waiting in between does not end one."""
    loops: list[tuple[int, ...]] = []
    stretch: list[int] = []
    for i, step in enumerate(steps):
        if _is_passive(step):
            continue
        is_same_screen = bool(stretch) and all(kind is ChangeKind.SAME for kind in kinds[stretch[-1] : i])
        if not (is_same_screen and _is_same_action(steps[stretch[-1]], step, settings)):
            loops.append(tuple(stretch))
            stretch = []
        if _may_loop(step):
            stretch.append(i)
    loops.append(tuple(stretch))
    return [loop for loop in loops if len(loop) >= settings.loop_length]


def _may_loop(step: Step) -> bool:
    active = [action for action in step.actions if action.kind not in _PASSIVE_KINDS]
    return all(action.kind in _REPEATABLE_KINDS for action in active) and not all(
        action.kind is ActionKind.KEY and _is_silent(action.keys) for action in active
    )


def _is_same_action(one: Step, other: Step, settings: RuleSettings) -> bool:
    return len(one.actions) == len(other.actions) and all(
        (a.kind, a.text, a.keys, a.scroll_x, a.scroll_y) == (b.kind, b.text, b.keys, b.scroll_x, b.scroll_y)
        and len(a.points) == len(b.points)
        and all(_is_same_place(p, q, settings.same_place) for p, q in zip(a.points, b.points, strict=True))
        for a, b in zip(one.actions, other.actions, strict=True)
    )


def _is_same_place(one: Point, other: Point, tolerance: float) -> bool:
    here, there = _fraction(one), _fraction(other)
    return here is not None and there is not None and math.dist(here, there) <= tolerance


def _repeats(
    steps: Sequence[Step], kinds: Sequence[ChangeKind | None], loops: Sequence[tuple[int, ...]]
) -> Iterator[_Finding]:
    """Every step of a loop, but its last where that one may have worked."""
    for loop in loops:
        place = " at the same place" if any(action.points for action in steps[loop[0]].actions) else ""
        times = f"{len(loop)} times in a row (steps {loop[0] + 1}-{loop[-1] + 1})"
        reason = f"the same {_noun(steps[loop[0]])}{place} with the same screen, {times}"
        yield from (_Finding(i, reason) for i in loop if i != loop[-1] or kinds[i] is ChangeKind.SAME)


def _outside(trajectory: Trajectory) -> Iterator[_Finding]:
    """Steps that aim outside the screen; pixels count only where a picture tells the size of the screen."""
    has_size = any(observation.width_px for observation in trajectory.observations)
    for i, step in enumerate(trajectory.steps):
        for action in step.actions:
            missed = next(filter(None, (_missed(point, has_size) for point in action.points)), None)
            if missed:
                yield _Finding(i, f"the {_noun(step)} aims outside the screen ({missed})")
                break


def _missed(point: Point, has_size: bool) -> str:
    place = _fraction(point)
    if place is None or point.space is CoordinateSpace.UNKNOWN:
        return ""
    if point.space is CoordinateSpace.PIXEL and not has_size:
        return ""
    sides = zip("xy", place, ("width", "height"), strict=True)
    return ", ".join(f"{axis} = {value:.2f} of its {side}" for axis, value, side in sides if not 0 <= value <= 1)


def _ends_badly(
    steps: Sequence[Step], kinds: Sequence[ChangeKind | None], loops: Sequence[tuple[int, ...]]
) -> list[str]:
    """Why the outcome is incorrect, nothing where the end does not tell."""
    active = [i for i, step in enumerate(steps) if not _is_passive(step)]
    reasons = []
    if active and ActionKind.FAIL in _kinds(steps[active[-1]]):
        reasons.append(f"the agent gives up in step {active[-1] + 1}")
    is_finished = bool(active) and steps[active[-1]].is_terminal
    is_understood = any(_kinds(step) - {ActionKind.OTHER} for step in steps)
    if is_understood and not is_finished:
        reasons.append("the run stops without the agent saying it is done")
    working = [i for i in active if not steps[i].is_terminal]
    for loop in loops:
        if loop[-1] == working[-1] and kinds[loop[-1]] is ChangeKind.SAME:
            reasons.append(f"the run ends in a loop (steps {loop[0] + 1}-{loop[-1] + 1})")
    return reasons


def _labels(findings: Sequence[_Finding]) -> dict[int, StepLabel]:
    """One label per step with every reason found, by step."""
    reasons: dict[int, list[str]] = {}
    for finding in findings:
        reasons.setdefault(finding.step_index, []).append(finding.reason)
    return {i: StepLabel(i, "-", "; ".join(reasons[i])) for i in sorted(reasons)}


def _frame_plan(trajectory: Trajectory, frames: FrameSource, alignment: Alignment | None) -> FramePlan | None:
    """Second k of the judge is the picture in which step k begins; None where nothing tells when that is."""
    at_s = alignment.step_at_s if alignment else tuple(float(i) for i in range(len(trajectory.steps)))
    is_ordered = all(map(math.isfinite, at_s)) and all(before <= after for before, after in pairwise(at_s))
    if not is_ordered or (trajectory.video_path and not alignment):
        return None
    try:
        # Without a video, each observation is shown for one second.
        duration_s = _duration_s(frames) if trajectory.video_path else float(len(trajectory.observations))
    except MediaError:
        return None
    shown = {observation.index for observation in trajectory.observations if observation.path}
    planned = tuple(PlanFrame(i if i in shown else None, second) for i, second in enumerate(at_s))
    return FramePlan(fps=1.0, frames=planned, duration_s=duration_s)


def _spans(steps: Sequence[Step], labels: dict[int, StepLabel]) -> Iterator[Span]:
    """Each stretch of labelled steps, from the beginning of its first to the beginning of the step after its last."""
    stretches: list[list[int]] = []
    for i in labels:
        if stretches and all(_is_passive(step) for step in steps[stretches[-1][-1] + 1 : i]):
            stretches[-1].append(i)
        else:
            stretches.append([i])
    for stretch in stretches:
        first, last = stretch[0], stretch[-1]
        reason = labels[first].reason if first == last else f"steps {first + 1}-{last + 1}: {labels[last].reason}"
        yield Span(float(first), float(last + 1), reason)


def _account(step: Step, seen: _Seen, label: StepLabel | None, excuse: str | None) -> str:
    """One line of the readable account: what was looked at, and what came of it."""
    looked = []
    if seen.pictures:
        looked.append(f"screenshots {seen.pictures}")
    if seen.video:
        looked.append(f"video for {seen.window_s:.1f} s {seen.video}")
    said = f"- {label.reason}" if label else f"abstains, {excuse}" if excuse else "abstains"
    return f"step {step.index + 1} ({_noun(step)}): {' | '.join(looked) or 'no pictures to compare'} => {said}"
