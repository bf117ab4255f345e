"""Still stretches and what may be skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from PIL import Image, ImageDraw

from reviewer.idle import Grey, idle_stretches, stills
from reviewer.media import grey_picture

FPS = 10


def frames(seconds: float, draw: Callable[[ImageDraw.ImageDraw, float], None]) -> Iterator[tuple[float, Grey]]:
    for index in range(round(seconds * FPS)):
        screen = Image.new("RGB", (1280, 720), "#d8dce0")
        draw(ImageDraw.Draw(screen), index / FPS)
        yield index / FPS, grey_picture(screen)


def still_s(video: Iterator[tuple[float, Grey]], duration_s: float) -> list[tuple[float, float]]:
    return [(still.start_s, still.end_s) for still in stills(video, duration_s)]


def nothing(_draw: ImageDraw.ImageDraw, _at_s: float) -> None:
    return None


def caret(draw: ImageDraw.ImageDraw, at_s: float) -> None:
    if at_s % 1 < 0.5:
        draw.rectangle((400, 300, 401, 319), "black")


def minutes(draw: ImageDraw.ImageDraw, at_s: float) -> None:
    draw.text((1220, 10), "12:0" + ("4" if at_s < 2 else "5"), "black")


def window_from_2s_to_5s(draw: ImageDraw.ImageDraw, at_s: float) -> None:
    if 2 <= at_s < 5:
        draw.rectangle((300, 200, 700, 500), "white", "black")


def ticked_box_from_3s(draw: ImageDraw.ImageDraw, at_s: float) -> None:
    draw.rectangle((200, 200, 216, 216), "#2060d0" if at_s >= 3 else "white", "black")


@pytest.mark.parametrize("draw", [nothing, caret, minutes])
def test_a_caret_and_a_clock_do_not_move_the_screen(draw: Callable[[ImageDraw.ImageDraw, float], None]) -> None:
    assert still_s(frames(5, draw), 5.0) == [(0.0, 5.0)]


def test_a_window_and_a_ticked_box_do() -> None:
    assert still_s(frames(7, window_from_2s_to_5s), 7.0) == [(0.0, 2.0), (2.0, 5.0), (5.0, 7.0)]
    assert still_s(frames(5, ticked_box_from_3s), 5.0) == [(0.0, 3.0), (3.0, 5.0)]


def test_coding_noise_is_no_change() -> None:
    noise = np.random.default_rng(7)
    grey = np.full((90, 160), 128)
    video = ((index / FPS, (grey + noise.integers(-4, 5, grey.shape)).astype(np.uint8)) for index in range(40))
    assert still_s(video, 4.0) == [(0.0, 4.0)]


def test_a_video_without_pictures_has_no_stretches() -> None:
    assert still_s(iter(()), 3.0) == []


def test_only_stretches_longer_than_two_seconds_are_idle() -> None:
    assert idle_stretches([(0.0, 2.0), (2.0, 4.5), (4.5, 5.0)], None, 5.0) == ((2.0, 4.5),)


def test_the_tail_after_the_last_action_is_idle_even_where_it_moves() -> None:
    moving = [(0.0, 4.0)] + [(4.0 + k / 10, 4.1 + k / 10) for k in range(60)]
    (first, tail) = idle_stretches(moving, 4.0, 10.0)
    assert first == (0.0, 4.0)
    assert 5.0 <= tail[0] <= 6.0
    assert tail[1] == 10.0


def test_a_short_rest_after_the_last_action_is_no_tail() -> None:
    assert idle_stretches([(0.0, 1.0), (1.0, 2.5)], 1.0, 2.5) == ()
