"""The lanes and the picture under the mouse: spans, where actions are drawn, step times, runs of any size and shape."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clips import variable_times, write_clip
from playwright.sync_api import BrowserContext, expect

from browser.conftest import Reviewer, Server, running

pytestmark = pytest.mark.browser

LANDSCAPE, PORTRAIT = (1280, 720), (412, 892)
STEP_TIMES_S = [1.0, 2.5, 4.0, 5.5]
LONG = 500


def write_run(
    folder: Path,
    name: str,
    size_px: tuple[int, int],
    steps: list[dict[str, Any]],
    times_s: list[float] | None = None,
) -> Path:
    count = int(30 * (max(step["at_s"] for step in steps) + 2))
    clip = f"{name}.mp4"
    write_clip(folder / clip, times_s, fps=30, count=count, width_px=size_px[0], height_px=size_px[1])
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"task": f"The {name} run", "video": clip, "steps": steps}), "utf-8")
    return path


def clicks(size_px: tuple[int, int]) -> list[dict[str, Any]]:
    width, height = size_px
    places = [(0.1, 0.2), (0.9, 0.1), (0.5, 0.5), (0.25, 0.95)]
    return [
        {
            "action": {"kind": "click", "points": [{"x": x * width, "y": y * height, "space": "pixel"}]},
            "at_s": at_s,
        }
        for (x, y), at_s in zip(places, STEP_TIMES_S, strict=True)
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("mouse")
    server = Server(folder / "home")
    long = [{"action": f"pyautogui.press('{'abcde'[k % 5]}')", "at_s": 0.1 + k * 0.1} for k in range(LONG)]
    runs = [
        write_run(folder, "landscape", LANDSCAPE, clicks(LANDSCAPE)),
        write_run(folder, "portrait", PORTRAIT, clicks(PORTRAIT)),
        write_run(folder, "long", (320, 180), long),
        write_run(folder, "uneven", LANDSCAPE, clicks(LANDSCAPE), variable_times(40)),
    ]
    records = server.import_json(*runs)
    assert all(record["id"] for record in records), records
    with running(server):
        yield server


@pytest.fixture
def reviewer(
    request: pytest.FixtureRequest, server: Server, launch: Callable[..., BrowserContext], tmp_path: Path
) -> Iterator[Reviewer]:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server, request.node.name[:60])
    yield reviewer
    assert reviewer.errors == []


def id_of(server: Server, name: str) -> str:
    items = server.get("api/trajectories")["items"]
    return str(next(item["id"] for item in items if item["source"].endswith(f"{name}.json")))


def box(reviewer: Reviewer, selector: str) -> dict[str, float]:
    found = reviewer.page.locator(selector).first.bounding_box()
    assert found is not None
    return dict(found)


def x_of(reviewer: Reviewer, at_s: float, duration_s: float) -> float:
    track = box(reviewer, ".lane.human .track")
    return track["x"] + at_s / duration_s * track["width"]


def drag(reviewer: Reviewer, from_x: float, to_x: float, y: float, *, free: bool = False) -> None:
    mouse = reviewer.page.mouse
    mouse.move(from_x, y)
    if free:
        reviewer.page.keyboard.down("Alt")
    mouse.down()
    mouse.move((from_x + to_x) / 2, y, steps=4)
    mouse.move(to_x, y, steps=4)
    mouse.up()
    if free:
        reviewer.page.keyboard.up("Alt")


def only_span(reviewer: Reviewer, trajectory_id: str) -> dict[str, Any]:
    reviewer.wait_saved()
    [span] = reviewer.stored(trajectory_id)["spans"]
    return dict(span)


def test_a_span_is_created_moved_resized_and_deleted(reviewer: Reviewer) -> None:
    trajectory_id = id_of(reviewer.server, "landscape")
    reviewer.open(trajectory_id)
    duration_s = reviewer.server.get(f"api/trajectories/{trajectory_id}", reviewer.name)["media"]["duration_s"]
    lane = box(reviewer, ".lane.human .track")
    y = lane["y"] + 9

    drag(reviewer, x_of(reviewer, 2.5, duration_s) + 3, x_of(reviewer, 4.0, duration_s) - 3, y)
    span = only_span(reviewer, trajectory_id)
    assert (span["start_s"], span["end_s"]) == (pytest.approx(2.5, abs=1e-6), pytest.approx(4.0, abs=1e-6))

    end = box(reviewer, ".span.human .handle.end")
    drag(reviewer, end["x"] + 4, x_of(reviewer, 4.8, duration_s), y, free=True)
    span = only_span(reviewer, trajectory_id)
    assert span["start_s"] == pytest.approx(2.5, abs=1e-6)
    assert span["end_s"] == pytest.approx(4.8, abs=0.06)
    assert (span["end_s"] * 30) == pytest.approx(round(span["end_s"] * 30), abs=1e-4)

    middle = x_of(reviewer, (span["start_s"] + span["end_s"]) / 2, duration_s)
    drag(reviewer, middle, middle + (x_of(reviewer, 1.0, duration_s) - x_of(reviewer, 0.0, duration_s)), y)
    moved = only_span(reviewer, trajectory_id)
    assert moved["start_s"] == pytest.approx(span["start_s"] + 1.0, abs=0.06)
    assert moved["end_s"] - moved["start_s"] == pytest.approx(span["end_s"] - span["start_s"], abs=0.04)

    reviewer.press("z")
    assert only_span(reviewer, trajectory_id) == span
    reviewer.press("v", "Delete")
    reviewer.wait_saved()
    assert reviewer.stored(trajectory_id)["spans"] == []


def test_an_edge_moves_by_key_and_a_second_around_it_is_replayed(reviewer: Reviewer) -> None:
    trajectory_id = id_of(reviewer.server, "landscape")
    reviewer.open(trajectory_id, step=2)
    reviewer.press("[", "j", "]")
    span = only_span(reviewer, trajectory_id)
    assert (span["start_s"], span["end_s"]) == (pytest.approx(2.5, abs=1e-6), pytest.approx(4.0, abs=1e-6))
    reviewer.page.locator(".span.human .handle.end").focus()
    reviewer.press(".")
    assert only_span(reviewer, trajectory_id)["end_s"] == pytest.approx(4.0 + 1 / 30, abs=1e-6)
    playing = re.compile("playing")
    expect(reviewer.review_root).to_have_class(playing)
    expect(reviewer.review_root).not_to_have_class(playing)
    reviewer.wait_shown()
    assert reviewer.at_s == pytest.approx(4.0 + 1 / 30, abs=1e-6)
    reviewer.press("ArrowRight")
    assert only_span(reviewer, trajectory_id)["end_s"] == pytest.approx(5.5, abs=1e-6)
    assert reviewer.page.evaluate(
        "() => document.querySelector('.reviewer-root').shadowRoot.activeElement?.dataset.side"
    ) == ("end")


@pytest.mark.parametrize("viewport", [(1440, 900), (1024, 768)], ids=["wide", "small"])
@pytest.mark.parametrize("name", ["landscape", "portrait"])
def test_the_ring_is_drawn_where_the_agent_clicked(
    name: str,
    viewport: tuple[int, int],
    server: Server,
    launch: Callable[..., BrowserContext],
    tmp_path: Path,
) -> None:
    context = launch(tmp_path / "profile", viewport={"width": viewport[0], "height": viewport[1]})
    reviewer = Reviewer(context.new_page(), server)
    trajectory_id = id_of(server, name)
    width, height = LANDSCAPE if name == "landscape" else PORTRAIT
    for number, step in enumerate(clicks((width, height)), start=1):
        reviewer.open(trajectory_id, step=number)
        screen = box(reviewer, ".screen")
        ring = box(reviewer, ".overlay .ring .line")
        [point] = step["action"]["points"]
        expected_x = screen["x"] + point["x"] / width * screen["width"]
        expected_y = screen["y"] + point["y"] / height * screen["height"]
        assert ring["x"] + ring["width"] / 2 == pytest.approx(expected_x, abs=1.5)
        assert ring["y"] + ring["height"] / 2 == pytest.approx(expected_y, abs=1.5)
        assert screen["width"] / screen["height"] == pytest.approx(width / height, rel=0.01)
    assert reviewer.errors == []


def test_five_hundred_steps_are_listed_stepped_and_labelled(reviewer: Reviewer) -> None:
    trajectory_id = id_of(reviewer.server, "long")
    reviewer.open(trajectory_id)
    expect(reviewer.page.locator(".step")).to_have_count(LONG)
    reviewer.press("End")
    expect(reviewer.page.locator(".step.cur .n")).to_have_text(str(LONG))
    expect(reviewer.page.locator(".step.cur")).to_be_in_viewport()
    reviewer.press("-", *["k"] * 30)
    expect(reviewer.page.locator(".step.cur .n")).to_have_text(str(LONG - 30))
    reviewer.press("+")
    reviewer.wait_saved()
    labels = reviewer.stored(trajectory_id)["step_labels"]
    assert {step: label["label"] for step, label in labels.items()} == {str(LONG - 1): "-", str(LONG - 31): "+"}


def test_step_times_are_corrected_and_taken_back(reviewer: Reviewer) -> None:
    trajectory_id = id_of(reviewer.server, "portrait")
    path = f"api/trajectories/{trajectory_id}"
    before = reviewer.server.get(path, reviewer.name)["alignment"]
    reviewer.open(trajectory_id, step=2)
    reviewer.press("t", *["."] * 6)
    with reviewer.page.expect_response(lambda answer: answer.url.endswith("/alignment")):
        reviewer.press("p")
    pinned = reviewer.server.get(path, reviewer.name)["alignment"]
    assert pinned["version"] == before["version"] + 1
    assert pinned["author"] == reviewer.name
    assert pinned["step_at_s"][1] == pytest.approx(2.5 + 6 / 30, abs=1e-6)
    assert pinned["step_at_s"][2:] == before["step_at_s"][2:]
    with reviewer.page.expect_response(lambda answer: answer.url.endswith("/alignment")):
        reviewer.page.get_by_role("button", name="take back the last correction").click()
    restored = reviewer.server.get(path, reviewer.name)["alignment"]
    assert restored["version"] == before["version"] + 2
    assert restored["step_at_s"] == before["step_at_s"]


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_reload_stands_on_the_same_step_and_picture(step: int, reviewer: Reviewer) -> None:
    trajectory_id = id_of(reviewer.server, "uneven")
    reviewer.open(trajectory_id, step=step)
    expect(reviewer.page.locator(".step.cur .n")).to_have_text(str(step))
    expect(reviewer.page).to_have_url(re.compile(r"t="))
    frame, at_s = reviewer.frame, reviewer.at_s
    assert at_s == pytest.approx(STEP_TIMES_S[step - 1], abs=1e-3)
    for _ in range(3):
        reviewer.page.reload()
        reviewer.wait_open(trajectory_id)
        expect(reviewer.page.locator(".step.cur .n")).to_have_text(str(step))
        assert reviewer.frame == frame
        reviewer.page.wait_for_timeout(300)


def test_a_deep_link_opens_the_step_and_the_second(reviewer: Reviewer) -> None:
    trajectory_id = id_of(reviewer.server, "landscape")
    reviewer.open(trajectory_id, step=3)
    expect(reviewer.page.locator(".step.cur .n")).to_have_text("3")
    reviewer.open(trajectory_id, t="5.1")
    assert reviewer.at_s == pytest.approx(5.1, abs=1 / 30)
    expect(reviewer.page).to_have_url(re.compile(rf"id={trajectory_id}.*t=5\.1"))
