from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from reviewer.alignment import Alignment
from reviewer.judges import Cancelled, Judgement
from reviewer.judges.screen_changes import Act, ChangeKind, ChangeSettings, compare
from reviewer.judges.screen_rules import RuleSettings, ScreenRules
from reviewer.media import FrameSource
from reviewer.trajectory import Action, ActionKind, CoordinateSpace, Observation, Point, Step, Trajectory

WIDTH_PX, HEIGHT_PX = 640, 360
CLICK = ActionKind.CLICK
Draw = Callable[[ImageDraw.ImageDraw], object]


def screen(*draws: Draw) -> Image.Image:
    """A desktop with a bar, a window and some text, and whatever is drawn on top."""
    picture = Image.new("RGB", (WIDTH_PX, HEIGHT_PX), (236, 240, 244))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, WIDTH_PX, 17), fill=(40, 44, 52))
    draw.rectangle((60, 50, 580, 320), fill="white", outline=(120, 120, 120))
    draw.text((80, 70), "Invoices of March", fill="black")
    for further in draws:
        further(draw)
    return picture


def letter(x: int, y: int, text: str = "a") -> Draw:
    return lambda draw: draw.text((x, y), text, fill=(30, 30, 30))


def box(x: int, y: int, width: int, height: int, fill: str = "black") -> Draw:
    return lambda draw: draw.rectangle((x, y, x + width - 1, y + height - 1), fill=fill)


def arrow(x: int, y: int) -> Draw:
    tip = [(x, y), (x, y + 13), (x + 3, y + 10), (x + 8, y + 9)]
    return lambda draw: draw.polygon(tip, fill="black", outline="black")


def pixel(x: float, y: float) -> Point:
    return Point(x, y, CoordinateSpace.PIXEL, WIDTH_PX, HEIGHT_PX)


def click(x: float = 300, y: float = 200, kind: ActionKind = CLICK) -> Action:
    return Action(kind, (pixel(x, y),))


def typed(text: str) -> Action:
    return Action(ActionKind.TYPE, text=text)


def key(*keys: str) -> Action:
    return Action(ActionKind.KEY, keys=keys)


DONE = Action(ActionKind.FINISH)
WAIT = Action(ActionKind.WAIT, duration_s=1.0)


class Runs:
    """Makes runs whose pictures lie in a folder, and judges them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, actions: Sequence[Action], screens: Sequence[Image.Image | None]) -> Trajectory:
        """A run with one action per step; ``screens[i]`` is what is seen before step i."""
        assert len(screens) == len(actions) + 1
        observations = [self._observation(i, picture) for i, picture in enumerate(screens)]
        steps = tuple(Step(i, (action,)) for i, action in enumerate(actions))
        return Trajectory("0" * 16, "test", str(self.folder), "a task", steps, tuple(observations))

    def judge(
        self,
        actions: Sequence[Action],
        screens: Sequence[Image.Image | None],
        alignment: Alignment | None = None,
        video_path: Path | None = None,
    ) -> Judgement:
        run = replace(self.run(actions, screens), video_path=video_path)
        return judged(run, alignment)

    def _observation(self, index: int, picture: Image.Image | None) -> Observation:
        if picture is None:
            return Observation(index)
        path = self.folder / f"{index}.png"
        picture.save(path)
        return Observation(index, path, *picture.size)


def judged(run: Trajectory, alignment: Alignment | None = None) -> Judgement:
    return ScreenRules().run(run, FrameSource(run), alignment, lambda done, total, message: None)


def wrong(judgement: Judgement) -> list[int]:
    assert all(label.label == "-" and label.reason for label in judgement.step_labels)
    return [label.step_index for label in judgement.step_labels]


def write_video(path: Path, shown: Sequence[tuple[Image.Image, float]]) -> Path:
    """A video at 10 pictures a second that shows each screen for so many seconds."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(10))
        stream.width, stream.height, stream.pix_fmt = WIDTH_PX, HEIGHT_PX, "yuv420p"
        for picture, seconds in shown:
            for _ in range(round(10 * seconds)):
                container.mux(stream.encode(av.VideoFrame.from_image(picture)))
        container.mux(stream.encode())
    return path


