"""What peers lose: a reload right after the last key, a killed browser, a server that is away, a second window, and a
span whose other edge is not set yet."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clips import write_clip
from playwright.sync_api import BrowserContext, Route, expect

from browser.conftest import Reviewer, Server, running

pytestmark = pytest.mark.browser

AWAY_S = 20.0
CLIPS = 24


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("survival")
    server = Server(folder / "home")
    clips = [write_clip(folder / f"clip{number}.mp4", fps=30, count=90 + number) for number in range(CLIPS)]
    records = server.import_json(*clips, "--task", "Watch the counter")
    assert all(record["id"] for record in records), records
    with running(server):
        yield server


@pytest.fixture(scope="module")
def untouched(server: Server) -> Iterator[str]:
    return iter(server.get("api/trajectories?ids=1")["ids"])


@pytest.fixture
def trajectory_id(untouched: Iterator[str]) -> str:
    """A trajectory that no other test of this module marks."""
    return next(untouched)


def browser_process(profile: Path) -> int:
    """The process id of the browser that uses ``profile``."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if f"--user-data-dir={profile}" in command and not any(part.startswith("--type=") for part in command):
                return int(entry.name)
    raise AssertionError("no browser uses the profile")


def test_a_reload_50_ms_after_the_last_key_keeps_it(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    reviewer.open(trajectory_id)
    reviewer.press("x")
    reviewer.page.wait_for_timeout(50)
    reviewer.page.reload()
    reviewer.wait_open(trajectory_id)
    expect(reviewer.page.locator(".outcome.incorrect")).to_have_attribute("aria-pressed", "true")
    reviewer.wait_saved()
    assert reviewer.stored(trajectory_id)["outcome"] == "incorrect"
    assert reviewer.stored(trajectory_id)["rev"] == 1


def test_a_note_being_typed_survives_a_reload(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    reviewer.open(trajectory_id)
    reviewer.press("n")
    reviewer.page.keyboard.type("half a sent")
    reviewer.page.reload()
    reviewer.wait_open(trajectory_id)
    expect(reviewer.page.locator(".note")).to_have_value("half a sent")


def test_a_killed_browser_loses_nothing(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    reviewer = Reviewer(launch(profile).new_page(), server)
    reviewer.open(trajectory_id)
    server.kill()
    reviewer.press("c", "[")
    reviewer.press(*["."] * 5)
    reviewer.press("Alt+]")
    expect(reviewer.app).to_have_attribute("data-unsaved", "2")
    # Chromium writes localStorage to disk a moment after it was set.
    reviewer.page.wait_for_timeout(6_000)
    os.kill(browser_process(profile), signal.SIGKILL)
    server.start()

    again = Reviewer(launch(profile).new_page(), server)
    again.open(trajectory_id)
    again.wait_saved()
    stored = again.stored(trajectory_id)
    assert stored["outcome"] == "correct"
    assert len(stored["spans"]) == 1
    assert stored["rev"] == 2


def test_a_server_that_is_away_for_20_s_gets_every_mark_once(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    reviewer.open(trajectory_id)
    server.kill()
    away_until_s = time.monotonic() + AWAY_S
    for value in ("c", "x", "c", "Shift+U", "x"):
        reviewer.press(value)
    expect(reviewer.page.locator(".saved")).to_contain_text("kept here")
    reviewer.page.wait_for_timeout(max(0.0, 1000 * (away_until_s - time.monotonic())))
    server.start()
    expect(reviewer.app).to_have_attribute("data-unsaved", "0", timeout=15_000)
    stored = reviewer.stored(trajectory_id)
    assert (stored["outcome"], stored["rev"]) == ("incorrect", 5)
    history = server.get(f"api/trajectories/{trajectory_id}/history")["ops"]
    values = [change["to"] for op in reversed(history) for change in op["changes"] if change["field"] == "outcome"]
    assert values == ["correct", "incorrect", "correct", "unsure", "incorrect"]
    assert reviewer.errors == []


def test_two_windows_of_one_person_see_each_other_and_lose_nothing(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    context = launch(tmp_path / "profile")
    left, right = (Reviewer(context.new_page(), server) for _ in range(2))
    left.open(trajectory_id)
    right.open(trajectory_id)
    left.press("x")
    left.wait_saved()
    expect(right.page.locator(".outcome.incorrect")).to_have_attribute("aria-pressed", "true")
    right.press("n")
    right.page.keyboard.type("from the right")
    right.press("Control+Enter")
    right.wait_saved()
    expect(left.page.locator(".note")).to_have_value("from the right")
    stored = left.stored(trajectory_id)
    assert (stored["outcome"], stored["notes"]) == ("incorrect", {"run": "from the right"})


def two_machines(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> tuple[Reviewer, Reviewer]:
    """One person with the same run open on two machines, whose windows hear nothing of each other."""
    left, right = (Reviewer(launch(tmp_path / name).new_page(), server) for name in ("one", "two"))
    for reviewer in (left, right):
        reviewer.page.add_init_script("window.BroadcastChannel = class { postMessage() {} close() {} }")
        reviewer.open(trajectory_id)
    return left, right


def test_marks_on_the_same_field_from_two_machines_ask_the_person(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    left, right = two_machines(server, trajectory_id, launch, tmp_path)
    left.press("x")
    left.wait_saved()
    right.press("c")
    dialog = right.page.locator("dialog[open]")
    expect(dialog).to_contain_text("Changed in two places")
    expect(dialog.locator(".change ins").first).to_have_text("incorrect")
    dialog.get_by_role("button", name="Set mine").click()
    right.wait_saved()
    stored = right.stored(trajectory_id)
    assert (stored["outcome"], stored["rev"]) == ("correct", 2)


def test_keeping_what_is_there_shows_it_and_does_not_submit(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    left, right = two_machines(server, trajectory_id, launch, tmp_path)
    left.press("c")
    left.wait_saved()
    right.press("x", "Enter")
    dialog = right.page.locator("dialog[open]")
    expect(dialog).to_contain_text("Watch the counter")
    right.press("Enter", "Escape")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Keep what is there").click()
    right.wait_saved()
    stored = right.stored(trajectory_id)
    assert (stored["outcome"], stored["status"]) == ("correct", "in_progress")
    right.open(trajectory_id)
    expect(right.page.locator(".outcome.correct")).to_have_attribute("aria-pressed", "true")


def test_a_note_from_another_window_is_not_overwritten_by_an_untouched_box(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    context = launch(tmp_path / "profile")
    left, right = (Reviewer(context.new_page(), server) for _ in range(2))
    left.open(trajectory_id)
    right.open(trajectory_id)
    left.press("x", "n")
    left.wait_saved()
    right.press("n")
    right.page.keyboard.type("important")
    right.press("Escape")
    right.wait_saved()
    left.press("Escape", "Enter")
    left.wait_saved()
    stored = left.stored(trajectory_id)
    assert (stored["notes"], stored["status"]) == ({"run": "important"}, "submitted")


@pytest.mark.parametrize("status", [401, 403, 404, 502])
def test_an_error_page_from_a_proxy_does_not_cost_a_mark(
    status: int, server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    reviewer.open(trajectory_id)
    answers = iter([status, status])

    def answer(route: Route) -> None:
        code = next(answers, None)
        if code is None:
            route.continue_()
        else:
            route.fulfill(status=code, content_type="text/html", body="<h1>not now</h1>")

    reviewer.page.route("**/ops", answer)
    reviewer.press("x")
    reviewer.wait_saved()
    assert reviewer.stored(trajectory_id)["outcome"] == "incorrect"


def test_a_full_storage_is_said_and_the_mark_still_arrives(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    reviewer.open(trajectory_id)
    reviewer.page.evaluate(
        "() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; }"
    )
    reviewer.press("x")
    expect(reviewer.page.locator(".toast")).to_contain_text("storage is full")
    reviewer.wait_saved()
    assert reviewer.stored(trajectory_id)["outcome"] == "incorrect"
    assert reviewer.errors == []


def test_marks_on_other_fields_from_two_machines_both_stay(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    left, right = two_machines(server, trajectory_id, launch, tmp_path)
    left.press("x")
    left.wait_saved()
    right.press("[", ".", ".", "Alt+]")
    right.wait_saved()
    stored = right.stored(trajectory_id)
    assert stored["outcome"] == "incorrect"
    assert len(stored["spans"]) == 1


def test_a_span_whose_second_edge_is_not_set_survives_a_reload(
    server: Server, trajectory_id: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    reviewer.open(trajectory_id)
    reviewer.press(*["."] * 10)
    reviewer.wait_shown()
    start_s = reviewer.at_s
    reviewer.press("Alt+[")
    expect(reviewer.page.locator(".span.pending")).to_be_visible()
    reviewer.page.reload()
    reviewer.wait_open(trajectory_id)
    expect(reviewer.page.locator(".span.pending")).to_be_visible()
    reviewer.press(*["."] * 25)
    reviewer.press("Alt+]")
    reviewer.wait_saved()
    [span] = reviewer.stored(trajectory_id)["spans"]
    assert span["start_s"] == pytest.approx(start_s, abs=1e-6)
