"""The key registry, the guard while typing, and text that tries to be more than text."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import BrowserContext, expect

from browser.conftest import Reviewer, Server, running

pytestmark = pytest.mark.browser

README = Path(__file__).parents[2] / "README.md"
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    "${document.title='owned'}{{value}}"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("hostile")
    for name, colour in (("a.png", "white"), ("b.png", "gray"), ("c.png", "black")):
        Image.new("RGB", (640, 360), colour).save(folder / name)
    steps = [
        {"action": "pyautogui.click(x=100, y=50)", "thought": HOSTILE, "screenshot": "b.png"},
        {"action": f"pyautogui.write({HOSTILE!r})", "thought": "then", "screenshot": "c.png"},
    ]
    run = {"task": HOSTILE, "screenshots": ["a.png", "b.png", "c.png"], "steps": steps}
    (folder / "run.json").write_text(json.dumps(run), "utf-8")
    server = Server(folder / "home")
    [record] = server.import_json(folder / "run.json")
    assert record["id"], record
    with running(server):
        yield server


@pytest.fixture
def reviewer(server: Server, launch: Callable[..., BrowserContext], tmp_path: Path) -> Iterator[Reviewer]:
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    yield reviewer
    assert reviewer.errors == []


def only_id(server: Server) -> str:
    return str(server.get("api/trajectories?ids=1")["ids"][0])


def test_agent_text_stays_text_on_every_screen(reviewer: Reviewer) -> None:
    reviewer.goto()
    expect(reviewer.page.locator(".worklist .cell.c-task b")).to_have_text(HOSTILE)
    reviewer.open(only_id(reviewer.server))
    reviewer.press("j", "j", "w")
    reviewer.page.locator("dialog input").fill(HOSTILE)
    reviewer.press("Enter", "r", "h")
    expect(reviewer.page.locator(".history li").first).to_contain_text("onerror")
    assert reviewer.page.title() == "Trajectory Reviewer"
    assert reviewer.page.locator(".reviewer-root .app img[src='x']").count() == 0


def test_no_key_fires_while_typing(reviewer: Reviewer) -> None:
    trajectory_id = only_id(reviewer.server)
    reviewer.open(trajectory_id)
    before = reviewer.stored(trajectory_id)["outcome"]
    frame = reviewer.frame
    note = reviewer.page.locator(".note")
    note.click()
    reviewer.page.keyboard.type("jkcxuae+-0[]z,. ?bB")
    expect(note).to_have_value(re.compile(re.escape("jkcxuae+-0[]z,. ?bB")))
    assert reviewer.frame == frame
    assert reviewer.page.locator("dialog[open]").count() == 0
    assert reviewer.stored(trajectory_id)["outcome"] == before
    note.fill("")
    reviewer.press("Escape")
    reviewer.press("c")
    reviewer.wait_saved()
    assert reviewer.stored(trajectory_id)["outcome"] == "correct"


def test_keys_still_work_after_a_click_on_a_button(reviewer: Reviewer) -> None:
    reviewer.open(only_id(reviewer.server))
    reviewer.page.locator(".outcome.incorrect").click()
    reviewer.press("j")
    expect(reviewer.page.locator(".step.cur .n")).to_have_text("2")
    reviewer.press("k", " ")
    expect(reviewer.page.locator(".review")).to_have_class(re.compile("playing"))


def test_no_two_bindings_share_a_key_and_the_sheet_lists_them_all(reviewer: Reviewer) -> None:
    reviewer.goto()
    bindings = reviewer.page.evaluate("async () => (await import('/review/static/keys.js')).BINDINGS")
    for scope in ("review", "worklist"):
        keys = Counter(key for binding in bindings if binding["scope"] in (scope, "any") for key in binding["keys"])
        assert [key for key, count in keys.items() if count > 1] == []
    known = {key.removeprefix("Shift+") for binding in bindings for key in binding["keys"]} | {"space"}
    table = README.read_text("utf-8").split("## Keys")[1].split("##")[0]
    documented = re.findall(r"`([^`]+)`", table)
    assert len(documented) > 20
    assert [key for key in documented if key not in known] == []
    reviewer.press("?")
    expect(reviewer.page.locator("dialog.sheet dd")).to_have_count(len(bindings))
    reviewer.press("Escape")
    expect(reviewer.page.locator("dialog.sheet")).to_be_hidden()