def aligned(*step_at_s: float, weak: bool = False, residual_s: float | None = 0.0) -> Alignment:
    count = len(step_at_s)
    return Alignment.from_json(
        {
            "version": 1,
            "author": "automatic",
            "created_utc": "2026-01-01T00:00:00+00:00",
            "method": "stamps",
            "step_at_s": step_at_s,
            "step_weak": [weak] * count,
            "step_residual_s": [residual_s] * count,
            "observation_at_s": [*step_at_s, step_at_s[-1] + 1],
            "idle": [],
            "placements": None,
        }
    )


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def test_a_click_that_changes_nothing_is_wrong_with_its_evidence(runs: Runs) -> None:
    judgement = runs.judge([click(), click(100, 100), DONE], [screen(), screen(), screen(box(90, 90, 40, 20)), None])
    assert wrong(judgement) == [0]
    assert judgement.step_labels[0].reason == (
        "the screenshots before and after this click are the same (0 pixels changed)"
    )
    assert judgement.outcome is None
    assert "step 2 (click): screenshots changed: 800 pixels changed (0.35%)" in judgement.raw


@pytest.mark.parametrize(
    "action",
    [
        click(kind=ActionKind.DOUBLE_CLICK),
        click(kind=ActionKind.RIGHT_CLICK),
        Action(ActionKind.DRAG, (pixel(100, 100), pixel(200, 200))),
        Action(ActionKind.SCROLL, (pixel(300, 200),), scroll_y=5),
        typed("hello"),
        key("enter"),
        key("ctrl", "v"),
        key("delete"),
    ],
)
def test_every_kind_of_action_that_should_show_is_wrong_when_nothing_does(runs: Runs, action: Action) -> None:
    assert wrong(runs.judge([action, DONE], [screen(), screen(), screen()])) == [0]


@pytest.mark.parametrize(
    "action",
    [
        WAIT,
        DONE,
        Action(ActionKind.ANSWER, text="42"),
        Action(ActionKind.FAIL),
        Action(ActionKind.MOVE, (pixel(9, 9),)),
        Action(ActionKind.SCREENSHOT),
        Action(ActionKind.CODE, text="print()"),
        Action(ActionKind.OTHER),
        Action(ActionKind.HOLD, keys=("shift",)),
        Action(ActionKind.OPEN_APP, text="Clock"),
        key("ctrl", "c"),
        key("ctrl", "s"),
        key("Command", "C"),
        key("esc"),
        key("shift"),
        typed("  "),
        typed(""),
        Action(ActionKind.TYPE),
        key(),
    ],
)
def test_actions_that_need_not_show_get_no_label(runs: Runs, action: Action) -> None:
    assert wrong(runs.judge([action, DONE], [screen(), screen(), screen()])) == []


@pytest.mark.parametrize("effect", [letter(200, 200), letter(200, 200, "."), box(70, 60, 400, 1), box(60, 50, 1, 60)])
def test_one_letter_or_one_line_is_an_effect(runs: Runs, effect: Draw) -> None:
    for action in (typed("a"), click(), key("tab")):
        assert wrong(runs.judge([action, DONE], [screen(), screen(effect), None])) == []


def test_a_faint_highlight_is_an_effect(runs: Runs) -> None:
    selected = screen(box(61, 100, 500, 20, fill="#e8f0fe"))
    assert wrong(runs.judge([click(), DONE], [screen(), selected, None])) == []


def test_compression_noise_is_no_effect(runs: Runs) -> None:
    noise = np.random.default_rng(1).integers(-6, 7, (HEIGHT_PX, WIDTH_PX, 3))
    noisy = Image.fromarray(np.clip(np.asarray(screen()).astype(int) + noise, 0, 255).astype(np.uint8))
    assert wrong(runs.judge([click(), DONE], [screen(), noisy, None])) == [0]


def test_a_text_cursor_that_goes_out_is_no_effect_of_a_click_but_may_be_one_of_typing(runs: Runs) -> None:
    cursor = screen(box(200, 200, 1, 14))
    assert wrong(runs.judge([click(), DONE], [cursor, screen(), None])) == [0]
    assert wrong(runs.judge([typed("l"), DONE], [cursor, screen(), None])) == []


def test_a_text_cursor_that_appears_may_be_the_focus_the_click_asked_for(runs: Runs) -> None:
    judgement = runs.judge([click(), DONE], [screen(), screen(box(200, 200, 1, 14)), None])
    assert wrong(judgement) == []
    assert "it may be a blinking text cursor" in judgement.raw


