"""Entry for Hugging Face Spaces and for ``python app.py``: build the page and launch it."""

from __future__ import annotations

from reviewer.settings import Settings
from reviewer.ui.server import launch

if __name__ == "__main__":
    demo, _, worker = launch(Settings.from_environment())
    demo.block_thread()
