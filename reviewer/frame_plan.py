"""FramePlan: which pictures a judge is given, and the way between its clock and the video clock.

A judge that samples ``n`` frames at ``fps`` reads and writes judge seconds: frame ``i`` stands at ``i / fps`` on its
clock and at ``frames[i].at_s`` on the video's. Between frames, and from the last one to the end of the video, the two
clocks run in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reviewer.media import Clock

MAX_FRAMES = 50
SAMPLING_FPS = 1.0


@dataclass(frozen=True)
class PlanFrame:
    """One frame a judge is given: the observation it shows, None for a picture of the video, and its video time."""

    obs_index: int | None
    at_s: float


@dataclass(frozen=True)
class FramePlan:
    """The frames, in order of time, of a video of ``duration_s`` seconds. Raises ValueError without frames."""

    fps: float
    frames: tuple[PlanFrame, ...]
    duration_s: float

    def __post_init__(self) -> None:
        if not self.frames or self.fps <= 0:
            raise ValueError("A frame plan needs at least one frame and a rate above 0.")

    def to_video_s(self, judge_s: float) -> float:
        """Judge seconds as seconds of the video clock; outside the plan, its first frame or the video's end."""
        return float(np.interp(judge_s, *self._knots()))

    def to_judge_s(self, video_s: float) -> float:
        """Seconds of the video clock as judge seconds, from 0 to ``len(frames) / fps``."""
        judge_s, at_s = self._knots()
        return float(np.interp(video_s, at_s, judge_s))

    def _knots(self) -> tuple[list[float], list[float]]:
        at_s = [frame.at_s for frame in self.frames]
        judge_s = [index / self.fps for index in range(len(self.frames) + 1)]
        return judge_s, [*at_s, max(self.duration_s, at_s[-1])]

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values; ``from_json`` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> FramePlan:
        """Read what ``to_json`` wrote. Raises KeyError, TypeError or ValueError on anything else."""
        frames = tuple(PlanFrame(**frame) for frame in document["frames"])
        return cls(fps=document["fps"], frames=frames, duration_s=document["duration_s"])


def per_step(
    observation_at_s: Sequence[float | None],
    duration_s: float,
    fps: float = SAMPLING_FPS,
    max_frames: int = MAX_FRAMES,
) -> FramePlan:
    """One frame per observation that exists; where there are more than ``max_frames``, an even choice of them.

    Raises ValueError when no observation exists.
    """
    frames = [PlanFrame(index, at_s) for index, at_s in enumerate(observation_at_s) if at_s is not None]
    chosen = frames if len(frames) <= max_frames else [frames[index] for index in _even(len(frames), max_frames)]
    return FramePlan(fps, tuple(chosen), duration_s)


def uniform(clock: Clock, duration_s: float, fps: float = SAMPLING_FPS, max_frames: int = MAX_FRAMES) -> FramePlan:
    """Pictures spread over the video: one a second, at least one and at most ``max_frames``.

    With a constant rate, picture ``trunc(linspace(0, N - 1, n))``; where the rate varies, the pictures shown at evenly
    spread times.
    """
    count = min(len(clock), max_frames, max(1, int(duration_s)))
    if clock.pts_s is None:
        chosen = _even(len(clock), count)
    else:
        times_s = np.linspace(0, clock.time_of(len(clock) - 1), count)
        chosen = sorted({clock.index_at(float(at_s)) for at_s in times_s})
    return FramePlan(fps, tuple(PlanFrame(None, clock.time_of(index)) for index in chosen), duration_s)


def _even(total: int, count: int) -> list[int]:
    return [int(index) for index in np.linspace(0, total - 1, count)]