def test_a_text_cursor_that_moves_is_an_effect(runs: Runs) -> None:
    here, there = screen(box(200, 200, 1, 14)), screen(box(300, 200, 1, 14))
    assert wrong(runs.judge([key("right"), DONE], [here, there, None])) == []


def test_a_clock_in_the_bar_is_no_effect_of_a_click_elsewhere(runs: Runs) -> None:
    noon, later = (screen(lambda draw, t=text: draw.text((600, 3), t, fill="white")) for text in ("12:00", "12:01"))
    assert wrong(runs.judge([click(300, 200), DONE], [noon, later, None])) == [0]
    assert wrong(runs.judge([click(605, 8), DONE], [noon, later, None])) == []
    assert wrong(runs.judge([typed("x"), DONE], [noon, later, None])) == []


def test_the_drawn_pointer_that_moved_is_no_effect(runs: Runs) -> None:
    opened = screen(box(100, 100, 50, 50), arrow(400, 150))
    moved = screen(box(100, 100, 50, 50), arrow(300, 200))
    judgement = runs.judge([click(400, 150), click(300, 200), DONE], [screen(), opened, moved, None])
    assert wrong(judgement) == [1]
    assert "the pointer that moved" in judgement.step_labels[0].reason


def test_a_dot_that_moves_from_one_radio_button_to_another_is_an_effect(runs: Runs) -> None:
    def dot(x: int, y: int) -> Draw:
        return lambda draw: draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill="black")

    first, second = screen(dot(300, 150)), screen(dot(300, 200))
    assert wrong(runs.judge([click(300, 150), click(300, 200), DONE], [screen(), first, second, None])) == []


def test_a_check_mark_at_the_place_clicked_is_an_effect(runs: Runs) -> None:
    assert wrong(runs.judge([click(300, 200), DONE], [screen(), screen(box(296, 196, 8, 8)), None])) == []


def test_an_effect_that_comes_while_waiting_excuses_the_click(runs: Runs) -> None:
    late = screen(box(100, 100, 200, 100))
    judgement = runs.judge([click(), WAIT, DONE], [screen(), screen(), late, None])
    assert wrong(judgement) == []
    assert "its effect may have come during step 2" in judgement.raw
    assert wrong(runs.judge([click(), WAIT, DONE], [screen(), screen(), screen(), None])) == [0]


def test_a_click_before_typing_that_works_may_have_placed_the_focus(runs: Runs) -> None:
    judgement = runs.judge([click(), typed("a"), DONE], [screen(), screen(), screen(letter(200, 200)), None])
    assert wrong(judgement) == []
    assert "it may have placed the focus for step 2" in judgement.raw


def test_missing_pictures_give_no_label(runs: Runs) -> None:
    judgement = runs.judge([click(), click(), click(), DONE], [None, screen(), None, None, None])
    assert wrong(judgement) == []
    assert judgement.raw.count("no pictures to compare") == 4


def test_a_picture_that_cannot_be_read_counts_as_missing(runs: Runs) -> None:
    run = runs.run([click(), DONE], [screen(), screen(), None])
    path = run.observations[1].path
    assert path is not None
    path.write_bytes(b"\x89PNG\r\n")
    assert wrong(judged(run)) == []
    path.unlink()
    assert wrong(judged(run)) == []


@pytest.mark.parametrize("size_px", [(1, 1), (1, 400), (31, 31)])
def test_pictures_too_small_to_judge_give_no_label(runs: Runs, size_px: tuple[int, int]) -> None:
    tiny = Image.new("RGB", size_px)
    assert wrong(runs.judge([click(), DONE], [tiny, tiny, tiny])) == []


def test_pictures_of_one_colour_give_no_label(runs: Runs) -> None:
    black = Image.new("RGB", (WIDTH_PX, HEIGHT_PX))
    assert wrong(runs.judge([click(), DONE], [black, black, black])) == []


def test_a_screen_of_another_size_is_an_effect(runs: Runs) -> None:
    turned = screen().rotate(90, expand=True)
    assert wrong(runs.judge([click(), DONE], [screen(), turned, None])) == []


