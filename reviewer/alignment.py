"""Alignment: where each step and each screenshot of a trajectory stands on the video clock.

A step's time is the moment its action begins, so that the picture under it is the one before it. Screenshots are found
in the video as small grey pictures on a monotone best path; where the source has stamps, the clock of the stamps is
fitted to what the pictures show, and the fit places every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from reviewer.clock_fit import ClockFit, fit_clock
from reviewer.errors import ReviewerError
from reviewer.idle import VISIBLE_CHANGE, Grey, Still, Stretch, difference, idle_stretches, stills
from reviewer.media import MediaError, VideoInfo, grey_frames, grey_picture, open_picture
from reviewer.trajectory import Observation, Trajectory

AUTOMATIC = "automatic"
BY_PICTURES_AND_STAMPS = "pictures and stamps"
BY_PICTURES = "pictures"
BY_STAMPS = "stamps with an unknown offset"
ONE_A_SECOND = "one second per screenshot"
EVENLY = "spread evenly"
STATED = "stated by the source"

# Two places that look this much alike are the same place; the later one is taken.
_TIE = 10.0
_CLEAR_SHARE = 0.05
_CLEAR_DIFFERENCE = 8000.0
_PIXEL_LEVELS = 16
_CARET_PX = 4
_MIN_STILL_S = 0.5
_MIN_SURE = 3


class InvalidCorrection(ReviewerError):
    """A correction by hand that names no step, no time inside the video, or no order."""


class Match(NamedTuple):
    """Where a screenshot was found: it stands from ``first_s`` to ``last_s``, and ``at_s`` is well inside.

    ``distance`` is how much the video differs from it there, in grey levels beyond noise; ``clear`` whether that is
    close enough to be believed.
    """

    first_s: float
    at_s: float
    last_s: float
    distance: float
    clear: bool


@dataclass(frozen=True)
class Alignment:
    """One version of where everything stands, in seconds of the video clock.

    ``step_residual_s`` is how far what the pictures show lies from the step's time, None where they show nothing;
    ``placements`` where each observation lies on the canvas, as fractions, None where each fills it.
    """

    version: int
    author: str
    created_utc: str
    method: str
    step_at_s: tuple[float, ...]
    step_weak: tuple[bool, ...]
    step_residual_s: tuple[float | None, ...]
    observation_at_s: tuple[float | None, ...]
    idle: tuple[Stretch, ...] = ()
    placements: tuple[tuple[float, float, float, float], ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """The alignment as docs/design.md has it; ``from_json`` reads it back."""
        return {
            "version": self.version,
            "author": self.author,
            "created_utc": self.created_utc,
            "method": self.method,
            "step_at_s": list(self.step_at_s),
            "step_weak": list(self.step_weak),
            "step_residual_s": list(self.step_residual_s),
            "observation_at_s": list(self.observation_at_s),
            "idle": [{"start_s": start_s, "end_s": end_s} for start_s, end_s in self.idle],
            "placements": [list(placement) for placement in self.placements] if self.placements else None,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Alignment:
        """Read what ``to_json`` wrote; other keys are passed over. Raises KeyError or TypeError on anything else."""
        placements = document["placements"]
        return cls(
            version=document["version"],
            author=document["author"],
            created_utc=document["created_utc"],
            method=document["method"],
            step_at_s=tuple(document["step_at_s"]),
            step_weak=tuple(document["step_weak"]),
            step_residual_s=tuple(document["step_residual_s"]),
            observation_at_s=tuple(document["observation_at_s"]),
            idle=tuple((stretch["start_s"], stretch["end_s"]) for stretch in document["idle"]),
            placements=tuple((x, y, width, height) for x, y, width, height in placements) if placements else None,
        )


class _Video(NamedTuple):
    """What one pass over the video keeps: its stretches, and how each differs from each screenshot [stills, n]."""

    still_s: list[Stretch]
    distances: NDArray[np.float64]


def align(
    trajectory: Trajectory,
    video: VideoInfo,
    placements: Sequence[tuple[float, float, float, float]] | None = None,
    frames: Iterable[tuple[float, Grey]] | None = None,
) -> Alignment:
    """Find where the steps and screenshots of a trajectory stand in its served video.

    ``placements`` tells that the video was made of the screenshots, one second each. ``frames`` are the video's small
    grey pictures, read from the file when not given. Raises MediaError when the video cannot be read.
    """
    if placements is not None:
        return _one_a_second(trajectory, placements)
    pictures: dict[int, Grey] = {}
    changed: list[bool | None] = []
    before: Image.Image | None = None
    for index, screenshot in enumerate(_screenshots(trajectory.observations)):
        if screenshot is not None:
            pictures[index] = grey_picture(screenshot)
        if 0 < index <= len(trajectory.steps):
            changed.append(_is_changed(before, screenshot))
        before = screenshot
    greys = frames if frames is not None else grey_frames(video.path)
    seen = _watch(list(pictures.values()), stills(greys, video.duration_s))
    found = dict(zip(pictures, _matches(seen), strict=True))
    matches = [
        found[index] if index in found and found[index].clear else None for index in range(len(trajectory.observations))
    ]
    if sum(match is not None for match in matches) * 2 < len(pictures):
        matches = [None] * len(matches)
    onsets_s = _onsets_s(matches, changed, seen.still_s)
    if any(step.at_s is not None for step in trajectory.steps):
        placed = _stated(trajectory, video.duration_s)
    else:
        placed = _placed(trajectory, video.duration_s, seen.still_s, onsets_s, changed)
    last_action_s = placed.step_at_s[-1] if placed.step_at_s else None
    return replace(
        placed,
        observation_at_s=_observations_s(matches, placed.step_at_s, video.duration_s),
        idle=idle_stretches(seen.still_s, last_action_s, video.duration_s),
    )


def find_pictures(pictures: NDArray[np.uint8], frames: Iterable[tuple[float, Grey]]) -> list[Match]:
    """Find screenshots in a video, in order.

    ``pictures`` is [n, height, width] and ``frames`` (time, [height, width]) in order of time. Empty without frames.
    """
    return _matches(_watch(list(pictures), stills(frames)))


def corrected(
    alignment: Alignment,
    pins: Sequence[Mapping[str, Any]],
    shift_s: float,
    author: str,
    duration_s: float | None = None,
) -> Alignment:
    """A correction by hand as the next version.

    All steps move by ``shift_s``; each pin ``{"step_index", "at_s"}`` then holds exactly, weak steps move with the
    fixed ones around them, and the order is kept: a step in the way of a pin is pushed along. Raises InvalidCorrection
    for pins that fit no step, no time or no order, and for a shift longer than the video.
    """
    _check_shift(shift_s, duration_s)
    count = len(alignment.step_at_s)
    pinned = _checked_pins(pins, count, duration_s)
    shifted = np.asarray(alignment.step_at_s, float) + shift_s
    fixed = sorted(pinned.keys() | {index for index in range(count) if not alignment.step_weak[index]})
    at_s = shifted.copy()
    if pinned:
        moved = [pinned.get(index, shifted[index]) - shifted[index] for index in fixed]
        at_s += np.interp(np.arange(count), fixed, moved)
    ordered = _ordered(at_s, pinned, duration_s)
    return replace(
        alignment,
        version=alignment.version + 1,
        author=author,
        created_utc=_now_utc(),
        step_at_s=ordered,
        step_weak=tuple(weak and index not in pinned for index, weak in enumerate(alignment.step_weak)),
        step_residual_s=tuple(
            None if residual_s is None else residual_s + before_s - after_s
            for residual_s, before_s, after_s in zip(
                alignment.step_residual_s, alignment.step_at_s, ordered, strict=True
            )
        ),
        observation_at_s=_between_steps(alignment.observation_at_s, ordered),
    )


def _check_shift(shift_s: float, duration_s: float | None) -> None:
    if duration_s is not None and not abs(shift_s) <= duration_s:
        raise InvalidCorrection(f"The steps cannot move by {shift_s:g} s; the video is {duration_s:g} s long.")


def _checked_pins(pins: Sequence[Mapping[str, Any]], count: int, duration_s: float | None) -> dict[int, float]:
    pinned = {pin["step_index"]: float(pin["at_s"]) for pin in pins}
    for index, at_s in pinned.items():
        if not isinstance(index, int) or not 0 <= index < count:
            raise InvalidCorrection(f"There is no step {index}; the run has {count} steps, counted from 0.")
        if not 0 <= at_s <= (duration_s if duration_s is not None else float("inf")):
            raise InvalidCorrection(f"Step {index + 1} cannot begin at {at_s:g} s; choose a time inside the video.")
    in_order = [pinned[index] for index in sorted(pinned)]
    if in_order != sorted(in_order):
        raise InvalidCorrection("A later step cannot begin before an earlier one; move both.")
    return pinned


def _ordered(at_s: NDArray[np.float64], pinned: Mapping[int, float], duration_s: float | None) -> tuple[float, ...]:
    """The times in order and inside the video; pinned ones hold, and the others give way."""
    low_s = np.zeros(len(at_s))
    high_s = np.full(len(at_s), np.inf if duration_s is None else duration_s)
    for index, pin_s in pinned.items():
        low_s[index:] = np.maximum(low_s[index:], pin_s)
        high_s[: index + 1] = np.minimum(high_s[: index + 1], pin_s)
    return tuple(float(second) for second in np.maximum.accumulate(np.clip(at_s, low_s, high_s)))


def _now_utc() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _found(method: str, at_s: Sequence[float], weak: Sequence[bool], residual_s: Sequence[float | None]) -> Alignment:
    return Alignment(1, AUTOMATIC, _now_utc(), method, tuple(at_s), tuple(weak), tuple(residual_s), ())


def _one_a_second(trajectory: Trajectory, placements: Sequence[tuple[float, float, float, float]]) -> Alignment:
    steps = len(trajectory.steps)
    found = _found(ONE_A_SECOND, [float(index) for index in range(steps)], [False] * steps, [None] * steps)
    seconds = tuple(float(o.index) if o.path else None for o in trajectory.observations)
    return replace(found, observation_at_s=seconds, placements=tuple(placements))


def _screenshots(observations: Sequence[Observation]) -> Iterator[Image.Image | None]:
    for observation in observations:
        try:
            yield open_picture(observation.path) if observation.path else None
        except MediaError:
            yield None


def _is_changed(before: Image.Image | None, after: Image.Image | None) -> bool | None:
    """Whether two screenshots show that something was done between them; None when one of them is missing.

    A difference as narrow as a text caret is none.
    """
    if before is None or after is None:
        return None
    if before.size != after.size:
        return True
    levels = ImageChops.difference(before, after).convert("L").point(lambda level: 255 * (level > _PIXEL_LEVELS))
    box = levels.getbbox()
    return box is not None and box[2] - box[0] > _CARET_PX


def _watch(pictures: Sequence[Grey], video: Iterable[Still]) -> _Video:
    still_s: list[Stretch] = []
    rows: list[list[float]] = []
    for still in video:
        still_s.append((still.start_s, still.end_s))
        rows.append([difference(picture, still.picture) for picture in pictures])
    return _Video(still_s, np.asarray(rows, float).reshape(len(rows), len(pictures)))


def _matches(seen: _Video) -> list[Match]:
    path = _best_path(seen.distances)
    return [_match(seen, index, row) for index, row in enumerate(path)]


def _best_path(distances: NDArray[np.float64]) -> list[int]:
    """For each column the row to take, rows never going back, so that the sum is least; of equal rows the last."""
    rows, columns = distances.shape
    if not rows or not columns:
        return []
    costs = np.maximum(distances - distances.min(axis=0) - _TIE, 0.0)
    totals = np.zeros((columns, rows))
    totals[0] = costs[:, 0]
    for column in range(1, columns):
        totals[column] = costs[:, column] + np.minimum.accumulate(totals[column - 1])
    path: list[int] = []
    limit = rows
    for column in reversed(range(columns)):
        reachable = totals[column, :limit]
        path.append(int(np.flatnonzero(reachable == reachable.min())[-1]))
        limit = path[-1] + 1
    return path[::-1]


def _match(seen: _Video, column: int, row: int) -> Match:
    """The match at a row, with the rows around it that look the same."""
    distances = seen.distances[:, column]
    alike = distances <= distances[row] + VISIBLE_CHANGE
    first = last = row
    while first > 0 and alike[first - 1]:
        first -= 1
    while last + 1 < len(alike) and alike[last + 1]:
        last += 1
    start_s, end_s = seen.still_s[row]
    limit = max(_CLEAR_DIFFERENCE, _CLEAR_SHARE * float(np.median(distances)))
    return Match(
        first_s=seen.still_s[first][0],
        at_s=(start_s + end_s) / 2,
        last_s=seen.still_s[last][1],
        distance=float(distances[row]),
        clear=bool(distances[row] <= limit),
    )


def _onsets_s(
    matches: Sequence[Match | None], changed: Sequence[bool | None], still_s: Sequence[Stretch]
) -> list[Sequence[float]]:
    """For each step, when its action may show first; nothing where nothing shows.

    That is when the picture before it stops standing, or any later one that stood a while before the picture after it.
    """
    onsets: list[Sequence[float]] = []
    for index, is_changed in enumerate(changed):
        before, after = matches[index], matches[index + 1]
        if before is not None and is_changed is not False:
            is_seen = is_changed or before.last_s < still_s[-1][1]
            between_s = _rests_s(still_s, before.last_s, after.first_s) if after is not None else []
            onsets.append([before.last_s, *between_s] if is_seen else [])
        elif index == 0 and after is not None:
            onsets.append(_rests_s(still_s, 0.0, after.first_s)[-1:])
        else:
            onsets.append([])
    return onsets


def _rests_s(still_s: Sequence[Stretch], after_s: float, before_s: float) -> list[float]:
    """The ends of the stretches between two times in which the screen rested."""
    return [
        end_s
        for start_s, end_s in still_s
        if start_s >= after_s and end_s <= before_s and end_s - start_s >= _MIN_STILL_S
    ]


def _placed(
    trajectory: Trajectory,
    duration_s: float,
    still_s: Sequence[Stretch],
    onsets_s: Sequence[Sequence[float]],
    changed: Sequence[bool | None],
) -> Alignment:
    """Place the steps by what is known of them, without observations and idle stretches."""
    steps = trajectory.steps
    count = len(steps)
    stamps_s = [step.stamp_s for step in steps]
    grain_s = max((step.stamp_resolution_s or 0.0 for step in steps), default=0.0)
    onset_s = [onsets[0] if onsets else None for onsets in onsets_s]
    sure_s = [onset if len(onsets) == 1 else None for onset, onsets in zip(onset_s, onsets_s, strict=True)]
    has_sure = sum(onset is not None for onset in sure_s) >= _MIN_SURE
    fit = fit_clock(stamps_s, sure_s if has_sure else onset_s, grain_s)
    if fit is not None:
        if grain_s < _MIN_STILL_S:
            onset_s = [_nearest(onsets, fit, stamp) for onsets, stamp in zip(onsets_s, stamps_s, strict=True)]
            fit = fit_clock(stamps_s, onset_s, grain_s) or fit
        else:
            # A coarse stamp cannot tell which of several moments is meant.
            onset_s = sure_s
        return _placed_by_fit(fit, stamps_s, onset_s, changed, duration_s)
    if any(onset is not None for onset in onset_s):
        at_s = _in_order(_filled(onset_s, duration_s), duration_s)
        weak = [onset is None or not change for onset, change in zip(onset_s, changed, strict=True)]
        residual_s = [None if onset is None else onset - second for onset, second in zip(onset_s, at_s, strict=True)]
        return _found(BY_PICTURES, at_s, weak, residual_s)
    known_s = [stamp for stamp in stamps_s if stamp is not None]
    if known_s:
        spare_s = max(0.0, duration_s - (known_s[-1] - known_s[0]))
        lead_s = min(still_s[0][1], spare_s) if len(still_s) > 1 else spare_s / 2
        offset_s = lead_s - known_s[0]
        guessed = [None if stamp is None else stamp + offset_s for stamp in stamps_s]
        return _found(BY_STAMPS, _in_order(_filled(guessed, duration_s), duration_s), [True] * count, [None] * count)
    evenly_s = [(index + 0.5) * duration_s / count for index in range(count)]
    return _found(EVENLY, evenly_s, [True] * count, [None] * count)


def _stated(trajectory: Trajectory, duration_s: float) -> Alignment:
    """The source tells the times itself; steps without one are weak and stand between the others."""
    stated_s = [step.at_s for step in trajectory.steps]
    weak = [at_s is None for at_s in stated_s]
    return _found(STATED, _in_order(_filled(stated_s, duration_s), duration_s), weak, [None] * len(weak))


def _placed_by_fit(
    fit: ClockFit,
    stamps_s: Sequence[float | None],
    onset_s: Sequence[float | None],
    changed: Sequence[bool | None],
    duration_s: float,
) -> Alignment:
    placed = [
        None if stamp is None else fit.video_s(stamp, onset) for stamp, onset in zip(stamps_s, onset_s, strict=True)
    ]
    at_s = _in_order(_filled(placed, duration_s), duration_s)
    weak = [
        stamp is None or change is False or (change is None and onset is None)
        for stamp, onset, change in zip(stamps_s, onset_s, changed, strict=True)
    ]
    residual_s = [None if onset is None else onset - second for onset, second in zip(onset_s, at_s, strict=True)]
    return _found(BY_PICTURES_AND_STAMPS, at_s, weak, residual_s)


def _nearest(onsets_s: Sequence[float], fit: ClockFit, stamp_s: float | None) -> float | None:
    if stamp_s is None or not onsets_s:
        return onsets_s[0] if onsets_s else None
    expected_s = fit.video_s(stamp_s, None)
    return min(onsets_s, key=lambda onset_s: abs(onset_s - expected_s))


def _filled(times_s: Sequence[float | None], duration_s: float) -> list[float]:
    """The times with the missing ones spread between their neighbours, or to the edges of the video."""
    known = {-1: 0.0, len(times_s): duration_s}
    known |= {index: second for index, second in enumerate(times_s) if second is not None}
    return [
        float(second) for second in np.interp(range(len(times_s)), sorted(known), [known[i] for i in sorted(known)])
    ]


def _in_order(times_s: Sequence[float], duration_s: float) -> tuple[float, ...]:
    return _ordered(np.asarray(times_s, float), {}, duration_s)


def _observations_s(
    matches: Sequence[Match | None], step_at_s: Sequence[float], duration_s: float
) -> tuple[float | None, ...]:
    """Where each screenshot stands: inside its match and between the steps around it."""
    edges_s = [0.0, *step_at_s, duration_s]
    times_s: list[float | None] = []
    for index, match in enumerate(matches):
        if match is None:
            times_s.append(None)
            continue
        low_s, high_s = edges_s[min(index, len(edges_s) - 2)], edges_s[min(index + 1, len(edges_s) - 1)]
        start_s, end_s = max(match.first_s, low_s), min(match.last_s, high_s)
        inside_s = (start_s + end_s) / 2 if start_s <= end_s else match.at_s
        times_s.append(min(max(inside_s, low_s), high_s))
    return tuple(times_s)


def _between_steps(observation_at_s: Sequence[float | None], step_at_s: Sequence[float]) -> tuple[float | None, ...]:
    edges_s = [0.0, *step_at_s, float("inf")]
    return tuple(
        None if second is None else min(max(second, edges_s[index]), edges_s[index + 1])
        for index, second in enumerate(observation_at_s)
    )
