"""The clock of a source's stamps, fitted to what the pictures of its video show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_DRIFT = 0.1

# What an action does shows on the screen this much later than it begins, as a rule.
_LATENCY_S = 0.1
_INLIER_S = 0.4
_MAX_COST_S = 1.0
_MIN_GAP_S = 2.0
# A drift has to explain this much more than a mere offset to be believed.
_DRIFT_GAIN_S = 0.15


class ClockFit(NamedTuple):
    """Video seconds as ``offset_s + rate * stamp``; a stamp may be up to ``grain_s`` too small."""

    offset_s: float
    rate: float
    grain_s: float

    def video_s(self, stamp_s: float, onset_s: float | None) -> float:
        """When a stamped moment is in the video; coarse stamps take the onset they allow."""
        earliest_s = self.offset_s + self.rate * stamp_s
        if not self.grain_s:
            return earliest_s
        if onset_s is None:
            return earliest_s + self.grain_s / 2
        return min(max(onset_s - _LATENCY_S, earliest_s), earliest_s + self.grain_s)


def fit_clock(
    stamps_s: Sequence[float | None], onset_s: Sequence[float | None], grain_s: float = 0.0
) -> ClockFit | None:
    """Fit offset and drift so that as many onsets as possible follow their stamps at once; strays do not count.

    Returns None without a step that has both a stamp and an onset.
    """
    pairs = [(s, o) for s, o in zip(stamps_s, onset_s, strict=True) if s is not None and o is not None]
    if not pairs:
        return None
    stamps, onsets = np.asarray(pairs, float).T
    middle_s = stamps + grain_s / 2
    steady = _best(middle_s, onsets, np.ones(1), grain_s)
    drifting = _best(middle_s, onsets, _rates(middle_s, onsets), grain_s)
    is_drifting = _cost(middle_s, onsets, *drifting, grain_s) + _DRIFT_GAIN_S < _cost(middle_s, onsets, *steady, grain_s)
    offset_s, rate = drifting if is_drifting else steady
    return ClockFit(offset_s + rate * grain_s / 2 - grain_s / 2 - _LATENCY_S, rate, grain_s)


def _rates(stamps_s: NDArray[np.float64], onset_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rates that any two steps suggest, as far as a clock can be off."""
    first, second = np.triu_indices(len(stamps_s), 1)
    gaps_s = stamps_s[second] - stamps_s[first]
    far = gaps_s >= _MIN_GAP_S
    rates = (onset_s[second] - onset_s[first])[far] / gaps_s[far]
    kept = rates[np.abs(rates - 1) <= MAX_DRIFT]
    return np.unique(np.append(np.round(kept, 4), 1.0))


def _best(
    stamps_s: NDArray[np.float64], onset_s: NDArray[np.float64], rates: NDArray[np.float64], grain_s: float
) -> tuple[float, float]:
    """The offset and rate of least cost among those that put some onset right, then centred on all it puts right."""
    candidates = [(float(offset), float(rate)) for rate in rates for offset in onset_s - rate * stamps_s]
    offset_s, rate = min(candidates, key=lambda line: _cost(stamps_s, onset_s, *line, grain_s))
    late_s = onset_s - (offset_s + rate * stamps_s)
    inliers = np.abs(late_s) <= _INLIER_S + grain_s / 2
    centre_s = (late_s[inliers].min() + late_s[inliers].max()) / 2 if grain_s else np.median(late_s[inliers])
    return offset_s + float(centre_s), rate


def _cost(
    stamps_s: NDArray[np.float64], onset_s: NDArray[np.float64], offset_s: float, rate: float, grain_s: float
) -> float:
    late_s = np.abs(onset_s - (offset_s + rate * stamps_s))
    return float(np.minimum(np.maximum(late_s - grain_s / 2, 0.0), _MAX_COST_S).sum())
