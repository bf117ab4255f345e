"""Proxies: every picture at its own time, whatever the original was."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from clips import barcode, constant_times, number_of, variable_times, write_clip
from PIL import Image

from reviewer.media import MediaError, open_video, picture_at, pictures, probe, shown_picture, turn_of
from reviewer.proxy import make_proxy, pictures_to_proxy

CASES = Path(os.environ.get("REVIEWER_CASES", Path(__file__).parents[2] / "shared" / "cases"))
REFUSED = {
    "audio_only.mp3",
    "opus_audio_only_fragmented.mp4",
    "zero_length.webm",
    "zero_empty_stsc.mp4",
    "gen_truncated_no_moov.mp4",
    "chunk_out_of_range.mp4",
    "SOURCE.txt",
}
# Their pictures differ by more than coding loss: colours of single pixels, which 4:2:0 cannot hold.
LOOSE = {"mpeg4part2_50x50.mp4": 10.0, "hevc_10bit.mp4": 6.0}


def real_videos() -> list[Path]:
    folders = (CASES / "videos_odd", CASES / "recordings")
    found = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path for path in found if path.name not in REFUSED]


def middle_of(video: Any, index: int) -> float:
    after_s = video.clock.time_of(index + 1) if index + 1 < len(video.clock) else video.duration_s
    return float(video.clock.time_of(index) + after_s) / 2


@pytest.mark.parametrize(
    ("times_s", "name"),
    [
        (constant_times(6, 40), "a.mp4"),
        (constant_times(30, 60), "a.mkv"),
        (constant_times(60, 60), "a.mp4"),
        (variable_times(40), "a.mp4"),
        (constant_times(30, 50, start_s=1.4), "a.mp4"),
        (constant_times(25, 50, start_s=1.4), "a.ts"),
        (variable_times(40, start_s=1.4), "a.mkv"),
    ],
)
def test_every_picture_keeps_its_time(tmp_path: Path, times_s: list[float], name: str) -> None:
    source = write_clip(tmp_path / name, times_s, last_s=0.3)
    original = probe(source)
    proxy = make_proxy(original, tmp_path / "proxy.mp4")
    assert proxy.proxy_reason == ""
    assert proxy.start_s == original.start_s
    assert len(proxy.clock) == len(times_s)
    assert proxy.duration_s == pytest.approx(original.duration_s, abs=0.001)
    for number, at_s in enumerate(times_s):
        assert proxy.clock.time_of(number) == pytest.approx(at_s - times_s[0], abs=0.001)
        assert number_of(picture_at(proxy.path, middle_of(proxy, number))) == number
        assert number_of(picture_at(source, middle_of(proxy, number))) == number


def test_a_proxy_has_frequent_key_frames_no_sound_and_its_index_in_front(tmp_path: Path) -> None:
    source = write_clip(tmp_path / "a.mp4", constant_times(30, 70), with_sound=True)
    proxy = make_proxy(probe(source), tmp_path / "proxy.mp4")
    with av.open(str(proxy.path)) as container:
        assert [stream.type for stream in container.streams] == ["video"]
        keys = [index for index, packet in enumerate(container.demux(video=0)) if packet.is_keyframe]
    assert keys == [0, 15, 30, 45, 60]
    content = proxy.path.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")


def test_odd_sides_grow_by_a_pixel_that_repeats_the_edge(tmp_path: Path) -> None:
    picture = np.full((61, 101, 3), 200, np.uint8)
    source = write_clip(
        tmp_path / "a.mp4", [0.0, 0.5], [picture, picture], pixels="yuv444p", width_px=101, height_px=61
    )
    proxy = make_proxy(probe(source), tmp_path / "proxy.mp4")
    assert (proxy.width_px, proxy.height_px) == (102, 62)
    assert np.asarray(picture_at(proxy.path, 0.2)).min() > 190


def test_pixels_become_square(tmp_path: Path) -> None:
    source = write_clip(tmp_path / "a.mp4", count=5, sample_aspect=Fraction(3, 2))
    proxy = make_proxy(probe(source), tmp_path / "proxy.mp4")
    assert (proxy.width_px, proxy.height_px, proxy.proxy_reason) == (288, 96, "")
    assert number_of(picture_at(proxy.path, 0.1)) == 3


def test_the_tail_behind_a_break_is_left_out(tmp_path: Path) -> None:
    source = write_clip(tmp_path / "a.mkv", count=90, key_frame_every=10)
    source.write_bytes(source.read_bytes()[: source.stat().st_size // 2])
    proxy = make_proxy(probe(source), tmp_path / "proxy.mp4")
    assert 20 < len(proxy.clock) < 70
    assert number_of(picture_at(proxy.path, 0.51)) == 15


def test_nothing_is_left_of_a_proxy_that_was_stopped(tmp_path: Path) -> None:
    def stop(fraction: float) -> None:
        if fraction > 0.3:
            raise KeyboardInterrupt

    source = write_clip(tmp_path / "a.mp4", count=60)
    (tmp_path / "made").mkdir()
    with pytest.raises(KeyboardInterrupt):
        make_proxy(probe(source), tmp_path / "made" / "proxy.mp4", stop)
    assert list((tmp_path / "made").iterdir()) == []


def test_a_target_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    source = write_clip(tmp_path / "a.mp4", count=5)
    with pytest.raises(MediaError, match=r"proxy\.mp4"):
        make_proxy(probe(source), tmp_path / "no such folder" / "proxy.mp4")


def test_progress_grows_to_one(tmp_path: Path) -> None:
    seen: list[float] = []
    make_proxy(probe(write_clip(tmp_path / "a.mp4", count=30)), tmp_path / "proxy.mp4", seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_screenshots_stand_at_their_seconds_and_gaps_show_a_card(tmp_path: Path) -> None:
    paths: list[Path | None] = []
    for number in range(5):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(barcode(number + 1000)).save(tmp_path / f"{number}.png")
    paths[2] = None
    (tmp_path / "4.png").write_bytes(b"no picture")
    video, placements, problems = pictures_to_proxy(paths, tmp_path / "proxy.mp4")
    assert (video.width_px, video.height_px) == (192, 96)
    assert video.clock.to_json() == {"num": 1, "den": 1, "count": 5}
    assert (video.duration_s, video.proxy_reason) == (5.0, "")
    assert [number_of(picture_at(video.path, second + 0.5)) for second in (0, 1, 3)] == [1000, 1001, 1003]
    assert np.asarray(picture_at(video.path, 2.5)).mean() < 80
    assert placements == [(0.0, 0.0, 1.0, 1.0)] * 5
    assert [problem.file for problem in problems] == ["4.png"]


def test_a_picture_of_another_size_is_fitted_in_and_its_place_told(tmp_path: Path) -> None:
    paths = [tmp_path / f"{index}.png" for index in range(3)]
    for path, size in zip(paths, [(192, 96), (96, 96), (192, 96)], strict=True):
        Image.new("RGB", size, "white").save(path)
    video, placements, _ = pictures_to_proxy(paths, tmp_path / "proxy.mp4")
    assert placements[1] == (0.25, 0.0, 0.5, 1.0)
    shown = np.asarray(picture_at(video.path, 1.5).convert("L"))
    assert shown[:, 60:130].min() > 240
    assert shown[:, :40].max() < 16


def test_a_large_canvas_shrinks_to_the_limit(tmp_path: Path) -> None:
    Image.new("RGB", (2880, 1801)).save(tmp_path / "0.png")
    video, placements, _ = pictures_to_proxy([tmp_path / "0.png"], tmp_path / "proxy.mp4")
    assert (video.width_px, video.height_px) == (1920, 1202)
    assert placements[0] == pytest.approx((0, 0, 1, 1), abs=0.002)


def test_a_run_without_any_picture_still_has_its_seconds(tmp_path: Path) -> None:
    video, _, problems = pictures_to_proxy([None, None, None], tmp_path / "proxy.mp4")
    assert (video.duration_s, len(video.clock), problems) == (3.0, 3, [])
    with pytest.raises(MediaError, match="no screenshots"):
        pictures_to_proxy([], tmp_path / "none.mp4")


@pytest.mark.skipif(not CASES.is_dir(), reason="no real cases here")
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_real_files_that_are_no_video_are_refused(name: str) -> None:
    with pytest.raises(MediaError, match=name.replace(".", r"\.")):
        probe(CASES / "videos_odd" / name)


@pytest.mark.skipif(not CASES.is_dir(), reason="no real cases here")
@pytest.mark.parametrize("path", real_videos(), ids=lambda path: path.name)
def test_real_videos_are_served_as_they_are_shown(path: Path, tmp_path: Path) -> None:
    original = probe(path)
    served = make_proxy(original, tmp_path / "proxy.mp4") if original.proxy_reason else original
    assert served.proxy_reason == ""
    assert (served.width_px, served.height_px) == tuple(
        side + side % 2 for side in (original.width_px, original.height_px)
    )
    assert served.duration_s == pytest.approx(original.duration_s, abs=0.001)
    with open_video(path) as (container, stream):
        for index, frame in enumerate(pictures(container, stream)):
            if not index:
                first = frame
            assert served.clock.time_of(index) == pytest.approx(
                float((frame.pts - first.pts) * stream.time_base), abs=0.001
            )
            if index in (0, len(served.clock) // 2, len(served.clock) - 1):
                expected = np.asarray(shown_picture(frame, turn_of(stream, first)), float)
                shown = np.asarray(picture_at(served.path, middle_of(served, index)), float)
                shown = shown[: expected.shape[0], : expected.shape[1]]
                assert np.abs(shown - expected).mean() < LOOSE.get(path.name, 3.0)
        assert index + 1 == len(served.clock)
