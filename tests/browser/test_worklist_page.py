"""Finding a run: search, filter, sort, pages, an order that stays, and what is shown when there is nothing to show."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clips import write_clip
from playwright.sync_api import BrowserContext, expect
from runs_on_disk import line, write_osworld

from browser.conftest import Reviewer, Server, running

pytestmark = pytest.mark.browser

RUNS = 60
PAGE = 50


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("worklist")
    write_clip(folder / "run.mp4", fps=10, count=20)
    for number in range(RUNS):
        step = {"action": "pyautogui.click(x=10, y=10)", "at_s": 0.5}
        run = {"task": f"Task {number:02} {'needle' if number % 20 == 7 else 'hay'}", "video": "run.mp4"}
        (folder / f"run{number:02}.json").write_text(json.dumps({**run, "steps": [step] * (1 + number % 3)}), "utf-8")
    server = Server(folder / "home")
    records = server.import_json(*sorted(folder.glob("run*.json")))
    assert all(record["id"] for record in records), records
    with running(server):
        yield server


@pytest.fixture
def reviewer(server: Server, launch: Callable[..., BrowserContext], tmp_path: Path) -> Iterator[Reviewer]:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server, "finder")
    yield reviewer
    assert reviewer.errors == []


def tasks(reviewer: Reviewer) -> list[str]:
    return [str(text) for text in reviewer.page.locator("a.row .c-task b").all_text_contents()]


def test_search_filter_sort_and_pages(reviewer: Reviewer) -> None:
    page = reviewer.page
    reviewer.goto()
    expect(page.locator("a.row")).to_have_count(PAGE)
    page.get_by_role("button", name="next ›").click()
    expect(page.locator("a.row")).to_have_count(RUNS - PAGE)
    reviewer.press("/")
    page.keyboard.type("NEEDLE")
    expect(page.locator("a.row")).to_have_count(3)
    reviewer.press("Escape")
    page.get_by_role("button", name="task").click()
    expect(page.locator("a.row .c-task b").first).to_have_text("Task 07 needle")
    page.get_by_role("button", name="task").click()
    expect(page.locator("a.row .c-task b").first).to_have_text("Task 47 needle")
    page.get_by_role("button", name="clear").click()
    expect(page.locator("a.row")).to_have_count(PAGE)
    page.get_by_role("button", name="steps").click()
    expect(page.locator("a.row .c-steps").first).to_have_text("1")
    page.keyboard.press("/")
    page.keyboard.type("no such thing")
    expect(page.locator(".list-state")).to_contain_text("Nothing matches")
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.locator("a.row")).to_have_count(PAGE)


def test_next_and_previous_keep_the_order_while_reviews_change(reviewer: Reviewer) -> None:
    page = reviewer.page
    reviewer.goto()
    page.locator("select[data-name='review']").select_option("unreviewed")
    page.locator("a.row").first.wait_for()
    order = tasks(reviewer)
    reviewer.press("Enter")
    for task in order[:3]:
        expect(page.locator(".task b")).to_have_text(task)
        reviewer.wait_shown()
        reviewer.press("c", "Enter")
    expect(page.locator(".task b")).to_have_text(order[3])
    reviewer.press("Shift+K")
    expect(page.locator(".task b")).to_have_text(order[2])
    expect(page.locator(".place")).to_have_text(f"3 / {RUNS}")
    reviewer.wait_saved()


def test_back_returns_to_the_worklist_and_forward_to_the_run(reviewer: Reviewer) -> None:
    page = reviewer.page
    reviewer.goto()
    page.locator("a.row").nth(1).click()
    expect(page.locator(".review")).to_be_visible()
    page.go_back()
    expect(page.locator(".worklist")).to_be_visible()
    page.go_forward()
    expect(page.locator(".review")).to_be_visible()


def test_a_server_that_is_away_is_said_and_waited_for(launch: Callable[..., BrowserContext], tmp_path: Path) -> None:
    server = Server(tmp_path / "empty")
    with running(server):
        reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
        reviewer.goto()
        expect(reviewer.page.locator(".list-state")).to_contain_text("No trajectories yet")
        server.kill()
        reviewer.press("/")
        reviewer.page.keyboard.type("x")
        expect(reviewer.page.locator(".list-state")).to_contain_text("can’t be read")
        server.start()
        expect(reviewer.page.locator(".list-state")).to_contain_text("Nothing matches", timeout=15_000)


def test_a_folder_and_a_zip_are_imported_in_the_page_and_a_bad_zip_is_refused(
    launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    write_osworld(folder, [line(1, "pyautogui.click(5, 5)"), line(2, "DONE")])
    packed = tmp_path / "packed.zip"
    write_osworld(tmp_path / "to-pack", [line(1, "pyautogui.press('a')"), line(2, "WAIT"), line(3, "DONE")])
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((tmp_path / "to-pack").rglob("*")):
            archive.write(path, path.relative_to(tmp_path / "to-pack"))
    slip = tmp_path / "slip.zip"
    with zipfile.ZipFile(slip, "w") as archive:
        archive.writestr("../outside.txt", "no")

    server = Server(tmp_path / "home")
    with running(server):
        reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
        page = reviewer.page
        reviewer.goto("?view=import")
        page.locator("input[webkitdirectory]").set_input_files(folder)
        expect(page.locator(".upload-list")).to_contain_text("results")
        page.get_by_role("button", name="Import", exact=True).last.click()
        expect(page.locator(".results h2")).to_contain_text("1 trajectory imported", timeout=30_000)
        page.locator("input[type=file]:not([webkitdirectory])").set_input_files([packed, slip])
        page.get_by_role("button", name="Import", exact=True).last.click()
        expect(page.locator(".results h2")).to_contain_text("1 file refused", timeout=30_000)
        expect(page.locator(".result.refused")).to_contain_text("slip.zip")
        assert not list(server.home.rglob("outside.txt"))
        page.locator(".result a").first.click()
        expect(page.locator(".review")).to_be_visible()
        reviewer.wait_shown()
        assert reviewer.errors == []
