"""The main job by keyboard alone, on the example runs as a first start loads them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from browser.conftest import Reviewer, Server, running

pytestmark = pytest.mark.browser

EXAMPLES = 24
LOAD_S = 240.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(Server(tmp_path_factory.mktemp("first-start") / "home", examples=True)) as server:
        yield server


def wait_for_examples(server: Server) -> list[str]:
    deadline_s = time.monotonic() + LOAD_S
    while time.monotonic() < deadline_s:
        page = server.get("api/trajectories?ids=1&limit=100")
        if page["total"] == EXAMPLES and all(item["judge"]["state"] == "done" for item in page["items"]):
            return [str(trajectory_id) for trajectory_id in page["ids"]]
        time.sleep(0.5)
    pytest.fail("the example runs were not loaded and judged")


def test_the_first_page_is_usable_before_the_examples_are_loaded(
    server: Server, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    reviewer.goto()
    expect(reviewer.page.locator(".worklist a.row").first).to_be_visible(timeout=60_000)
    wait_for_examples(server)
    expect(reviewer.page.locator(".worklist a.row")).to_have_count(EXAMPLES, timeout=20_000)
    assert reviewer.errors == []


def test_a_run_is_reviewed_by_keyboard_alone_and_export_holds_it(
    server: Server, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    ids = wait_for_examples(server)
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server, "keyboard")
    page = reviewer.page
    reviewer.goto()
    page.locator(".worklist a.row").first.wait_for()
    first, second = ids[:2]

    reviewer.press("Enter")
    reviewer.wait_open(first)
    reviewer.press("j", "j")
    expect(page.locator(".step.cur .n")).to_have_text("2")
    reviewer.wait_shown()
    span_start_s = reviewer.at_s
    reviewer.press("b")
    expect(page.locator(".blink")).to_be_visible()
    expect(page.locator(".blink-tag")).to_have_text("after")
    reviewer.press("b")
    expect(page.locator(".blink")).to_be_hidden()
    reviewer.press("[", ".", ".", ".", ".")
    reviewer.wait_shown()
    reviewer.press("Alt+]")
    expect(page.locator(".span.human")).to_have_count(1)
    reviewer.press("Home", "+", "j", "-", "e", "x")
    expect(page.locator(".outcome.incorrect")).to_have_class("outcome incorrect on")
    expect(page.locator(".step.cur .why")).to_contain_text("first error")
    reviewer.press("n")
    page.keyboard.type("wrong place: e x j k stay text")
    reviewer.press("Control+Enter", "Enter")
    reviewer.wait_open(second)
    reviewer.wait_saved()

    stored = reviewer.stored(first)
    assert stored["status"] == "submitted"
    assert stored["outcome"] == "incorrect"
    assert stored["first_error"]["step_index"] == 1
    assert {step: label["label"] for step, label in stored["step_labels"].items()} == {"0": "+", "1": "-"}
    assert stored["notes"] == {"run": "wrong place: e x j k stay text"}
    [span] = stored["spans"]
    assert span["start_s"] == pytest.approx(span_start_s, abs=1e-6)
    assert span["end_s"] > span["start_s"]

    reviewer.open(first)
    expect(page.locator(".outcome.incorrect")).to_have_class("outcome incorrect on")
    expect(page.locator(".span.human")).to_have_count(1)
    expect(page.locator(".step").nth(0).locator(".plus")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".step").nth(1).locator(".minus")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".note")).to_have_value("wrong place: e x j k stay text")

    target = tmp_path / "export"
    server.command("export", "jsonl", str(target))
    lines = [json.loads(line) for line in (target / "trajectories.jsonl").read_text("utf-8").splitlines()]
    exported = next(line for line in lines if line["id"] == first)
    [review] = [review for review in exported["reviews"] if review["reviewer"] == "keyboard"]
    assert review["outcome"] == "incorrect"
    assert review["spans"][0]["start_s"] == span["start_s"]
    assert review["step_labels"]["1"]["label"] == "-"
    assert reviewer.errors == []


def test_undo_takes_marks_back_also_after_a_reload(
    server: Server, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    trajectory_id = wait_for_examples(server)[2]
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server, "undoer")
    reviewer.open(trajectory_id)
    reviewer.press("c", "j", "-", "e")
    reviewer.wait_saved()
    reviewer.press("z")
    reviewer.wait_saved()
    assert reviewer.stored(trajectory_id)["first_error"] is None

    reviewer.page.reload()
    reviewer.wait_open(trajectory_id)
    expect(reviewer.page.locator(".outcome.correct")).to_have_class("outcome correct on")
    reviewer.press("z")
    reviewer.wait_saved()
    reviewer.press("z")
    reviewer.wait_saved()
    stored = reviewer.stored(trajectory_id)
    assert stored["outcome"] is None
    assert stored["step_labels"] == {}
    assert reviewer.errors == []
