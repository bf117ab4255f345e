"""The judge clock and the video clock, both ways."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewer.frame_plan import FramePlan, PlanFrame, per_step, uniform
from reviewer.media import Clock

durations_s = st.floats(10, 6000)


@st.composite
def plans(draw: st.DrawFn) -> FramePlan:
    duration_s = draw(durations_s)
    shares = sorted(draw(st.sets(st.integers(0, 999), min_size=1, max_size=50)))
    frames = tuple(PlanFrame(index, share / 1000 * duration_s) for index, share in enumerate(shares))
    return FramePlan(draw(st.sampled_from([0.5, 1.0, 2.0])), frames, duration_s)


@given(plans(), st.floats(0, 1))
def test_there_and_back_is_the_same_time(plan: FramePlan, share: float) -> None:
    at_s = plan.frames[0].at_s + share * (plan.duration_s - plan.frames[0].at_s)
    assert plan.to_video_s(plan.to_judge_s(at_s)) == pytest.approx(at_s, abs=1e-6)


@given(plans(), st.lists(st.floats(-10, 6100), min_size=2))
def test_both_ways_keep_the_order(plan: FramePlan, times_s: list[float]) -> None:
    ordered = sorted(times_s)
    for there in (plan.to_video_s, plan.to_judge_s):
        values = [there(at_s) for at_s in ordered]
        assert values == sorted(values)


@given(plans())
def test_every_frame_stands_at_its_index_and_the_end_at_the_count(plan: FramePlan) -> None:
    for index, frame in enumerate(plan.frames):
        assert plan.to_video_s(index / plan.fps) == pytest.approx(frame.at_s)
        assert plan.to_judge_s(frame.at_s) == pytest.approx(index / plan.fps)
    assert plan.to_video_s(len(plan.frames) / plan.fps) == pytest.approx(plan.duration_s)


@given(plans())
def test_a_plan_survives_json(plan: FramePlan) -> None:
    assert FramePlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_missing_observation_is_skipped_but_keeps_its_number() -> None:
    plan = per_step([None, 2.0, 5.0, None, 9.0], duration_s=12.0)
    assert [frame.obs_index for frame in plan.frames] == [1, 2, 4]
    assert plan.to_video_s(1.0) == 5.0
    assert plan.to_video_s(2.5) == 10.5


@given(st.integers(51, 600))
def test_more_than_fifty_observations_are_thinned_evenly(count: int) -> None:
    plan = per_step([float(second) for second in range(count)], duration_s=float(count))
    indexes = [frame.obs_index for frame in plan.frames]
    assert len(indexes) == 50
    assert (indexes[0], indexes[-1]) == (0, count - 1)
    assert len(set(indexes)) == 50


@pytest.mark.parametrize(("duration_s", "count"), [(0.4, 1), (1.0, 1), (7.9, 7), (50.0, 50), (300.0, 50)])
def test_a_constant_rate_is_sampled_once_a_second_at_most_fifty_times(duration_s: float, count: int) -> None:
    clock = Clock(num=1, den=30, count=max(1, round(duration_s * 30)))
    plan = uniform(clock, duration_s)
    assert len(plan.frames) == count
    expected = [int(k * (len(clock) - 1) / (count - 1)) for k in range(count)] if count > 1 else [0]
    assert [clock.index_at(frame.at_s) for frame in plan.frames] == expected


def test_a_variable_rate_is_sampled_by_time_not_by_count() -> None:
    dense = [k / 100 for k in range(500)]
    sparse = [5.0 + k for k in range(5)]
    plan = uniform(Clock(pts_s=(*dense, *sparse)), duration_s=10.0)
    times_s = [frame.at_s for frame in plan.frames]
    assert times_s == sorted(set(times_s))
    assert max(b - a for a, b in pairwise(times_s)) <= 2.0


def test_no_frames_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one frame"):
        per_step([None, None], duration_s=3.0)
