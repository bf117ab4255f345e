"""The shipped example runs agree with themselves, and can be recorded again with the same truth."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RUNS = sorted(path.parent for path in (EXAMPLES / "runs").glob("*/*/*/truth.json"))
KINDS = {
    "correct": 7,
    "wrong_element": 3,
    "no_effect_click": 3,
    "wrong_field": 3,
    "loop": 3,
    "stopped_early": 3,
    "recovered": 2,
}
MAX_TOTAL_BYTES = 8 * 1024 * 1024
SMALL_PX = (160, 90)
MAX_GREY_DIFF = 3.0
DURATION_S = (8.0, 40.0)

every_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.relative_to(EXAMPLES / "runs").as_posix())


@cache
def truth_of(run: Path) -> dict[str, Any]:
    """The run's truth.json."""
    return json.loads((run / "truth.json").read_text("utf-8"))


@cache
def rows_of(run: Path) -> list[dict[str, Any]]:
    """The run's traj.jsonl."""
    return [json.loads(line) for line in (run / "traj.jsonl").read_text("utf-8").splitlines()]


def small_grey(picture: Image.Image) -> np.ndarray:
    """A picture made small and grey, for comparing."""
    return np.asarray(picture.convert("L").resize(SMALL_PX, Image.Resampling.BOX), dtype=np.int16)


@cache
def decoded(run: Path) -> tuple[list[tuple[float, np.ndarray]], float, tuple[int, int]]:
    """The video's frames with their times, its duration in seconds, and its size."""
    with av.open(str(run / "recording.mp4")) as container:
        size = (container.streams.video[0].width, container.streams.video[0].height)
        frames = [(float(frame.time), small_grey(frame.to_image())) for frame in container.decode(video=0)]
        return frames, (container.duration or 0) / av.time_base, size


def test_there_are_24_runs_with_every_kind_in_both_sets() -> None:
    truths = [truth_of(run) for run in RUNS]
    assert len(truths) == 24
    assert Counter(truth["kind"] for truth in truths) == KINDS
    for name, families in {"written_with": {"mail", "settings"}, "held_out": {"shop", "table"}}.items():
        chosen = [truth for truth in truths if truth["set"] == name]
        assert len(chosen) == 12
        assert {truth["family"] for truth in chosen} == families
        assert {truth["kind"] for truth in chosen} == set(KINDS)


def test_several_tasks_are_attempted_by_more_than_one_agent() -> None:
    attempts = Counter(run.name for run in RUNS)
    assert sum(count > 1 for count in attempts.values()) >= 3
    assert len({run.parent.parent.name for run in RUNS}) >= 2


def test_every_sort_of_action_occurs() -> None:
    actions = "\n".join(row["action"] for run in RUNS for row in rows_of(run))
    names = ["click", "doubleClick", "rightClick", "moveTo", "dragTo", "scroll", "write", "press", "hotkey"]
    missing = [name for name in names if f"pyautogui.{name}(" not in actions]
    assert not missing
    assert {"WAIT", "DONE", "FAIL"} <= set(actions.splitlines())