def test_the_same_click_on_the_same_screen_three_times_is_a_loop(runs: Runs) -> None:
    actions = [click(100, 100), click(), click(301, 200), WAIT, click(), click(50, 50), DONE]
    changed, after = screen(box(90, 90, 20, 20)), screen(box(40, 40, 20, 20))
    judgement = runs.judge(actions, [screen(), *[changed] * 5, after, None])
    assert wrong(judgement) == [1, 2, 4]
    loop = "the same click at the same place with the same screen, 3 times in a row (steps 2-5)"
    assert all(loop in label.reason for label in judgement.step_labels)
    assert judgement.outcome is None
    assert [(span.start_s, span.end_s) for span in judgement.spans] == [(1.0, 5.0)]
    assert judgement.spans[0].reason.startswith("steps 2-5: ")


def test_the_last_click_of_a_loop_may_have_worked(runs: Runs) -> None:
    judgement = runs.judge([click(), click(), click(), DONE], [*[screen()] * 3, screen(letter(300, 300)), None])
    assert wrong(judgement) == [0, 1]


@pytest.mark.parametrize("other", [click(340, 200), click(kind=ActionKind.RIGHT_CLICK), Action(CLICK)])
def test_different_clicks_are_no_loop(runs: Runs, other: Action) -> None:
    judgement = runs.judge([click(), other, click(), DONE], [screen()] * 5)
    assert wrong(judgement) == [0, 1, 2]
    assert not any("in a row" in label.reason for label in judgement.step_labels)


def test_the_same_click_on_changing_screens_is_no_loop(runs: Runs) -> None:
    screens = [screen(letter(200, 100 + 20 * i)) for i in range(5)]
    assert wrong(runs.judge([click(), click(), click(), DONE], screens)) == []


def test_repeated_waiting_and_copying_is_no_loop(runs: Runs) -> None:
    assert wrong(runs.judge([WAIT] * 4 + [key("ctrl", "s")] * 4 + [DONE], [screen()] * 10)) == []


def test_a_run_that_ends_in_a_loop_is_incorrect(runs: Runs) -> None:
    judgement = runs.judge([click(), click(), click(), DONE], [screen()] * 5)
    assert judgement.outcome == "incorrect"
    assert "outcome incorrect: the run ends in a loop (steps 1-3)" in judgement.raw


def test_an_aim_outside_the_screen_is_wrong_even_without_a_change(runs: Runs) -> None:
    changed = screen(letter(200, 200))
    judgement = runs.judge([click(832, 200), click(-64, 720), DONE], [screen(), changed, screen(), None])
    assert [label.reason for label in judgement.step_labels] == [
        "the click aims outside the screen (x = 1.30 of its width)",
        "the click aims outside the screen (x = -0.10 of its width, y = 2.00 of its height)",
    ]


@pytest.mark.parametrize(
    "point",
    [
        pixel(0, 0),
        pixel(WIDTH_PX, HEIGHT_PX),
        pixel(math.nan, 5),
        pixel(math.inf, 5),
        Point(3, 3, CoordinateSpace.PIXEL, 0, 0),
        Point(3, 3, CoordinateSpace.FRACTION, math.nan, 1),
        Point(3, 3, CoordinateSpace.UNKNOWN, 1, 1),
    ],
)
def test_points_on_the_edge_or_without_a_meaning_are_not_outside(runs: Runs, point: Point) -> None:
    changed = screen(letter(200, 200))
    assert wrong(runs.judge([Action(CLICK, (point,)), DONE], [screen(), changed, None])) == []


def test_pixels_are_not_called_outside_where_no_picture_tells_the_size(runs: Runs) -> None:
    assert wrong(runs.judge([click(9999, 5), DONE], [None, None, None])) == []
    grid = Action(CLICK, (Point(1200, 500, CoordinateSpace.GRID, 1000, 1000),))
    assert wrong(runs.judge([grid, DONE], [None, None, None])) == [0]


def test_a_run_that_stops_without_a_word_is_incorrect_but_its_last_step_is_not_blamed(runs: Runs) -> None:
    judgement = runs.judge([click(), WAIT], [screen(), screen(letter(200, 200)), screen(letter(200, 200))])
    assert judgement.outcome == "incorrect"
    assert wrong(judgement) == []
    assert "outcome incorrect: the run stops without the agent saying it is done" in judgement.raw


