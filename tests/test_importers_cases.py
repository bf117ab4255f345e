"""Real trajectories, where they lie beside the repository: imported or refused as they should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reviewer.importers import Refusal, find
from reviewer.trajectory import ActionKind, Trajectory

CASES = Path(os.environ.get("REVIEWER_CASES") or Path(__file__).resolve().parents[2] / "shared" / "cases")

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the real trajectories are not here")


def only(path: str) -> Trajectory:
    items = list(find([CASES / path]))
    (item,) = items
    assert isinstance(item, Trajectory), item
    return item


def test_a_claude_run_shows_text_keys_and_points() -> None:
    trajectory = only("synthetic/osworld_claude_dict")
    actions = [step.actions[0] for step in trajectory.steps]
    assert [action.kind for action in actions] == [
        ActionKind.SCREENSHOT,
        ActionKind.CLICK,
        ActionKind.TYPE,
        ActionKind.KEY,
        ActionKind.SCROLL,
        ActionKind.FINISH,
    ]
    assert actions[1].points[0].fraction == pytest.approx((1890 / 1920, 87 / 1080), abs=0.001)
    assert actions[2].text == 'Bing é 中文 "q"'
    assert [step.source_number for step in trajectory.steps] == ["1", "2", "2", "3", "4", "5"]
    assert (trajectory.score, trajectory.agent) == (1.0, "claude-sonnet-4-5-20250929")
    assert all(observation.path for observation in trajectory.observations[1:])
    assert trajectory.video_path is not None


def test_a_killed_run_keeps_what_it_wrote() -> None:
    trajectory = only("synthetic/osworld_killed")
    assert (len(trajectory.steps), trajectory.score) == (3, None)
    told = {(problem.file, problem.line) for problem in trajectory.problems}
    assert {("traj.jsonl", 4), ("traj.jsonl", 3), ("result.txt", None)} <= told


def test_a_relative_is_refused_by_name() -> None:
    (item,) = find([CASES / "synthetic" / "windows_agent_arena"])
    assert isinstance(item, Refusal) and "Windows Agent Arena" in item.problems[0].message


def test_a_folder_of_screenshots_has_its_task_from_the_readme() -> None:
    trajectory = only("plain_screenshots")
    assert (len(trajectory.steps), trajectory.task) == (6, "Open Notepad and Type Hello World")
    assert all(observation.width_px for observation in trajectory.observations)


@pytest.mark.parametrize("path", ["recordings", "agentnet/raw_recorder"])
def test_plain_recordings_are_imported(path: str) -> None:
    trajectory = only(path)
    assert (trajectory.format, len(trajectory.steps), bool(trajectory.video_path)) == ("video", 0, True)


REFUSED = {
    "audio_only.mp3",
    "chunk_out_of_range.mp4",
    "gen_truncated_no_moov.mp4",
    "opus_audio_only_fragmented.mp4",
    "zero_empty_stsc.mp4",
    "zero_length.webm",
}


def test_odd_videos_are_imported_or_refused_by_name() -> None:
    items = list(find([CASES / "videos_odd"]))
    assert {item.problems[0].file for item in items if isinstance(item, Refusal)} == REFUSED
    assert len(items) == sum(path.suffix != ".txt" for path in (CASES / "videos_odd").iterdir())


def test_nothing_real_stops_an_import() -> None:
    paths = sorted(path for path in CASES.iterdir() if path.name != "videos_odd")
    for item in find(paths):
        if isinstance(item, Trajectory):
            assert Trajectory.from_json(item.to_json()) == item
        else:
            assert item.problems
