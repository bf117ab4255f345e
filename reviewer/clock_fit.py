"""The clock of a source's stamps, fitted to what the pictures of its video show.

What an action does shows a little after it begins, sometimes much later, and seldom before. The fit is therefore a
line just below most onsets rather than through their middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_DRIFT = 0.1

_LATENCY_S = 0.04
_LATE_WEIGHT, _MAX_LATE_S = 0.35, 1.5
_MAX_EARLY_S = 0.3
_DRIFT_WEIGHT_S = 3.0
_SLACK_S = 0.2
_MIN_GAP_S = 2.0
_MIN_GAP_GRAINS = 20
_MAX_CANDIDATE_POINTS = 150


class ClockFit(NamedTuple):
    """A stamped moment lies from ``offset_s + rate * stamp`` to ``grain_s`` later, in video seconds."""

    offset_s: float
    rate: float
    grain_s: float

    def video_s(self, stamp_s: float, onset_s: float | None) -> float:
        """When a stamped moment is in the video; a coarse stamp takes the onset it allows."""
        earliest_s = self.offset_s + self.rate * stamp_s
        middle_s = earliest_s + self.grain_s / 2
        if onset_s is None or abs(onset_s - _LATENCY_S - middle_s) > self.grain_s / 2 + _SLACK_S:
            return middle_s
        return min(max(onset_s - _LATENCY_S, earliest_s), earliest_s + self.grain_s)


def fit_clock(
    stamps_s: Sequence[float | None], onset_s: Sequence[float | None], grain_s: float = 0.0
) -> ClockFit | None:
    """Fit offset and drift of stamps, which may be up to ``grain_s`` too small, to onsets; strays hardly count.

    Returns None without a step that has both a stamp and an onset.
    """
    pairs = [(s, o) for s, o in zip(stamps_s, onset_s, strict=True) if s is not None and o is not None]
    if not pairs:
        return None
    stamps, onsets = np.asarray(pairs, float).T
    begins = onsets - _LATENCY_S
    offsets, rates = _candidates(stamps + grain_s / 2, begins, grain_s)
    costs = _costs(stamps + grain_s / 2, begins, offsets, rates, grain_s)
    rate = rates[int(np.argmin(costs))]
    best = (costs <= costs.min() + 1e-6) & (rates == rate)
    offset_s = (offsets[best].min() + offsets[best].max()) / 2
    return ClockFit(float(offset_s + (rate - 1) * grain_s / 2), float(rate), grain_s)


def _candidates(stamps: Floats, begins: Floats, grain_s: float) -> tuple[Floats, Floats]:
    """Offsets and rates of the lines worth trying: without drift through each point, and through any two points."""
    slack_s = np.asarray([-grain_s / 2, 0.0, grain_s / 2] if grain_s else [0.0])
    steady = (begins - stamps + slack_s[:, None]).ravel()
    few = np.unique(np.linspace(0, len(stamps) - 1, min(len(stamps), _MAX_CANDIDATE_POINTS)).astype(int))
    first, second = (few[index] for index in np.triu_indices(len(few), 1))
    gaps_s = stamps[second] - stamps[first]
    far = gaps_s >= max(_MIN_GAP_S, _MIN_GAP_GRAINS * grain_s)
    rates = (begins[second] - begins[first])[far] / gaps_s[far]
    near = np.abs(rates - 1) <= MAX_DRIFT
    offsets = begins[first][far][near] - rates[near] * stamps[first][far][near]
    return np.concatenate([steady, offsets]), np.concatenate([np.ones(len(steady)), rates[near]])


def _costs(stamps: Floats, begins: Floats, offsets: Floats, rates: Floats, grain_s: float) -> Floats:
    late_s = begins - (offsets[:, None] + rates[:, None] * stamps)
    late_s = np.sign(late_s) * np.maximum(np.abs(late_s) - grain_s / 2, 0.0)
    cost_s = np.where(late_s > 0, _LATE_WEIGHT * np.minimum(late_s, _MAX_LATE_S), np.minimum(-late_s, _MAX_EARLY_S))
    total_s: Floats = cost_s.sum(axis=1) + _DRIFT_WEIGHT_S * np.abs(rates - 1)
    return total_s