def test_giving_up_is_incorrect(runs: Runs) -> None:
    judgement = runs.judge([Action(ActionKind.FAIL)], [screen(), screen()])
    assert judgement.outcome == "incorrect"
    assert "the agent gives up in step 1" in judgement.raw


@pytest.mark.parametrize("last", [DONE, Action(ActionKind.ANSWER, text="yes")])
def test_a_run_that_finishes_gets_no_outcome(runs: Runs, last: Action) -> None:
    assert runs.judge([click(), last], [screen(), screen(letter(200, 200)), None]).outcome is None


def test_steps_of_which_nothing_is_understood_give_no_outcome(runs: Runs) -> None:
    assert runs.judge([Action(ActionKind.OTHER)] * 2, [screen()] * 3).outcome is None


def test_a_run_without_steps_is_left_alone(runs: Runs, tmp_path: Path) -> None:
    video = write_video(tmp_path / "v.mp4", [(screen(), 1)])
    judgement = runs.judge([], [None], video_path=video)
    assert (judgement.outcome, judgement.step_labels, judgement.spans) == (None, (), ())
    assert "no steps" in judgement.raw


def test_nothing_visible_in_the_video_is_wrong_with_the_seconds_looked_at(runs: Runs, tmp_path: Path) -> None:
    changed = screen(box(100, 100, 60, 30))
    video = write_video(tmp_path / "v.mp4", [(screen(), 4.0), (changed, 3.0)])
    alignment = aligned(1.0, 3.8, 6.0)
    judgement = runs.judge([click(), click(100, 100), DONE], [None] * 4, alignment, video)
    assert wrong(judgement) == [0]
    assert judgement.step_labels[0].reason.startswith("the screen did not change within 2.0 s of this click (")
    [span] = judgement.spans
    assert judgement.frame_plan is not None
    assert [judgement.frame_plan.to_video_s(edge) for edge in (span.start_s, span.end_s)] == [1.0, 3.8]


def test_a_step_soon_after_cuts_the_time_looked_at_short(runs: Runs, tmp_path: Path) -> None:
    video = write_video(tmp_path / "v.mp4", [(screen(), 5.0)])
    judgement = runs.judge([click(), click(9, 9), DONE], [None] * 4, aligned(1.0, 2.0, 2.2), video)
    assert wrong(judgement) == [0]
    assert "in the 0.9 s between this click and the next step" in judgement.step_labels[0].reason


def test_a_change_seen_only_in_the_video_is_an_effect(runs: Runs, tmp_path: Path) -> None:
    flash = screen(box(100, 100, 200, 100))
    video = write_video(tmp_path / "v.mp4", [(screen(), 1.2), (flash, 0.5), (screen(), 3.0)])
    actions, screens = [click(), DONE], [screen(), screen(), None]
    assert wrong(runs.judge(actions, screens, aligned(1.0, 4.0), video)) == []
    assert wrong(runs.judge(actions, screens)) == [0]


@pytest.mark.parametrize("alignment", [aligned(1.0, 4.0, weak=True), aligned(1.0, 4.0, residual_s=0.9), None])
def test_where_a_step_stands_in_the_video_is_only_estimated_the_screenshots_count(
    runs: Runs, tmp_path: Path, alignment: Alignment | None
) -> None:
    video = write_video(tmp_path / "v.mp4", [(screen(), 5.0)])
    assert wrong(runs.judge([click(), DONE], [None] * 3, alignment, video)) == []
    judgement = runs.judge([click(), DONE], [screen(), screen(), None], alignment, video)
    assert wrong(judgement) == [0]
    assert judgement.step_labels[0].reason.startswith("the screenshots before and after")


def test_an_alignment_of_another_number_of_steps_is_not_used(runs: Runs, tmp_path: Path) -> None:
    video = write_video(tmp_path / "v.mp4", [(screen(), 3.0)])
    judgement = runs.judge([click(), DONE], [screen(), screen(), None], aligned(1.0), video)
    assert (wrong(judgement), judgement.frame_plan) == ([0], None)


def test_a_text_cursor_seen_blinking_in_the_video_does_not_overrule_the_screenshots(runs: Runs, tmp_path: Path) -> None:
    cursor = screen(box(200, 200, 1, 14))
    video = write_video(tmp_path / "v.mp4", [(screen(), 1.2), (cursor, 0.5), (screen(), 0.5), (cursor, 2.0)])
    judgement = runs.judge([click(), DONE], [screen(), screen(), None], aligned(1.0, 4.0), video)
    assert wrong(judgement) == [0]
    assert judgement.step_labels[0].reason.startswith("the screenshots before and after")


