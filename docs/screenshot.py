"""Take the README's picture of the review screen from a server that has loaded the example runs.

python docs/screenshot.py http://127.0.0.1:7860 [CHROMIUM]
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

RUN = "demo-agent-a/mail/mail-send-budget"
TARGET = Path(__file__).parent / "review.png"


def main(address: str, chromium: str) -> None:
    """Open one run, mark it as a reviewer would, and take the picture."""
    with urlopen(f"{address}/review/api/trajectories?limit=100") as answer:
        items = json.load(answer)["items"]
    run = next(item for item in items if item["source"].endswith(RUN))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
        page.add_init_script("localStorage.setItem('reviewer.name', JSON.stringify('reviewer-1'))")
        page.goto(f"{address}/?id={run['id']}&step=1")
        page.locator(".review[data-settled='true']").wait_for()
        for key in ("+", "j", "+", "j", "+", "j", "e", "[", "j", "j", "j", "]", "k", "k", "k", "x"):
            page.keyboard.press(key)
        page.wait_for_timeout(2500)
        page.keyboard.press("k")
        page.keyboard.press("j")
        page.wait_for_timeout(800)
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"), sys.argv[2] if len(sys.argv) > 2 else shutil.which("chromium") or "chromium")
