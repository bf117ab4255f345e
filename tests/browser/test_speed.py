"""From a key to the first picture, with a short worklist and with 10,000 trajectories in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from clips import write_clip
from playwright.sync_api import BrowserContext
from sqlalchemy import select

from browser.conftest import Reviewer, Server, running
from db.models import AlignmentRow, TrajectoryRow
from db.session import Database

pytestmark = [pytest.mark.browser, pytest.mark.speed]

STEPS = 100
RUNS = 12
MANY = 10_000
JUDGED_S = 120.0
OPEN_MS = 300
NEXT_MS = 200

WATCH = """() => {
  window.key_ms = 0; window.opened = [];
  document.addEventListener('keydown', () => { window.key_ms = performance.now(); }, true);
  document.addEventListener('reviewer-first-picture', ({ detail }) => {
    window.opened.push([detail.id, performance.now() - window.key_ms]);
  });
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speed")
    write_clip(folder / "run.mp4", fps=30, count=900, width_px=1280, height_px=720)
    return folder


def write_runs(folder: Path) -> list[Path]:
    paths = []
    for number in range(RUNS):
        steps = [
            {
                "action": f"pyautogui.click(x={10 + step * 5}, y={20 + step})",
                "thought": f"step {step} of run {number}",
                "at_s": 0.2 + step * 0.29,
            }
            for step in range(STEPS)
        ]
        path = folder / f"run{number:02}.json"
        path.write_text(json.dumps({"task": f"Count to {number}", "video": "run.mp4", "steps": steps}), "utf-8")
        paths.append(path)
    return paths


@pytest.fixture(scope="module", params=[0, MANY], ids=["few", "10000"])
def server(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("speed-home") / "home")
    records = server.import_json(*write_runs(folder))
    assert all(record["id"] for record in records), records
    if request.param:
        multiply(server, request.param)
    with running(server):
        yield server


def multiply(server: Server, count: int) -> None:
    """Fill the library with copies of its first trajectory, after the real ones in the worklist's order."""
    database = Database.open(f"sqlite:///{server.home / 'reviewer.db'}")
    with database.write() as session:
        row = session.scalars(select(TrajectoryRow)).first()
        alignment = session.scalars(select(AlignmentRow)).first()
        assert row is not None and alignment is not None
        base = {column.name: getattr(row, column.name) for column in TrajectoryRow.__table__.columns}
        placed = {
            column.name: getattr(alignment, column.name)
            for column in AlignmentRow.__table__.columns
            if column.name != "id"
        }
        for number in range(count):
            own: dict[str, Any] = {
                "id": f"{number:016x}",
                "source": f"/copies/{number}",
                "imported_utc": "2999-01-01T00:00:00.000000+00:00",
            }
            session.add(TrajectoryRow(**base | own))
        session.flush()
        session.add_all(AlignmentRow(**placed | {"trajectory_id": f"{number:016x}"}) for number in range(count))
    database.close()


def wait_until_judged(server: Server) -> None:
    """The judge's own work is not what is timed here."""
    deadline_s = time.monotonic() + JUDGED_S
    while any(item["judge"]["state"] in ("queued", "running") for item in server.get("api/trajectories")["items"]):
        assert time.monotonic() < deadline_s, "the runs were not judged"
        time.sleep(0.5)


def test_opening_and_going_on_are_quick(
    server: Server,
    launch: Callable[..., BrowserContext],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    wait_until_judged(server)
    reviewer = Reviewer(launch(tmp_path / "profile").new_page(), server)
    page = reviewer.page
    reviewer.goto()
    page.locator(".worklist a.row").first.wait_for()
    page.evaluate(WATCH)
    ids = server.get("api/trajectories?ids=1")["ids"]
    opened: list[float] = []
    for place in range(5):
        reviewer.press("Enter")
        reviewer.wait_open(ids[place])
        opened.append(page.evaluate("() => window.opened.at(-1)[1]"))
        reviewer.press("g", "j")
    reviewer.press("Enter")
    went_on: list[float] = []
    for place in range(5, RUNS - 1):
        reviewer.wait_open(ids[place])
        page.wait_for_timeout(400)
        reviewer.press("x", "Enter")
        reviewer.wait_open(ids[place + 1])
        went_on.append(page.evaluate("() => window.opened.at(-1)[1]"))
    record_property("open_ms", median(opened))
    record_property("next_ms", median(went_on))
    assert median(opened) < OPEN_MS
    assert median(went_on) < NEXT_MS
    assert reviewer.errors == []
