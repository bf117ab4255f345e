"""What is found in a video file, and the picture at a time."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from clips import barcode, constant_times, number_of, variable_times, write_clip
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from reviewer import media
from reviewer.media import Clock, FrameSource, MediaError, grey_frames, grey_picture, open_picture, picture_at, probe
from reviewer.trajectory import Observation, Trajectory

RATES = [6, 30, 60]


def middles(clock: Clock, duration_s: float) -> list[float]:
    edges_s = [clock.time_of(index) for index in range(len(clock))] + [duration_s]
    return [(before + after) / 2 for before, after in pairwise(edges_s)]


@pytest.mark.parametrize("rate", RATES)
def test_a_constant_rate_is_kept_as_one_fraction(tmp_path: Path, rate: int) -> None:
    info = probe(write_clip(tmp_path / "a.mp4", constant_times(rate, 20), fps=rate))
    assert info.clock == Clock(1, rate, 20)
    assert info.duration_s == pytest.approx(20 / rate, abs=0.001)


def test_a_variable_rate_keeps_every_time(tmp_path: Path) -> None:
    times_s = variable_times(30)
    info = probe(write_clip(tmp_path / "a.mp4", times_s, last_s=0.4))
    assert info.clock.pts_s == pytest.approx(times_s, abs=0.0001)
    assert info.duration_s == pytest.approx(times_s[-1] + 0.4, abs=0.001)


def test_a_late_first_picture_moves_to_zero(tmp_path: Path) -> None:
    info = probe(write_clip(tmp_path / "a.mkv", constant_times(10, 12, start_s=1.4)))
    assert info.start_s == pytest.approx(1.4, abs=0.002)
    assert info.clock.time_of(0) == 0
    assert info.clock.time_of(11) == pytest.approx(1.1, abs=0.002)
    assert "not at 0" in info.proxy_reason or "container" in info.proxy_reason


@pytest.mark.parametrize("times_s", [*(constant_times(rate, 40) for rate in RATES), variable_times(40, start_s=1.4)])
def test_the_picture_at_a_time_is_the_one_shown_then(tmp_path: Path, times_s: list[float]) -> None:
    path = write_clip(tmp_path / "a.mkv", times_s, key_frame_every=7)
    info = probe(path)
    for number, at_s in enumerate(middles(info.clock, info.duration_s)):
        assert number_of(picture_at(path, at_s)) == number
    assert number_of(picture_at(path, -5.0)) == 0
    assert number_of(picture_at(path, 1e6)) == 39
    assert number_of(picture_at(path, info.clock.time_of(17))) == 17


@given(st.integers(1, 200), st.integers(1, 120), st.floats(-1, 300))
def test_index_and_time_of_a_clock_agree(count: int, rate: int, at_s: float) -> None:
    constant = Clock(1, rate, count)
    listed = Clock(pts_s=tuple(constant.time_of(index) for index in range(count)))
    for clock in (constant, listed):
        assert len(clock) == count
        assert [clock.index_at(clock.time_of(index)) for index in range(count)] == list(range(count))
        assert Clock.from_json(json.loads(json.dumps(clock.to_json()))) == clock
    assert abs(constant.index_at(at_s) - listed.index_at(at_s)) <= 1
    with pytest.raises(IndexError):
        constant.time_of(count)


def test_a_plain_h264_file_with_dense_key_frames_may_be_served(tmp_path: Path) -> None:
    info = probe(write_clip(tmp_path / "a.mp4", constant_times(30, 60), key_frame_every=15))
    assert info.proxy_reason == ""


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("a.mkv", {}, "container"),
        ("a.mp4", {"codec": "mpeg4"}, "codec mpeg4"),
        ("a.mp4", {"pixels": "yuv444p"}, "profile"),
        ("a.mp4", {"key_frame_every": 250}, "more than 1 s apart"),
        ("a.mp4", {"sample_aspect": Fraction(3, 2)}, "not square"),
        ("a.mp4", {"with_sound": True}, "sound"),
    ],
)
def test_what_a_browser_may_not_play_or_seek_is_named(
    tmp_path: Path, name: str, options: dict[str, object], reason: str
) -> None:
    path = write_clip(tmp_path / name, constant_times(30, 60), **{"key_frame_every": 15, **options})  # type: ignore[arg-type]
    assert reason in probe(path).proxy_reason


def test_pixels_that_are_not_square_widen_the_picture(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", constant_times(10, 5), sample_aspect=Fraction(3, 2))
    info = probe(path)
    assert (info.width_px, info.height_px) == (288, 96)
    assert picture_at(path, 0.25).size == (288, 96)
    assert number_of(picture_at(path, 0.25)) == 2


def test_damage_inside_a_file_that_could_be_served_is_found(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", constant_times(30, 90), key_frame_every=15)
    with av.open(str(path)) as container:
        packet = list(container.demux(video=0))[40]
    content = bytearray(path.read_bytes())
    content[packet.pos : packet.pos + packet.size] = bytes(packet.size)
    path.write_bytes(content)
    assert probe(path).proxy_reason == "Some of its pictures are damaged"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.mp4", b"", "is empty"),
        ("words.mp4", b"These are words, not pictures.\n" * 40, "this is no video"),
        ("list.mp4", b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n", "this is no video"),
        ("noise.mp4", bytes(range(256)) * 20, "this is no video"),
    ],
)
def test_what_is_no_video_is_refused_by_name(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(MediaError, match=message) as refusal:
        probe(path)
    assert name in str(refusal.value)
    with pytest.raises(MediaError):
        picture_at(path, 0.0)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"gone\.mp4"):
        probe(tmp_path / "gone.mp4")


def test_a_recording_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", constant_times(30, 60))
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(MediaError, match="cut off"):
        probe(path)


def test_grey_frames_have_all_times_and_look_like_the_picture(tmp_path: Path) -> None:
    times_s = variable_times(12, start_s=1.4)
    path = write_clip(tmp_path / "a.mkv", times_s)
    frames = list(grey_frames(path))
    assert [at_s for at_s, _ in frames] == pytest.approx([at_s - 1.4 for at_s in times_s], abs=0.001)
    for number, (_, grey) in enumerate(frames):
        expected = grey_picture(Image.fromarray(barcode(number)))
        assert (grey.shape, grey.dtype) == ((90, 160), np.uint8)
        assert np.abs(expected.astype(int) - grey).mean() < 3


def test_frames_of_a_run_come_from_its_screenshots_and_its_video(tmp_path: Path) -> None:
    Image.fromarray(barcode(5)).save(tmp_path / "shot.png")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    video = write_clip(tmp_path / "a.mp4", constant_times(10, 10))
    paths = (tmp_path / "shot.png", None, tmp_path / "broken.png", tmp_path / "gone.png")
    observations = tuple(Observation(index, path) for index, path in enumerate(paths))
    run = Trajectory("0" * 16, "test", "run", "task", (), observations, video_path=video)
    frames = FrameSource(run)
    shot = frames.observation(0)
    assert shot is not None and number_of(shot) == 5
    assert [frames.observation(index) for index in (1, 2, 3)] == [None, None, None]
    assert number_of(frames.at(0.75)) == 7
    without = Trajectory("0" * 16, "test", "run", "task", (), observations)
    with pytest.raises(MediaError, match="no video"):
        FrameSource(without).at(0.0)


def test_a_picture_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviewer.media.MAX_PICTURE_PX", 1000)
    Image.new("RGB", (100, 100)).save(tmp_path / "large.png")
    with pytest.raises(MediaError, match=r"large\.png: the picture is 100x100"):
        open_picture(tmp_path / "large.png")
    video = write_clip(tmp_path / "large.mp4", constant_times(10, 3))
    with pytest.raises(MediaError, match=r"large\.mp4: the pictures are 192x96"):
        probe(video)


def test_a_file_is_decoded_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_clip(tmp_path / "a.mp4", count=10)
    monkeypatch.chdir(tmp_path)
    found = probe(path)
    times = path.stat()
    with monkeypatch.context() as patched:
        patched.setattr(media, "open_video", None)
        assert probe(path) == found
        assert probe(Path("a.mp4")) == replace(found, path=Path("a.mp4"))
    write_clip(path, count=20)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert len(probe(path).clock) == 20
    path.unlink()
    with pytest.raises(MediaError, match="no such file"):
        probe(path)
