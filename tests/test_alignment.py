"""Where steps and screenshots stand in a video."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import floor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from reviewer.alignment import (
    BY_PICTURES,
    BY_PICTURES_AND_STAMPS,
    BY_STAMPS,
    EVENLY,
    ONE_A_SECOND,
    STATED,
    Alignment,
    InvalidCorrection,
    align,
    corrected,
    find_pictures,
)
from reviewer.clock_fit import fit_clock
from reviewer.idle import Grey
from reviewer.importers import osworld
from reviewer.media import Clock, VideoInfo, grey_frames, grey_picture, open_picture, probe
from reviewer.trajectory import Action, ActionKind, Observation, Step, Trajectory

CASES = Path(os.environ.get("REVIEWER_CASES", Path(__file__).parents[2] / "shared" / "cases"))
RUNS = Path(__file__).parents[1] / "examples" / "runs"
FPS = 20
DURATION_S = 24.0
ACTION_AT_S = [2.0, 4.3, 7.9, 9.1, 13.55, 16.2, 18.4]
WITHOUT_EFFECT = {3, 6}
LATENCY_S = [0.05, 0.4, 0.05, 0.0, 0.1, 0.05, 0.0]
STAMP_AT_ZERO_S = 1_700_000_000.37


@cache
def screen(effects: int) -> Image.Image:
    """A desktop on which each step that does something has opened a window."""
    picture = Image.new("RGB", (640, 360), "#305070")
    draw = ImageDraw.Draw(picture)
    for index in range(effects):
        left, top = 20 + index * 75, 30 + index * 25
        draw.rectangle((left, top, left + 140, top + 100), "#f4f4f4", "black")
        draw.text((left + 10, top + 10), f"Window {index}", "black")
    return picture


@cache
def grey_screen(effects: int) -> Grey:
    return grey_picture(screen(effects))


def effects_before(step: int) -> int:
    return sum(index not in WITHOUT_EFFECT for index in range(step))


def frames() -> Iterator[tuple[float, Grey]]:
    shows_s = [at_s + late_s for at_s, late_s in zip(ACTION_AT_S, LATENCY_S, strict=True)]
    for index in range(round(DURATION_S * FPS)):
        at_s = index / FPS
        yield at_s, grey_screen(effects_before(sum(shown <= at_s for shown in shows_s)))


VIDEO = VideoInfo(Path("run.mp4"), 640, 360, DURATION_S, 0.0, Clock(1, FPS, round(DURATION_S * FPS)), "h264", "")


@dataclass(frozen=True)
class Source:
    """What a source leaves of the run: its stamps, and which screenshots."""

    stamps_s: Sequence[float | None]
    grain_s: float | None = None
    missing: frozenset[int] = frozenset()

    def trajectory(self, folder: Path) -> Trajectory:
        observations = []
        for index in range(len(ACTION_AT_S) + 1):
            path = folder / f"{index}.png"
            screen(effects_before(index)).save(path)
            observations.append(Observation(index, None if index in self.missing else path, 640, 360))
        steps = tuple(
            Step(index, (Action(ActionKind.CLICK),), stamp_s=stamp, stamp_resolution_s=self.grain_s)
            for index, stamp in enumerate(self.stamps_s)
        )
        return Trajectory("0" * 16, "test", "run", "task", steps, tuple(observations))


NO_STAMPS: list[float | None] = [None] * len(ACTION_AT_S)
STAMPS = [STAMP_AT_ZERO_S + at_s for at_s in ACTION_AT_S]
ALL = frozenset(range(len(ACTION_AT_S) + 1))


def errors_s(alignment: Alignment) -> list[float]:
    return [abs(found - true) for found, true in zip(alignment.step_at_s, ACTION_AT_S, strict=True)]


@pytest.mark.parametrize("missing", [frozenset(), frozenset({0}), frozenset({0, 2, 5})])
@pytest.mark.parametrize("stamps_s", [STAMPS, [7.3 + 1.02 * s for s in STAMPS], [0.98 * s - 7.3 for s in STAMPS]])
def test_stamps_of_another_clock_place_every_step(
    tmp_path: Path, stamps_s: list[float], missing: frozenset[int]
) -> None:
    alignment = align(Source(stamps_s, 1e-6, missing).trajectory(tmp_path), VIDEO, frames=frames())
    assert alignment.method == BY_PICTURES_AND_STAMPS
    assert max(errors_s(alignment)) <= 0.2


def test_whole_second_stamps_place_every_step_within_a_second(tmp_path: Path) -> None:
    stamps_s = [float(floor(stamp)) for stamp in STAMPS]
    alignment = align(Source(stamps_s, 1.0, frozenset({0})).trajectory(tmp_path), VIDEO, frames=frames())
    assert max(errors_s(alignment)) <= 1.0
    assert alignment.step_at_s == tuple(sorted(alignment.step_at_s))


def test_steps_whose_picture_stays_the_same_are_weak(tmp_path: Path) -> None:
    for stamps_s in (STAMPS, NO_STAMPS):
        alignment = align(Source(stamps_s).trajectory(tmp_path), VIDEO, frames=frames())
        assert {index for index, weak in enumerate(alignment.step_weak) if weak} == WITHOUT_EFFECT
        for index, residual_s in enumerate(alignment.step_residual_s):
            assert (residual_s is None) == (index in WITHOUT_EFFECT)


def test_without_stamps_a_step_begins_when_its_picture_ends(tmp_path: Path) -> None:
    alignment = align(Source(NO_STAMPS).trajectory(tmp_path), VIDEO, frames=frames())
    assert alignment.method == BY_PICTURES
    for index, error_s in enumerate(errors_s(alignment)):
        if index not in WITHOUT_EFFECT:
            assert error_s <= LATENCY_S[index] + 1 / FPS
    assert alignment.step_at_s == tuple(sorted(alignment.step_at_s))


def test_screenshots_stand_between_the_steps_around_them(tmp_path: Path) -> None:
    alignment = align(Source(STAMPS, missing=frozenset({2})).trajectory(tmp_path), VIDEO, frames=frames())
    assert alignment.observation_at_s[2] is None
    edges_s = [0.0, *ACTION_AT_S, DURATION_S]
    for index, at_s in enumerate(alignment.observation_at_s):
        if at_s is not None:
            assert edges_s[index] - 0.1 <= at_s <= edges_s[index + 1] + 0.1


def test_stamps_alone_place_the_steps_but_only_weakly(tmp_path: Path) -> None:
    alignment = align(Source(STAMPS, missing=ALL).trajectory(tmp_path), VIDEO, frames=frames())
    assert alignment.method == BY_STAMPS
    assert all(alignment.step_weak)
    assert np.diff(alignment.step_at_s) == pytest.approx(np.diff(ACTION_AT_S), abs=0.01)


def test_times_the_source_states_are_taken_and_the_others_stand_between(tmp_path: Path) -> None:
    run = Source(NO_STAMPS).trajectory(tmp_path)
    stated_s = [1.0, None, 4.0, *range(5, 3 + len(run.steps) - 1)][: len(run.steps)]
    steps = tuple(replace(step, at_s=at_s) for step, at_s in zip(run.steps, stated_s, strict=True))
    alignment = align(replace(run, steps=steps), VIDEO, frames=frames())
    assert alignment.method == STATED
    assert alignment.step_at_s[:3] == (1.0, 2.5, 4.0)
    assert alignment.step_weak[:3] == (False, True, False)


def test_with_nothing_to_go_by_the_steps_are_spread(tmp_path: Path) -> None:
    alignment = align(Source(NO_STAMPS, missing=ALL).trajectory(tmp_path), VIDEO, frames=frames())
    assert (alignment.method, all(alignment.step_weak)) == (EVENLY, True)
    assert 0 < alignment.step_at_s[0] < alignment.step_at_s[-1] < DURATION_S
    assert alignment.observation_at_s == (None,) * (len(ACTION_AT_S) + 1)


def test_screenshots_of_another_video_are_not_believed(tmp_path: Path) -> None:
    noise = np.random.default_rng(3).integers(0, 255, (90, 160)).astype(np.uint8)
    alignment = align(Source(NO_STAMPS).trajectory(tmp_path), VIDEO, frames=((k / 2, noise) for k in range(20)))
    assert (alignment.method, all(alignment.step_weak)) == (EVENLY, True)


def test_a_run_of_screenshots_has_one_step_a_second(tmp_path: Path) -> None:
    run = Source(STAMPS, missing=frozenset({1})).trajectory(tmp_path)
    places = [(0.0, 0.0, 1.0, 1.0)] * len(run.observations)
    alignment = align(run, VIDEO, places)
    assert alignment.method == ONE_A_SECOND
    assert alignment.step_at_s == tuple(float(index) for index in range(len(run.steps)))
    assert not any(alignment.step_weak)
    assert alignment.observation_at_s[:3] == (0.0, None, 2.0)
    assert alignment.placements == tuple(places)


def test_a_plain_video_has_idle_stretches_and_no_steps() -> None:
    alignment = align(Trajectory("0" * 16, "video", "run", "task", (), ()), VIDEO, frames=frames())
    assert (alignment.step_at_s, alignment.observation_at_s) == ((), ())
    assert alignment.idle


def test_idle_covers_the_stillness_and_the_tail(tmp_path: Path) -> None:
    alignment = align(Source(STAMPS).trajectory(tmp_path), VIDEO, frames=frames())
    assert alignment.idle[-1][1] == DURATION_S
    for start_s, end_s in alignment.idle:
        assert end_s - start_s > 2.0


def test_a_screen_that_comes_back_is_found_in_order() -> None:
    shown = [0, 1, 0, 2, 0]
    greys = [grey_picture(screen(effects)) for effects in range(3)]
    video = [(second + k / 10, greys[effects]) for second, effects in enumerate(shown) for k in range(10)]
    matches = find_pictures(np.stack([greys[effects] for effects in shown]), iter(video))
    assert [int(match.at_s) for match in matches] == [0, 1, 2, 3, 4]
    assert all(match.clear and match.first_s <= match.at_s <= match.last_s for match in matches)
    assert find_pictures(np.stack(greys), iter(())) == []


@pytest.fixture
def placed(tmp_path: Path) -> Alignment:
    return align(Source(STAMPS, missing=frozenset({0})).trajectory(tmp_path), VIDEO, frames=frames())


def test_an_alignment_survives_json(placed: Alignment) -> None:
    document = json.loads(json.dumps(placed.to_json()))
    assert Alignment.from_json({**document, "corrections": []}) == placed
    with_places = replace(placed, placements=((0.0, 0.1, 1.0, 0.8),))
    assert Alignment.from_json(json.loads(json.dumps(with_places.to_json()))) == with_places


def test_a_pin_holds_and_weak_neighbours_follow(placed: Alignment) -> None:
    after = corrected(placed, [{"step_index": 4, "at_s": 14.25}], 0.0, "ada", DURATION_S)
    assert (after.version, after.author) == (2, "ada")
    assert after.step_at_s[4] == 14.25
    assert after.step_at_s[2] == placed.step_at_s[2]
    assert placed.step_at_s[3] < after.step_at_s[3] < 14.25
    assert corrected(placed, [{"step_index": 3, "at_s": 10.0}], 0.0, "ada", DURATION_S).step_weak[3] is False


def test_a_shift_moves_every_step_but_none_out_of_the_video(placed: Alignment) -> None:
    later = corrected(placed, [], 0.5, "ada", DURATION_S)
    assert later.step_at_s == pytest.approx([at_s + 0.5 for at_s in placed.step_at_s])
    assert corrected(placed, [], DURATION_S, "ada", DURATION_S).step_at_s == (DURATION_S,) * len(ACTION_AT_S)


@pytest.mark.parametrize("shift_s", [DURATION_S + 0.1, -1e8, float("nan")])
def test_a_shift_longer_than_the_video_is_refused(placed: Alignment, shift_s: float) -> None:
    with pytest.raises(InvalidCorrection, match="24 s long"):
        corrected(placed, [], shift_s, "ada", DURATION_S)


def test_a_pin_pushes_steps_that_would_be_out_of_order(placed: Alignment) -> None:
    after = corrected(placed, [{"step_index": 1, "at_s": 15.0}], 0.0, "ada", DURATION_S)
    assert after.step_at_s[1:5] == (15.0,) * 4
    assert after.step_at_s[5] == placed.step_at_s[5]


@given(st.dictionaries(st.integers(0, 6), st.floats(0, DURATION_S)), st.floats(-DURATION_S, DURATION_S))
def test_every_correction_keeps_order_pins_and_bounds(pins: dict[int, float], shift_s: float) -> None:
    before = Alignment(
        1, "automatic", "", "", tuple(ACTION_AT_S), tuple(k in WITHOUT_EFFECT for k in range(7)), (0.0,) * 7,
        (None, *ACTION_AT_S),
    )  # fmt: skip
    in_order = dict(zip(sorted(pins), sorted(pins.values()), strict=True))
    documents = [{"step_index": index, "at_s": at_s} for index, at_s in in_order.items()]
    after = corrected(before, documents, shift_s, "ada", DURATION_S)
    assert list(after.step_at_s) == sorted(after.step_at_s)
    assert all(after.step_at_s[index] == at_s for index, at_s in in_order.items())
    assert all(0 <= at_s <= DURATION_S for at_s in after.step_at_s)


@pytest.mark.parametrize(
    "pins",
    [
        [{"step_index": 9, "at_s": 1.0}],
        [{"step_index": -1, "at_s": 1.0}],
        [{"step_index": 1, "at_s": 25.0}],
        [{"step_index": 1, "at_s": float("nan")}],
        [{"step_index": 1, "at_s": 9.0}, {"step_index": 2, "at_s": 3.0}],
    ],
)
def test_a_pin_that_fits_no_step_time_or_order_is_refused(placed: Alignment, pins: list[dict[str, float]]) -> None:
    with pytest.raises(InvalidCorrection):
        corrected(placed, pins, 0.0, "ada", DURATION_S)


def test_a_clock_is_fitted_below_late_onsets_and_past_strays() -> None:
    stamps_s = [float(3 * k) for k in range(20)]
    onsets_s = [5.0 + 1.02 * s + 0.04 + (0.5 if k % 3 == 0 else 0.0) for k, s in enumerate(stamps_s)]
    onsets_s[7] -= 2.5
    onsets_s[12] += 40.0
    fit = fit_clock(stamps_s, onsets_s)
    assert fit is not None
    assert fit.rate == pytest.approx(1.02, abs=0.001)
    assert fit.video_s(30.0, None) == pytest.approx(35.6, abs=0.05)
    assert fit_clock([1.0, None], [None, 2.0]) is None


def example_runs() -> list[Path]:
    return sorted(path.parent for path in RUNS.rglob("truth.json"))


@cache
def watched(folder: Path) -> tuple[VideoInfo, list[tuple[float, Grey]]]:
    video = folder / "recording.mp4"
    return probe(video), [(at_s, grey.copy()) for at_s, grey in grey_frames(video)]


def recorder_errors_s(alignment: Alignment, folder: Path) -> NDArray[np.float64]:
    truth = json.loads((folder / "truth.json").read_text())
    errors: NDArray[np.float64] = np.abs(np.subtract(alignment.step_at_s, truth["action_at_s"]))
    return errors


def restamped(run: Trajectory, offset_s: float, rate: float, grain_s: float | None) -> Trajectory:
    steps = []
    for step in run.steps:
        assert step.stamp_s is not None
        stamp_s = offset_s + rate * step.stamp_s
        steps.append(
            replace(step, stamp_s=float(floor(stamp_s)), stamp_resolution_s=grain_s)
            if grain_s
            else replace(step, stamp_s=stamp_s)
        )
    return replace(run, steps=tuple(steps))


@pytest.mark.skipif(not example_runs(), reason="no example runs here")
@pytest.mark.parametrize("folder", example_runs(), ids=lambda folder: folder.name)
def test_the_example_runs_are_placed_as_the_recorder_logged(folder: Path) -> None:
    video, greys = watched(folder)
    alignment = align(osworld.read(folder), video, frames=iter(greys))
    assert recorder_errors_s(alignment, folder).max() <= 0.2


@pytest.mark.long
@pytest.mark.parametrize("folder", example_runs(), ids=lambda folder: folder.name)
def test_example_runs_with_coarse_or_drifting_stamps_are_placed(folder: Path) -> None:
    video, greys = watched(folder)
    run = osworld.read(folder)
    for offset_s in (0.0, 0.37, 0.81):
        coarse = align(restamped(run, offset_s, 1.0, 1.0), video, frames=iter(greys))
        assert recorder_errors_s(coarse, folder).max() <= 1.0
    for rate in (1.02, 1 / 1.02):
        drifting = align(restamped(run, 7.3, rate, None), video, frames=iter(greys))
        assert recorder_errors_s(drifting, folder).max() <= 0.2


@pytest.mark.skipif(not CASES.is_dir(), reason="no real cases here")
def test_screenshots_of_a_real_recorder_are_found_before_their_actions() -> None:
    begins_s = [7.02, 9.07, 10.38, 15.75, 23.71, 27.52, 30.11, 33.45, 37.21, 41.68, 46.64, 108.39, 110.75, 115.38]
    ends_s = [at_s + 0.4 for at_s in begins_s]
    ends_s[3], ends_s[5] = 20.08, 28.69
    (video,) = (CASES / "agentnet" / "raw_recorder").glob("*.mp4")
    images = CASES / "agentnet" / "jsonl_15steps" / "images"
    pictures = np.stack([grey_picture(open_picture(images / f"{index}.png")) for index in range(15)])
    matches = find_pictures(pictures, grey_frames(video))
    for match, after_s, before_s in zip(matches, [0.0, *ends_s], [*begins_s, 122.7], strict=True):
        assert match.clear
        assert after_s - 0.2 <= match.at_s <= before_s + 0.2
