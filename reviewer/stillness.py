"""What moves in a video: its pictures as runs of equal ones, and the stretches where nothing moves.

Everything is seen small and grey, 160 by 90 px, in one pass over the pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.uint8]

# A blinking caret, a pointer and the digits of a small clock stay below this many changed pixels of 160 x 90.
VISIBLE_PX = 8
VISIBLE_LEVELS = 16
SAME_RMS = 0.6
STILL_S = 2.0
TAIL_MARGIN_S = 2.0
MAX_RUNS = 6000


class Idle(NamedTuple):
    """A stretch of the video in which nothing moves, or which follows the last action."""

    start_s: float
    end_s: float


class Runs(NamedTuple):
    """Pictures that look alike, joined: ``greys`` [n, h, w] uint8, and when each run begins and ends, float [n]."""

    greys: Grey
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]


class Watched(NamedTuple):
    """What one pass over a video gives. ``moved_s`` are the times at which something visible changed."""

    runs: Runs
    still: tuple[Idle, ...]
    moved_s: NDArray[np.float64]


def watch(frames: Iterable[tuple[float, Grey]], duration_s: float) -> Watched:
    """Look at every picture once. ``frames`` are (time, grey picture) in order. Long lively videos are thinned out."""
    kept: list[Grey] = []
    starts_s: list[float] = []
    still: list[Idle] = []
    moved_s: list[float] = []
    spacing_s = 0.0
    reference: Grey | None = None
    still_since_s = 0.0
    for at_s, grey in frames:
        if not kept or (at_s - starts_s[-1] >= spacing_s and rms(grey, kept[-1]) > SAME_RMS):
            kept.append(grey)
            starts_s.append(at_s)
            if len(kept) > MAX_RUNS:
                kept, starts_s = kept[::2], starts_s[::2]
                spacing_s = max(2 * spacing_s, 2 * at_s / MAX_RUNS)
        if reference is None:
            reference = grey
        elif is_visible(grey, reference):
            if at_s - still_since_s >= STILL_S:
                still.append(Idle(still_since_s, at_s))
            reference, still_since_s = grey, at_s
            moved_s.append(at_s)
    if duration_s - still_since_s >= STILL_S:
        still.append(Idle(still_since_s, duration_s))
    greys = np.stack(kept) if kept else np.empty((0, 90, 160), np.uint8)
    ends_s = [*starts_s[1:], duration_s] if starts_s else []
    return Watched(Runs(greys, np.array(starts_s), np.array(ends_s)), tuple(still), np.array(moved_s))


def with_tail(still: Iterable[Idle], last_action_s: float | None, duration_s: float) -> tuple[Idle, ...]:
    """The still stretches, and as one what comes more than ``TAIL_MARGIN_S`` after the last action."""
    if last_action_s is None or duration_s - last_action_s < TAIL_MARGIN_S + STILL_S:
        return tuple(still)
    tail_s = last_action_s + TAIL_MARGIN_S
    before = [Idle(span.start_s, min(span.end_s, tail_s)) for span in still if span.start_s < tail_s]
    if before and before[-1].end_s >= tail_s:
        return (*before[:-1], Idle(before[-1].start_s, duration_s))
    return (*before, Idle(tail_s, duration_s))


def rms(one: Grey, other: Grey) -> float:
    """Root mean square difference of two grey pictures, in grey levels."""
    difference = one.astype(np.float32) - other
    return float(np.sqrt(np.mean(difference * difference)))


def is_visible(one: Grey, other: Grey) -> bool:
    """Whether a person would see the screen change: more than a caret, a pointer or a clock's digit."""
    changed = np.abs(one.astype(np.int16) - other) > VISIBLE_LEVELS
    return int(np.count_nonzero(changed)) >= VISIBLE_PX
