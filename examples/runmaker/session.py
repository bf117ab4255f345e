"""Plays a script in a real browser and records what happens: frames, screenshots, times and states."""

from __future__ import annotations

import base64
import random
import time
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright

from .script import Script, State, Step
from .video import Frame

PAGES = Path(__file__).resolve().parent.parent / "pages"
FIRST_FRAME_LIMIT_S = 10
STILL_START_S = 1.2
STILL_END_S = 1.5
THINK_S = (0.6, 1.5)
SETTLE_S = (0.5, 0.75)
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Played:
    """One step as it really went. Times ending in _s count from the recording's start."""

    step: Step
    source: str
    wall_s: float
    action_at_s: float
    action_end_s: float
    screenshot_at_s: float
    screenshot: bytes
    before: State
    after: State


@dataclass(frozen=True)
class Recording:
    """A played script."""

    script: Script
    frames: list[Frame]
    end_s: float
    steps: list[Played]


class Screencast:
    """Collects the browser's own frames, stamped by the browser on the wall clock."""

    def __init__(self, page: Page) -> None:
        """Start the screencast and wait for its first frame, which is second 0 of the recording."""
        self._frames: list[tuple[float, bytes]] = []
        self._cdp = page.context.new_cdp_session(page)
        self._cdp.on("Page.screencastFrame", self._keep)
        self._cdp.send("Page.startScreencast", {"format": "png", "everyNthFrame": 1})
        give_up_s = time.time() + FIRST_FRAME_LIMIT_S
        while not self._frames:
            if time.time() > give_up_s:
                raise RuntimeError(f"no picture from the browser within {FIRST_FRAME_LIMIT_S} s")
            page.wait_for_timeout(20)
        self.start_wall_s = self._frames[0][0]

    def _keep(self, event: dict) -> None:
        self._frames.append((event["metadata"]["timestamp"], base64.b64decode(event["data"])))
        self._cdp.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    def now_s(self) -> float:
        """Seconds since the first frame."""
        return time.time() - self.start_wall_s

    def stop(self) -> list[Frame]:
        """End the screencast and hand over the frames in the order of their times."""
        self._cdp.send("Page.stopScreencast")
        return [Frame(t - self.start_wall_s, png) for t, png in sorted(self._frames, key=lambda f: f[0])]


def launch(playwright: Playwright, chromium: str) -> Browser:
    """Start the browser that all runs use."""
    return playwright.chromium.launch(executable_path=chromium, headless=True, args=CHROMIUM_ARGS)


def play(browser: Browser, script: Script) -> Recording:
    """Play one script in a fresh page and record it; a script error on the page is an error here."""
    pace = random.Random(script.name)
    width, height = script.task.size_px
    context = browser.new_context(viewport={"width": width, "height": height}, device_scale_factor=1)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    try:
        page.goto((PAGES / script.task.page).as_uri() + script.task.fragment)
        page.wait_for_function("() => typeof window.appState === 'function'")
        cast = Screencast(page)
        page.wait_for_timeout(1000 * STILL_START_S)
        steps = [_play_step(page, cast, step, pace) for step in script.steps]
        page.wait_for_timeout(1000 * STILL_END_S)
        end_s = cast.now_s()
        frames = cast.stop()
    finally:
        context.close()
    if faults:
        raise RuntimeError(f"{script.name}: the page reported: {faults[0]}")
    return Recording(script, frames, end_s, steps)


def _play_step(page: Page, cast: Screencast, step: Step, pace: random.Random) -> Played:
    if not step.same_reply:
        page.wait_for_timeout(1000 * pace.uniform(*THINK_S))
    planned = step.action.plan(page)
    before = page.evaluate("window.appState()")
    wall_s = time.time()
    planned.perform()
    end_s = cast.now_s()
    page.wait_for_timeout(1000 * pace.uniform(*SETTLE_S))
    # Playwright hides the text cursor in screenshots by default, which would make them differ from the video.
    screenshot = page.screenshot(caret="initial", animations="allow")
    shot_s = cast.now_s()
    after = page.evaluate("window.appState()")
    return Played(step, planned.source, wall_s, wall_s - cast.start_wall_s, end_s, shot_s, screenshot, before, after)
