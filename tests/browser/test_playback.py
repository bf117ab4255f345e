"""Odd videos from the wild: each is refused with one clear message, or plays in Chromium as PyAV decodes it."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import BrowserContext

from browser.conftest import Reviewer, Server, running
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


def decoded(path: Path, share: float) -> tuple[Image.Image, float]:
    """The picture at a share of the video, and its time from the first picture on."""
    info = media.probe(path)
    index = round(share * (len(info.clock) - 1))
    at_s = info.clock.time_of(index)
    return media.picture_at(path, at_s), at_s


def difference(one: Image.Image, other: Image.Image) -> float:
    size = (64, 64)
    arrays = [np.asarray(image.convert("L").resize(size), dtype=np.float64) for image in (one, other)]
    return float(np.abs(arrays[0] - arrays[1]).mean())


@pytest.mark.parametrize(
    "name", sorted(path.name for path in ODD.iterdir() if path.name not in REFUSED) if ODD.is_dir() else []
)
def test_it_plays_as_pyav_decodes_it(
    name: str,
    imported: tuple[Server, dict[str, dict[str, Any]]],
    launch: Callable[..., BrowserContext],
    tmp_path: Path,
) -> None:
    server, records = imported
    record = records[name]
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    reviewer.open(record["id"])
    track = reviewer.page.locator(".lane.steps .track").bounding_box()
    assert track is not None
    info = media.probe(ODD / name)
    for share, key in ((0.0, "first"), (0.5, "middle"), (1.0, "last")):
        wanted, at_s = decoded(ODD / name, share)
        reviewer.open(record["id"], t=at_s - info.clock.time_of(0) + 1e-4)
        shown = reviewer.page.evaluate(GRAB)
        picture = Image.open(BytesIO(base64.b64decode(shown["png"])))
        assert difference(picture, wanted) < 6.0, f"the {key} picture differs"
    assert (shown["width"], shown["height"]) == (record["video"]["width"], record["video"]["height"])
    assert shown["duration"] == pytest.approx(record["video"]["duration_s"], abs=0.05)
    assert reviewer.page.locator(".stage-message").is_hidden()
    assert reviewer.errors == []
