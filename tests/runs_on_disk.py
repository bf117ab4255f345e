"""Runs as agents leave them on disk, small enough to be made for each test."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

TASK_ID = "0123abcd-1111-2222-3333-444455556666"


def write_picture(path: Path, size_px: tuple[int, int] = (64, 36), shade: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size_px, (shade, shade, shade)).save(path)
    return path


def write_video(path: Path, pictures: int = 5) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(5))
        stream.width, stream.height, stream.pix_fmt = 64, 36, "yuv420p"
        for index in range(pictures):
            frame = av.VideoFrame.from_ndarray(np.full((36, 64, 3), index * 40, dtype=np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def line(number: int, action: Any, **more: Any) -> dict[str, Any]:
    """One line of ``traj.jsonl``, ten seconds after the one before."""
    stamp = f"20250929@1015{number:02d}"
    return {
        "step_num": number,
        "action_timestamp": stamp,
        "action": action,
        "response": f"Thought {number}",
        "reward": 0,
        "done": False,
        "info": {},
        "screenshot_file": f"step_{number}_{stamp}.png",
        **more,
    }


def write_osworld(
    root: Path, lines: list[Any], *, pictures: bool = True, result: str | None = "1.0\n", args: bool = False
) -> Path:
    """A result folder below ``root`` with a picture for each line; answers the folder."""
    model = root / "results" / "pyautogui" / "screenshot" / "maker" / "model-7b"
    folder = model / "chrome" / TASK_ID
    folder.mkdir(parents=True)
    if args:
        (model / "args.json").write_text(json.dumps({"model": "a-model", "screen_width": 1280, "screen_height": 800}))
    text = "".join(item if isinstance(item, str) else f"{json.dumps(item)}\n" for item in lines)
    (folder / "traj.jsonl").write_text(text, encoding="utf-8")
    for index, item in enumerate(lines):
        if pictures and isinstance(item, dict) and item.get("screenshot_file"):
            write_picture(folder / item["screenshot_file"], shade=index)
    if result is not None:
        (folder / "result.txt").write_text(result)
    return folder


def write_task_definition(root: Path, instruction: str) -> Path:
    folder = root / "evaluation_examples" / "examples" / "chrome"
    folder.mkdir(parents=True)
    (folder / f"{TASK_ID}.json").write_text(json.dumps({"id": TASK_ID, "instruction": instruction}), encoding="utf-8")
    return root / "evaluation_examples"
