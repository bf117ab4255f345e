"""Odd videos from the wild: each is refused with one clear message, or plays in Chromium as PyAV decodes it."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Playwright

from browser.conftest import Reviewer, Server, browsers, running
from reviewer import media

CASES = Path(os.environ.get("REVIEWER_CASES", Path(__file__).parents[3] / "shared" / "cases"))
ODD = CASES / "videos_odd"
REFUSED = {
    "audio_only.mp3",
    "opus_audio_only_fragmented.mp4",
    "zero_length.webm",
    "zero_empty_stsc.mp4",
    "gen_truncated_no_moov.mp4",
    "chunk_out_of_range.mp4",
    "SOURCE.txt",
}
PLAYABLE = sorted(path.name for path in ODD.iterdir() if path.name not in REFUSED) if ODD.is_dir() else []
GRAB = """() => {
  const video = document.querySelector('.reviewer-root').shadowRoot.querySelector('.screen video');
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
  canvas.getContext('2d').drawImage(video, 0, 0);
  const png = canvas.toDataURL('image/png').split(',')[1];
  return { png, width: video.videoWidth, height: video.videoHeight, duration: video.duration };
}"""

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not ODD.is_dir(), reason="the folder of odd videos is not here")]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, dict[str, Any]]]]:
    server = Server(tmp_path_factory.mktemp("odd") / "home")
    records = server.import_json(*sorted(ODD.iterdir()), "--task", "Play")
    with running(server):
        yield server, {Path(record["source"]).name: record for record in records}


def test_only_what_holds_no_pictures_is_refused_with_one_message_each(
    imported: tuple[Server, dict[str, dict[str, Any]]],
) -> None:
    _, records = imported
    assert set(records) == {path.name for path in ODD.iterdir()}
    refused = {name for name, record in records.items() if record["id"] is None}
    assert refused == REFUSED
    for name in refused:
        [problem] = records[name]["problems"]
        assert name in problem["file"] + problem["message"]


def decoded(path: Path) -> list[tuple[float, NDArray[np.float64]]]:
    """The first, middle and last picture that PyAV decodes, small and grey, with seconds from the first on."""
    pictures: list[tuple[int, NDArray[np.float64]]] = []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except av.FFmpegError:
                continue
            for frame in frames:
                if not pictures or frame.pts > pictures[-1][0]:
                    pictures.append((frame.pts, small(upright(frame))))
        chosen = [pictures[0], pictures[len(pictures) // 2], pictures[-1]]
        return [(float((pts - pictures[0][0]) * stream.time_base), picture) for pts, picture in chosen]


def upright(frame: Any) -> Image.Image:
    # A damaged file may state an angle that means nothing.
    turn = frame.rotation if abs(frame.rotation) in (90, 180, 270) else 0
    image: Image.Image = frame.to_image().rotate(turn, expand=True)
    return image


def small(picture: Image.Image) -> NDArray[np.float64]:
    return np.asarray(picture.convert("L").resize((64, 64)), dtype=np.float64)


@pytest.fixture(scope="module")
def player(
    imported: tuple[Server, dict[str, dict[str, Any]]],
    playwright_driver: Playwright,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Reviewer]:
    with browsers(playwright_driver) as start:
        reviewer = Reviewer(start(tmp_path_factory.mktemp("profile")).new_page(), imported[0])
        reviewer.goto()
        yield reviewer
        assert reviewer.errors == []


def even(length_px: int) -> int:
    """H.264 has even sides: an odd one is padded by one pixel."""
    return length_px + length_px % 2


@pytest.mark.parametrize("name", PLAYABLE)
def test_it_plays_as_pyav_decodes_it(
    name: str, imported: tuple[Server, dict[str, dict[str, Any]]], player: Reviewer
) -> None:
    server, records = imported
    record = records[name]
    info = media.probe(ODD / name)
    detail = server.get(f"api/trajectories/{record['id']}", player.name)
    for place, (at_s, wanted) in zip(("first", "middle", "last"), decoded(ODD / name), strict=True):
        player.jump(f"?id={record['id']}&t={at_s + 1e-4}")
        player.wait_open(record["id"])
        shown = player.page.evaluate(GRAB)
        picture = small(Image.open(BytesIO(base64.b64decode(shown["png"]))))
        assert np.abs(picture - wanted).mean() < 6.0, f"the {place} picture differs"
    size = (record["video"]["width"], record["video"]["height"])
    assert size == (info.width_px, info.height_px)
    if detail["media"]["is_proxy"]:
        size = (even(size[0]), even(size[1]))
    assert (shown["width"], shown["height"]) == size
    assert shown["duration"] == pytest.approx(detail["media"]["duration_s"], abs=0.05)
    assert detail["media"]["duration_s"] == pytest.approx(record["video"]["duration_s"], abs=0.05)
    assert player.page.locator(".stage-message").is_hidden()


OTHERS = {
    "synthetic/osworld_claude_dict": 6,
    "synthetic/osworld_killed": 3,
    "plain_screenshots": 6,
    "recordings": 0,
    "agentnet/raw_recorder/2024-11-05 18-56-31.mp4": 0,
}


def test_real_runs_of_every_format_import_and_play(
    playwright_driver: Playwright, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = Server(tmp_path_factory.mktemp("others") / "home")
    found = {name: server.import_json(CASES / name) for name in OTHERS}
    with running(server), browsers(playwright_driver) as start:
        reviewer = Reviewer(start(tmp_path_factory.mktemp("profile")).new_page(), server)
        reviewer.goto()
        for name, records in found.items():
            [record] = [record for record in records if record["id"]]
            reviewer.jump(f"?id={record['id']}")
            reviewer.wait_open(record["id"])
            assert reviewer.page.locator(".stage-message").is_hidden()
            before = reviewer.frame
            reviewer.press(" ")
            reviewer.page.wait_for_function(
                "(before) => Number(document.querySelector('.reviewer-root').shadowRoot"
                ".querySelector('.review').dataset.frame) > before",
                arg=before,
            )
            reviewer.press(" ")
            steps = reviewer.page.locator(".step").count()
            assert steps == record["steps"] == OTHERS[name], name
        assert reviewer.errors == []
