"""Writes a run in OSWorld's result layout, and the task beside it."""

from __future__ import annotations

import datetime
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .script import Task
from .session import Played, Recording
from .truth import result_of
from .video import encode

PALETTE_COLORS = 96
PALETTE_STEP = 16
FLAT_AREA_PX = 600


def timestamp(wall_s: float) -> str:
    """Local time as OSWorld writes it."""
    return datetime.datetime.fromtimestamp(wall_s).strftime("%Y%m%d@%H%M%S%f")


def palette_of(colors: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The colours of a picture's flat areas, then its most frequent others that differ by more than a step.

    Flat pages have a few exact colours and many shades of smoothed text; the usual quantisers average the rare
    exact colours away, which would shift the hue of icons and labels.
    """
    order = np.argsort(-counts, kind="stable")
    flat = order[counts[order] >= FLAT_AREA_PX]
    chosen = [colors[i] for i in flat[:PALETTE_COLORS]]
    rest = colors[order]
    for color in chosen:
        rest = rest[np.abs(rest - color).max(axis=1) > PALETTE_STEP]
    while len(rest) and len(chosen) < PALETTE_COLORS:
        chosen.append(rest[0])
        rest = rest[np.abs(rest - rest[0]).max(axis=1) > PALETTE_STEP]
    return np.array(chosen)


def small_png(png: bytes) -> bytes:
    """The same picture with a palette, several times smaller.

    Pillow's own mapping to a palette confuses colours as close as two greys of a page, so it is done here.
    """
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=np.int32)
    codes, where, counts = np.unique(pixels @ (65536, 256, 1), return_inverse=True, return_counts=True)
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    palette = palette_of(colors, counts)
    nearest = np.abs(colors[:, None] - palette[None]).sum(axis=2).argmin(axis=1).astype(np.uint8)
    picture = Image.fromarray(nearest[where].reshape(pixels.shape[:2]))
    picture.putpalette(palette.astype(np.uint8).tobytes())
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()


def response(played: Played) -> str:
    """What the agent answered: its thought, then the action."""
    fence = "```" if played.source in ("WAIT", "DONE", "FAIL") else "```python\n"
    return f"{played.step.thought}\n{fence}{played.source}{'```' if fence == '```' else chr(10) + '```'}"


def write_run(recording: Recording, truth: dict[str, Any], out: Path) -> Path:
    """Write the run's folder, replacing an older one."""
    folder = out / "runs" / recording.script.name
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    rows, step_num = [], 0
    for played in recording.steps:
        step_num += not played.step.same_reply
        stamp = timestamp(played.wall_s)
        name = f"step_{step_num}_{stamp}.png"
        (folder / name).write_bytes(small_png(played.screenshot))
        rows.append(
            {
                "step_num": step_num,
                "action_timestamp": stamp,
                "action": played.source,
                "response": response(played),
                "reward": 0,
                "done": played.source in ("DONE", "FAIL"),
                "info": {"done": True}
                if played.source == "DONE"
                else {"fail": True}
                if played.source == "FAIL"
                else {},
                "screenshot_file": name,
            }
        )
    (folder / "traj.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "result.txt").write_text(f"{result_of(recording)}\n", "utf-8")
    (folder / "truth.json").write_text(json.dumps(truth, indent=2) + "\n", "utf-8")
    encode(recording.frames, recording.end_s, folder / "recording.mp4")
    return folder


def write_tasks(tasks: list[Task], out: Path) -> None:
    """Write each task's text, and the list of all tasks."""
    base = out / "evaluation_examples"
    listing: dict[str, list[str]] = {}
    for task in tasks:
        listing.setdefault(task.family, []).append(task.id)
        path = base / "examples" / task.family / f"{task.id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        body = {
            "id": task.id,
            "snapshot": task.family,
            "instruction": task.instruction,
            "source": f"examples/pages/{task.page}",
            "config": [
                {"type": "open_page", "parameters": {"page": task.page + task.fragment, "size_px": task.size_px}}
            ],
            "related_apps": [task.family],
            "evaluator": {"func": "page_state", "expected": list(task.success)},
        }
        path.write_text(json.dumps(body, indent=2) + "\n", "utf-8")
    (base / "test_all.json").write_text(json.dumps(listing, indent=2) + "\n", "utf-8")
