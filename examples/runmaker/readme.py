"""The table of runs in README.md, made from the runs' files."""

from __future__ import annotations

import json
from pathlib import Path

import av

BEGIN, END = "<!-- runs: begin -->", "<!-- runs: end -->"


def duration_s(path: Path) -> float:
    """Length of a recording."""
    with av.open(str(path)) as container:
        return (container.duration or 0) / av.time_base


def table(out: Path) -> str:
    """One row per recorded run, in the order of their folders."""
    lines = ["| Run | Kind | Outcome | First wrong line | Lines | Seconds | Result | Set |", "|" + "---|" * 8]
    for path in sorted((out / "runs").glob("*/*/*/truth.json")):
        truth, folder = json.loads(path.read_text("utf-8")), path.parent
        first = "-" if truth["first_error_step"] is None else str(truth["first_error_step"])
        result = (folder / "result.txt").read_text("utf-8").strip()
        cells = [
            f"`{folder.relative_to(out / 'runs').as_posix()}`",
            truth["kind"],
            truth["outcome"],
            first,
            str(len(truth["action_at_s"])),
            f"{duration_s(folder / 'recording.mp4'):.1f}",
            result,
            truth["set"],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def update_table(out: Path) -> None:
    """Write the table between the two marks of README.md."""
    path = out / "README.md"
    text = path.read_text("utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n{table(out)}\n{END}{tail}", "utf-8")
