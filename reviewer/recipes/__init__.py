"""Export formats: each recipe writes reviewed trajectories into a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from reviewer.exported import ExportedTrajectory
from reviewer.recipes import jsonl
from reviewer.recipes.jsonl import ExportRefused, Manifest

__all__ = ["RECIPES", "ExportRefused", "ExportedTrajectory", "Manifest"]

RECIPES: dict[str, Callable[[Iterable[ExportedTrajectory], Path], Manifest]] = {jsonl.NAME: jsonl.write}
