"""Still stretches of a video: how long the screen looks the same, and when nothing happens that is worth watching."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.uint8]
Stretch = tuple[float, float]

MIN_IDLE_S = 2.0
SETTLE_S = 1.0

# Coding noise moves a small grey pixel by a few levels. A caret or one digit of a clock adds up to less than the
# second number on screens from a phone's to full HD; a ticked box, a pressed button or a few letters to more.
_NOISE_LEVELS = 8
VISIBLE_CHANGE = 150.0


class Still(NamedTuple):
    """A time in which the screen looks the same, and how it looks: a small grey picture, uint8 [height, width]."""

    start_s: float
    end_s: float
    picture: Grey


def difference(picture: Grey, other: Grey) -> float:
    """How much two small grey pictures differ: the grey levels beyond coding noise, added up."""
    beyond = np.abs(picture.astype(np.int16) - other) - _NOISE_LEVELS
    return float(np.maximum(beyond, 0).sum())


def stills(frames: Iterable[tuple[float, Grey]], duration_s: float = 0.0) -> Iterator[Still]:
    """The whole video as stretches without visible change, in order and without gaps; only one picture is held.

    The last stretch ends at ``duration_s``, or with the last frame where that is later.
    """
    kept: tuple[float, Grey] | None = None
    at_s = 0.0
    for at_s, picture in frames:
        if kept is None:
            kept = (at_s, picture)
        elif difference(picture, kept[1]) > VISIBLE_CHANGE:
            yield Still(kept[0], at_s, kept[1])
            kept = (at_s, picture)
    if kept is not None:
        yield Still(kept[0], max(duration_s, at_s), kept[1])


def idle_stretches(still_s: Sequence[Stretch], last_action_s: float | None, duration_s: float) -> tuple[Stretch, ...]:
    """What playback may skip: stretches without change of more than 2 s, and all that follows the last action."""
    found = [(start_s, end_s) for start_s, end_s in still_s if end_s - start_s > MIN_IDLE_S]
    if last_action_s is not None and duration_s - (last_action_s + SETTLE_S) > MIN_IDLE_S:
        tail_s = next((end_s for start_s, end_s in still_s if end_s > last_action_s), last_action_s)
        found.append((min(max(tail_s, last_action_s + SETTLE_S), duration_s - MIN_IDLE_S), duration_s))
    return _merged(sorted(found))


def _merged(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    merged: list[Stretch] = []
    for start_s, end_s in stretches:
        if merged and start_s <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_s))
        else:
            merged.append((start_s, end_s))
    return tuple(merged)