def test_total_size_is_small() -> None:
    files = [path for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < MAX_TOTAL_BYTES


def test_table_in_the_readme_is_in_step_with_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    readme = importlib.import_module("runmaker.readme")
    assert readme.table(EXAMPLES) in (EXAMPLES / "README.md").read_text("utf-8")


@every_run
def test_files_agree(run: Path) -> None:
    truth, rows = truth_of(run), rows_of(run)
    assert len(rows) == len(truth["action_at_s"]) == len(truth["screenshot_at_s"])
    assert {path.name for path in run.glob("*.png")} == {row["screenshot_file"] for row in rows}
    size = decoded(run)[2]
    for row in rows:
        assert row["screenshot_file"] == f"step_{row['step_num']}_{row['action_timestamp']}.png"
        with Image.open(run / row["screenshot_file"]) as picture:
            picture.load()
            assert picture.size == size
        for x, y in re.findall(r"x=(\d+), y=(\d+)", row["action"]):
            assert 0 <= int(x) < size[0] and 0 <= int(y) < size[1]
    numbers = [row["step_num"] for row in rows]
    assert numbers[0] == 1
    assert {b - a for a, b in itertools.pairwise(numbers)} <= {0, 1}
    assert (rows[-1]["action"] == "DONE") == (truth["kind"] != "stopped_early")
    assert [row["done"] for row in rows] == [row["action"] in ("DONE", "FAIL") for row in rows]


@every_run
def test_task_and_result_fit_the_run(run: Path) -> None:
    truth, family = truth_of(run), run.parent.name
    path = EXAMPLES / "evaluation_examples" / "examples" / family / f"{run.name}.json"
    task = json.loads(path.read_text("utf-8"))
    assert truth["family"] == family == task["snapshot"]
    assert task["id"] == run.name and task["instruction"]
    listing = json.loads((EXAMPLES / "evaluation_examples" / "test_all.json").read_text("utf-8"))
    assert run.name in listing[family]
    result = float((run / "result.txt").read_text("utf-8"))
    assert (result == 1.0) == (truth["outcome"] == "correct")


@every_run
def test_truth_is_consistent(run: Path) -> None:
    truth, duration_s = truth_of(run), decoded(run)[1]
    errors, actions = truth["error_steps"], truth["action_at_s"]
    assert truth["first_error_step"] == (errors[0] if errors else None)
    assert errors == sorted(set(errors)) and all(0 <= i < len(actions) for i in errors)
    assert (truth["outcome"] == "correct") == (truth["kind"] in ("correct", "recovered"))
    assert bool(errors) == (truth["deviation"] is not None)
    assert truth["checks"] and all(check["passed"] for check in truth["checks"])
    if errors:
        deviation = truth["deviation"]
        assert deviation["start_s"] == actions[errors[0]]
        assert deviation["start_s"] < deviation["end_s"] <= duration_s + 0.1
        assert (deviation["end_s"] < actions[-1]) == (truth["kind"] == "recovered")
    if truth["kind"] == "loop":
        repeated = [rows_of(run)[i]["action"] for i in errors]
        assert len(repeated) >= 3 and len(set(repeated)) == 1


@every_run
def test_times_lie_within_the_video(run: Path) -> None:
    truth, rows = truth_of(run), rows_of(run)
    frames, duration_s, _ = decoded(run)
    assert DURATION_S[0] <= duration_s <= DURATION_S[1]
    assert frames[0][0] == 0.0
    assert duration_s - frames[-1][0] < 0.2
    actions, shots = truth["action_at_s"], truth["screenshot_at_s"]
    moments = [moment for pair in zip(actions, shots, strict=True) for moment in pair]
    assert all(a < b for a, b in itertools.pairwise(moments))
    assert actions[0] > 1.0 and moments[-1] < duration_s
    stamps = [datetime.strptime(row["action_timestamp"], "%Y%m%d@%H%M%S%f") for row in rows]
    for stamp, action_s in zip(stamps, actions, strict=True):
        assert (stamp - stamps[0]).total_seconds() == pytest.approx(action_s - actions[0], abs=0.002)


@every_run
def test_screenshots_match_the_video(run: Path) -> None:
    frames = decoded(run)[0]
    for row, at_s in zip(rows_of(run), truth_of(run)["screenshot_at_s"], strict=True):
        shown = next(picture for time_s, picture in reversed(frames) if time_s <= at_s)
        with Image.open(run / row["screenshot_file"]) as picture:
            assert np.abs(small_grey(picture) - shown).mean() < MAX_GREY_DIFF


@every_run
def test_steps_without_effect_leave_the_picture_as_it_was(run: Path) -> None:
    truth, rows = truth_of(run), rows_of(run)
    if truth["kind"] not in ("loop", "no_effect_click"):
        pytest.skip("no step of this run is without effect")
    frames = decoded(run)[0]
    for i in truth["error_steps"]:
        before = next(picture for time_s, picture in reversed(frames) if time_s <= truth["action_at_s"][i])
        with Image.open(run / rows[i]["screenshot_file"]) as picture:
            assert np.abs(small_grey(picture) - before).mean() < MAX_GREY_DIFF


@pytest.mark.browser
def test_a_run_can_be_recorded_again(tmp_path: Path) -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        pytest.skip("no Chromium: set $CHROMIUM")
    name = "demo-agent-c/shop/shop-phone-cushions"
    command = [sys.executable, str(EXAMPLES / "record.py"), "--only", name, "--out", str(tmp_path)]
    done = subprocess.run([*command, "--chromium", chromium], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    shipped, again = EXAMPLES / "runs" / name, tmp_path / "runs" / name
    keys = ("outcome", "kind", "first_error_step", "error_steps", "checks")
    assert {key: truth_of(again)[key] for key in keys} == {key: truth_of(shipped)[key] for key in keys}
    assert [row["action"] for row in rows_of(again)] == [row["action"] for row in rows_of(shipped)]
    assert (again / "result.txt").read_text("utf-8") == (shipped / "result.txt").read_text("utf-8")


def test_an_unknown_run_is_named_in_the_error(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "record.py"), "--only", "no-such-run", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "no run is called 'no-such-run'" in done.stderr
    assert not any(tmp_path.iterdir())
