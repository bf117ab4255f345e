"""Frame-exact: the picture on screen is the one the player says, and a stored edge is the time of the picture shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from clips import BARCODE_BITS, variable_times, write_clip
from playwright.sync_api import BrowserContext

from browser.conftest import Reviewer, Server, running

pytestmark = pytest.mark.browser

SEEKS = 40
EDGES = 4

READ_BARCODE = """(bits) => {
  const root = document.querySelector('.reviewer-root').shadowRoot;
  const video = root.querySelector('.screen video');
  const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
  const context = canvas.getContext('2d');
  context.drawImage(video, 0, 0);
  const cell = video.videoWidth / bits;
  let value = 0;
  for (let bit = 0; bit < bits; bit += 1) {
    const x = Math.floor((bit + 0.5) * cell);
    const [r, g, b] = context.getImageData(x, Math.floor(video.videoHeight * 0.06), 1, 1).data;
    value = value * 2 + (r + g + b > 384 ? 1 : 0);
  }
  return value;
}"""

CLIPS: dict[str, dict[str, Any]] = {
    "6 fps": {"fps": 6, "count": 60},
    "30 fps": {"fps": 30, "count": 240},
    "60 fps": {"fps": 60, "count": 300},
    "variable": {"times_s": variable_times(120)},
    "late start": {"fps": 30, "count": 120, "start_s": 1.4},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("seeking")
    server = Server(folder / "home")
    for name, options in CLIPS.items():
        write_clip(folder / f"{name}.mp4", **options)
    records = server.import_json(*(folder / f"{name}.mp4" for name in CLIPS), "--task", "Watch the counter")
    assert all(record["id"] for record in records), records
    with running(server):
        yield server


@pytest.mark.parametrize("name", CLIPS)
def test_no_seek_shows_another_picture(
    name: str, server: Server, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    items = server.get("api/trajectories")["items"]
    trajectory_id = next(item["id"] for item in items if item["source"].endswith(f"{name}.mp4"))
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server, f"seeker {name}")
    reviewer.open(trajectory_id)
    page = reviewer.page
    page.evaluate("() => { window.wrong = [] }")
    clock = server.get(f"api/trajectories/{trajectory_id}", reviewer.name)["media"]["clock"]
    times_s = clock.get("pts_s") or [k * clock["num"] / clock["den"] for k in range(clock["count"])]
    track = page.locator(".lane.step-ticks .track").bounding_box()
    assert track is not None
    random = Random(name)
    wrong = []
    for _ in range(SEEKS):
        x = track["x"] + random.random() * track["width"]
        page.mouse.click(x, track["y"] + track["height"] / 2)
        reviewer.press(*random.choices([".", ","], k=random.randrange(4)))
        reviewer.wait_shown()
        shown = page.evaluate(READ_BARCODE, BARCODE_BITS)
        if shown != reviewer.frame:
            wrong.append((reviewer.frame, shown))
    assert wrong == []

    for _ in range(EDGES):
        page.mouse.click(track["x"] + random.uniform(0.05, 0.45) * track["width"], track["y"] + 4)
        reviewer.wait_shown()
        first = page.evaluate(READ_BARCODE, BARCODE_BITS)
        reviewer.press("Alt+[")
        page.mouse.click(track["x"] + random.uniform(0.55, 0.95) * track["width"], track["y"] + 4)
        reviewer.wait_shown()
        last = page.evaluate(READ_BARCODE, BARCODE_BITS)
        reviewer.press("Alt+]")
        reviewer.wait_saved()
        [span] = reviewer.stored(trajectory_id)["spans"]
        assert span["start_s"] == pytest.approx(times_s[first], abs=1e-6)
        assert span["end_s"] == pytest.approx(times_s[last], abs=1e-6)
        reviewer.press("Delete")
        reviewer.wait_saved()
    assert reviewer.errors == []
