"""A real server and a real Chromium for the tests that use the product as a person does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import free_port
from playwright.sync_api import BrowserContext, Page, Playwright, expect, sync_playwright

START_S = 60.0
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1440, "height": 900}

expect.set_options(timeout=10_000)


def chromium_path() -> str:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("Chromium is needed: install it, or set CHROMIUM to its path")
    return found


class Server:
    """The real server in a process of its own, on one home and one port across restarts."""

    def __init__(self, home: Path, *, examples: bool = False) -> None:
        self.home = home
        self.examples = examples
        self.port = free_port()
        self.log = home.parent / f"{home.name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "REVIEWER_HOME": str(self.home), "GRADIO_ANALYTICS_ENABLED": "False"}

    def command(self, *arguments: str) -> str:
        """Run the command line on the server's library and return what it printed."""
        result = subprocess.run(
            [sys.executable, "-m", "reviewer", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in result.stderr, result.stderr
        return result.stdout

    def import_json(self, *paths: Path | str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.command("import", "--json", *map(str, paths)).splitlines()]

    def start(self) -> None:
        flag = "--examples" if self.examples else "--no-examples"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "reviewer", "serve", "--port", str(self.port), flag],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline_s = time.monotonic() + START_S
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/review/api/trajectories?limit=1", timeout=2).close()
                return
            except (urllib.error.URLError, OSError):
                if self.process.poll() is not None or time.monotonic() > deadline_s:
                    pytest.fail(f"the server did not start: {self.log.read_text()[-2000:]}")
                time.sleep(0.1)

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def get(self, path: str, reviewer: str | None = None) -> Any:
        headers = {"X-Reviewer": reviewer} if reviewer else {}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/review/{path}", headers=headers)) as answer:
            return json.load(answer)

    def review(self, trajectory_id: str, reviewer: str) -> dict[str, Any]:
        return self.get(f"api/trajectories/{trajectory_id}", reviewer)["review"]


@contextmanager
def running(server: Server) -> Iterator[Server]:
    try:
        server.start()
        yield server
        assert "Traceback" not in server.log.read_text(), server.log.read_text()[-3000:]
    finally:
        server.kill()


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@contextmanager
def browsers(driver: Playwright) -> Iterator[Callable[..., BrowserContext]]:
    """A function that starts a browser on a profile folder; whatever is still open is closed at the end."""
    open_contexts: list[BrowserContext] = []

    def start(profile: Path, **options: Any) -> BrowserContext:
        context = driver.chromium.launch_persistent_context(
            profile,
            executable_path=chromium_path(),
            args=CHROMIUM_FLAGS,
            headless=True,
            **{"viewport": DESKTOP} | options,
        )
        open_contexts.append(context)
        return context

    yield start
    for context in open_contexts:
        context.close()


@pytest.fixture
def launch(playwright_driver: Playwright) -> Iterator[Callable[..., BrowserContext]]:
    with browsers(playwright_driver) as start:
        yield start


class Reviewer:
    """The product in one browser tab, used through its own screen."""

    def __init__(self, page: Page, server: Server, name: str = "tester") -> None:
        self.page = page
        self.server = server
        self.name = name
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.add_init_script(f"localStorage.setItem('reviewer.name', {json.dumps(json.dumps(name))})")

    @property
    def app(self) -> Any:
        return self.page.locator(".reviewer-root .app")

    @property
    def review_root(self) -> Any:
        return self.page.locator(".review")

    def goto(self, query: str = "") -> None:
        self.page.goto(f"{self.server.url}/{query}", wait_until="domcontentloaded")
        self.app.wait_for()

    def open(self, trajectory_id: str, **place: Any) -> None:
        query = "&".join(f"{key}={value}" for key, value in {"id": trajectory_id, **place}.items())
        self.goto(f"?{query}")
        self.wait_open(trajectory_id)

    def jump(self, query: str) -> None:
        """Go to another place within the page, as the back button does."""
        self.page.evaluate(
            "(to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }", query
        )

    def wait_open(self, trajectory_id: str) -> None:
        expect(self.app).to_have_attribute("data-trajectory", trajectory_id)
        self.wait_shown()

    def wait_shown(self) -> None:
        """Wait until the decoder shows the picture the person is at."""
        self.page.wait_for_function(
            "() => { const d = document.querySelector('.reviewer-root').shadowRoot.querySelector('.review').dataset;"
            " return d.settled === 'true'; }"
        )

    def wait_saved(self) -> None:
        expect(self.app).to_have_attribute("data-unsaved", "0")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def frame(self) -> int:
        return int(self.review_root.get_attribute("data-frame"))

    @property
    def at_s(self) -> float:
        return float(self.review_root.get_attribute("data-at-s"))

    def stored(self, trajectory_id: str) -> dict[str, Any]:
        return self.server.review(trajectory_id, self.name)