def test_without_an_alignment_a_video_gives_no_span(runs: Runs, tmp_path: Path) -> None:
    video = write_video(tmp_path / "v.mp4", [(screen(), 3.0)])
    judgement = runs.judge([click(), DONE], [screen(), screen(), None], None, video)
    assert (wrong(judgement), judgement.spans, judgement.frame_plan) == ([0], (), None)


def test_a_damaged_video_leaves_the_screenshots(runs: Runs, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    judgement = runs.judge([click(), DONE], [screen(), screen(), None], aligned(1.0, 4.0), broken)
    assert wrong(judgement) == [0]


def test_a_span_of_the_last_step_ends_with_the_video(runs: Runs, tmp_path: Path) -> None:
    video = write_video(tmp_path / "v.mp4", [(screen(), 6.0)])
    judgement = runs.judge([click(), click(9, 9)], [screen()] * 3, aligned(1.0, 2.0), video)
    [span] = judgement.spans
    assert judgement.frame_plan is not None
    assert [judgement.frame_plan.to_video_s(edge) for edge in (span.start_s, span.end_s)] == pytest.approx([1.0, 6.0])


def test_progress_can_stop_the_work(runs: Runs) -> None:
    run = runs.run([click(), click(), DONE], [screen()] * 4)
    calls: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None, message: str) -> None:
        calls.append((done, total))
        if done == 1:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        ScreenRules().run(run, FrameSource(run), None, progress)
    assert calls == [(0, 3), (1, 3)]


def test_fingerprint_changes_with_any_threshold() -> None:
    fingerprints = {
        ScreenRules(settings).fingerprint
        for settings in (
            RuleSettings(),
            RuleSettings(effect_window_s=3.0),
            RuleSettings(changes=ChangeSettings(level=20)),
        )
    }
    assert len(fingerprints) == 3
    assert ScreenRules().fingerprint == ScreenRules(RuleSettings()).fingerprint


def test_five_hundred_steps_take_well_under_a_minute(runs: Runs) -> None:
    run = runs.run([click(), DONE], [screen(), screen(letter(200, 200)), None])
    steps = tuple(Step(i, (click(),)) for i in range(500))
    observations = tuple(replace(run.observations[i % 2], index=i) for i in range(501))
    long = replace(run, steps=steps, observations=observations)
    started_s = time.monotonic()
    assert wrong(judged(long)) == []
    assert time.monotonic() - started_s < 60


KINDS = st.sampled_from(list(ActionKind))
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=32)
POINTS = st.builds(Point, NUMBERS, NUMBERS, st.sampled_from(list(CoordinateSpace)), NUMBERS, NUMBERS)
ACTIONS = st.builds(
    Action,
    KINDS,
    st.lists(POINTS, max_size=2).map(tuple),
    text=st.none() | st.text(max_size=5),
    keys=st.lists(st.text(max_size=4), max_size=3).map(tuple),
)


@given(st.lists(st.lists(ACTIONS, max_size=3), max_size=6), st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_input_raises_and_no_answer_is_a_plus(runs: Runs, actions: list[list[Action]], data: st.DataObject) -> None:
    shown = data.draw(st.lists(st.sampled_from([None, screen(), Image.new("RGB", (1, 1))]), max_size=8))
    run = runs.run([], [None])
    observations = tuple(runs._observation(i, picture) for i, picture in enumerate(shown or [None]))
    steps = tuple(Step(i, tuple(group)) for i, group in enumerate(actions))
    judgement = judged(replace(run, steps=steps, observations=observations))
    assert judgement.outcome in (None, "incorrect")
    assert set(wrong(judgement)) <= set(range(len(steps)))


def test_comparing_tells_how_much_changed_and_where() -> None:
    change = compare(screen(), screen(box(100, 120, 30, 10)), Act(), ChangeSettings())
    assert (change.kind, change.changed_px, change.largest) == (ChangeKind.CHANGED, 300, (100, 120, 30, 10))
    assert str(change) == "changed: 300 pixels changed (0.13%), the largest region 30x10 at (100, 120)"
