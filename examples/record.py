"""Record the example runs in a real Chromium and check their truth against the pages' own state.

    python examples/record.py [--only NAME] [--out DIR] [--chromium PATH]

NAME is any part of a run's folder name, such as `demo-agent-a/mail` or `mail-archive-invoice`. A run whose declared
truth does not match what really happened is refused: nothing is written for it, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright
from runmaker.layout import write_run, write_tasks
from runmaker.readme import update_table
from runmaker.session import launch, play
from runmaker.tasks import SCRIPTS, TASKS
from runmaker.truth import TruthError, truth_of, verify

HERE = Path(__file__).resolve().parent
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium(given: str | None) -> str:
    """The browser to use: the one given, $CHROMIUM, or the first on the path."""
    wanted = given or os.environ.get("CHROMIUM")
    found = shutil.which(wanted) if wanted else next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if not found:
        sys.exit(f"no Chromium: {wanted or ', '.join(CHROMIUM_NAMES)} not found; give --chromium PATH or set $CHROMIUM")
    return found


def main(argv: list[str] | None = None) -> int:
    """Record the chosen runs; returns the exit status."""
    parser = argparse.ArgumentParser(description="Record the example runs.")
    parser.add_argument("--only", metavar="NAME", help="record only runs whose folder name contains NAME")
    parser.add_argument("--out", metavar="DIR", type=Path, default=HERE, help="folder to write to (default: examples/)")
    parser.add_argument("--chromium", metavar="PATH", help="the browser (default: $CHROMIUM, or the first on the path)")
    args = parser.parse_args(argv)
    scripts = [script for script in SCRIPTS if not args.only or args.only in script.name]
    if not scripts:
        sys.exit(f"no run is called {args.only!r}; the runs are:\n" + "\n".join(f"  {s.name}" for s in SCRIPTS))
    chromium = find_chromium(args.chromium)
    write_tasks(TASKS, args.out)
    refused = 0
    with sync_playwright() as playwright:
        try:
            browser = launch(playwright, chromium)
        except PlaywrightError as error:
            sys.exit(f"{chromium} did not start: {error}")
        for script in scripts:
            try:
                recording = play(browser, script)
                folder = write_run(recording, truth_of(recording, verify(recording)), args.out)
            except (TruthError, ValueError, RuntimeError, PlaywrightError) as error:
                refused += 1
                print(f"refused  {script.name}: {error}", file=sys.stderr, flush=True)
                continue
            size_kib = sum(f.stat().st_size for f in folder.iterdir()) / 1024
            print(f"{script.kind:16} {recording.end_s:5.1f} s {size_kib:5.0f} KiB  {script.name}", flush=True)
        browser.close()
    if (args.out / "README.md").exists():
        update_table(args.out)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
