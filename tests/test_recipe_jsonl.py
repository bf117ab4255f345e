"""The jsonl recipe, and its way back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs_on_disk import line, write_osworld, write_picture, write_video

from reviewer.exported import ExportedTrajectory, from_line, to_line
from reviewer.importers import Refusal, find
from reviewer.recipes import RECIPES, ExportRefused
from reviewer.recipes.jsonl import LINES, MANIFEST, line_text, write
from reviewer.trajectory import Trajectory

SPAN = {"span_id": "s1", "start_s": 1.0, "end_s": 2.0, "reason": "wrong menu – 😀"}
REVIEW: dict[str, Any] = {
    "reviewer": "ana",
    "verified": False,
    "status": "submitted",
    "outcome": "incorrect",
    "spans": [SPAN],
    "step_labels": {"0": {"label": "-", "reason": ""}},
    "first_error": {"step_index": 0, "reason": ""},
    "notes": {"run": "a note"},
    "better_actions": {"0": "pyautogui.click(1, 2)"},
    "ops": [{"op_id": "o1", "rev": 1, "type": "set_outcome", "body": {"value": "incorrect"}, "shown": ["j1"]}],
}
JUDGEMENT = {"judge": "screen_rules", "fingerprint": "f", "outcome": "incorrect", "raw": "because\u2028of this"}
ALIGNMENT = {"version": 1, "step_at_s": [0.0, 1.0, 2.0]}
MEDIA = {"name": "recording.mp4", "clock": {"num": 1, "den": 5, "count": 20}, "duration_s": 4.0}


@pytest.fixture
def trajectory(tmp_path: Path) -> Trajectory:
    folder = write_osworld(tmp_path / "runs", [line(1, "pyautogui.click(1, 2)"), line(2, "WAIT"), line(3, "DONE")])
    write_video(folder / "recording.mp4")
    (found,) = find([folder], task="Do it – №1 😀")
    assert isinstance(found, Trajectory)
    return found


@pytest.fixture
def exported(trajectory: Trajectory) -> ExportedTrajectory:
    return ExportedTrajectory(trajectory, MEDIA, ALIGNMENT, [REVIEW], [JUDGEMENT])


def read_back(*paths: Path, **options: Any) -> Trajectory:
    (found,) = find(paths, **options)
    assert isinstance(found, Trajectory), found
    return found


def test_an_export_holds_a_line_for_each_trajectory_and_says_what_it_holds(
    exported: ExportedTrajectory, tmp_path: Path
) -> None:
    target = tmp_path / "out" / "export"
    manifest = RECIPES["jsonl"]([exported, exported], target)
    data = (target / LINES).read_bytes()
    assert [json.loads(text)["task"] for text in data.decode().splitlines()] == ["Do it – №1 😀"] * 2
    document = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    assert document["counts"] == {"trajectories": 2, "reviews": 2, "submitted": 2, "overrides": 2, "judgements": 2}
    assert document["files"] == [{"name": LINES, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}]
    assert manifest.counts == document["counts"]
    assert sorted(path.name for path in target.iterdir()) == [MANIFEST, LINES]


def test_spans_also_say_their_pictures_and_steps(exported: ExportedTrajectory) -> None:
    (span,) = to_line(exported)["reviews"][0]["spans"]
    assert (span["start_frame"], span["end_frame"]) == (5, 10)
    assert (span["first_step"], span["last_step"]) == (1, 1)
    bare = to_line(replace(exported, media=None, alignment=None))["reviews"][0]["spans"][0]
    assert [bare[key] for key in ("start_frame", "end_frame", "first_step", "last_step")] == [None] * 4


@pytest.mark.parametrize(
    ("start_s", "end_s", "steps"),
    [(0.0, 1.0, (0, 0)), (0.5, 1.5, (0, 1)), (2.5, 4.0, (2, 2)), (0.0, 4.0, (0, 2))],
)
def test_a_span_covers_the_steps_that_run_in_it(
    exported: ExportedTrajectory, start_s: float, end_s: float, steps: tuple[int, int]
) -> None:
    review = {**REVIEW, "spans": [{**SPAN, "start_s": start_s, "end_s": end_s}]}
    (span,) = to_line(replace(exported, reviews=[review]))["reviews"][0]["spans"]
    assert (span["first_step"], span["last_step"]) == steps


def test_an_exported_line_reads_back_as_it_was(exported: ExportedTrajectory) -> None:
    back = from_line(json.loads(line_text(to_line(exported))))
    assert back.trajectory == exported.trajectory
    assert (back.media, back.alignment, back.judgements) == (MEDIA, ALIGNMENT, [JUDGEMENT])
    assert back.reviews[0]["ops"] == REVIEW["ops"]
    assert to_line(back) == to_line(exported)


def test_importing_an_export_restores_the_trajectory_and_all_that_was_said(
    exported: ExportedTrajectory, tmp_path: Path
) -> None:
    write([exported], tmp_path / "export")
    back = read_back(tmp_path / "export", follow_paths=True)
    said = back.extra["export"]
    assert replace(back, extra=exported.trajectory.extra) == exported.trajectory
    assert (said["reviews"][0]["ops"], said["judgements"], said["alignment"]) == (REVIEW["ops"], [JUDGEMENT], ALIGNMENT)


def test_media_beside_an_export_are_found_after_a_move(exported: ExportedTrajectory, tmp_path: Path) -> None:
    write([exported], tmp_path / "export")
    for observation in exported.trajectory.observations:
        if observation.path:
            observation.path.rename(tmp_path / "export" / observation.path.name)
    back = read_back(tmp_path / "export")
    assert [bool(item.path) for item in back.observations] == [False, True, True, True]
    assert all(item.path.parent == tmp_path / "export" for item in back.observations if item.path)
    assert back.video_path is None
    assert "recording.mp4 is not beside the file" in back.problems[-1].message


def test_text_that_utf8_or_a_line_reader_cannot_hold_is_kept_readable(exported: ExportedTrajectory) -> None:
    odd = replace(exported, trajectory=replace(exported.trajectory, task="a\ud800b\0c\u2028d\x85e 😀"))
    text = line_text(to_line(replace(odd, judgements=[{"p": float("nan"), "q": [float("inf")], "path": Path("/x")}])))
    assert len(text.splitlines()) == 1
    document = json.loads(text.encode().decode())
    assert document["task"] == "a\ufffdb\ufffdc\u2028d\x85e 😀"
    assert document["judgements"] == [{"p": None, "q": [None], "path": "/x"}]


def test_an_earlier_export_is_replaced_and_other_files_stay(exported: ExportedTrajectory, tmp_path: Path) -> None:
    write([exported, exported], tmp_path / "export")
    (tmp_path / "export" / "notes.txt").write_text("mine")
    write([exported], tmp_path / "export")
    assert len((tmp_path / "export" / LINES).read_text(encoding="utf-8").splitlines()) == 1
    assert (tmp_path / "export" / "notes.txt").read_text() == "mine"


def test_an_export_that_fails_leaves_the_earlier_one(exported: ExportedTrajectory, tmp_path: Path) -> None:
    def broken() -> Iterator[ExportedTrajectory]:
        yield exported
        raise RuntimeError("the database went away")

    write([exported], tmp_path / "export")
    before = {path.name: path.read_bytes() for path in (tmp_path / "export").iterdir()}
    with pytest.raises(RuntimeError):
        write(broken(), tmp_path / "export")
    with pytest.raises(RuntimeError):
        write(broken(), tmp_path / "new")
    assert {path.name: path.read_bytes() for path in (tmp_path / "export").iterdir()} == before
    assert not (tmp_path / "new").exists()


def test_a_folder_with_other_things_and_a_file_are_refused(exported: ExportedTrajectory, tmp_path: Path) -> None:
    write_picture(tmp_path / "photos" / "1.png")
    for target in (tmp_path / "photos", tmp_path / "photos" / "1.png", tmp_path / "photos" / "1.png" / "x"):
        with pytest.raises(ExportRefused, match="choose"):
            write([exported], target)
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["1.png"]


def test_an_export_left_half_written_is_written_again(exported: ExportedTrajectory, tmp_path: Path) -> None:
    left = tmp_path / f".{LINES}.{'0' * 32}.partial"
    left.write_text("half")
    target = tmp_path / "export"
    target.mkdir()
    left.rename(target / left.name)
    assert write([exported], target).counts["trajectories"] == 1


BREAKAGES: list[dict[str, Any]] = [
    {"version": 2},
    {"steps": [{}]},
    {"steps": 5},
    {"steps": []},
    {"id": "../../x"},
    {"task": None},
    {"score": "1"},
    {"observations": []},
    {"reviews": {}},
    {"judgements": [1]},
    {"media": []},
    {"extra": []},
    {"problems": [{"file": 1, "message": "x", "line": None}]},
    {"video_path": 7},
]


@pytest.mark.parametrize("change", BREAKAGES, ids=str)
def test_a_line_that_was_tampered_with_is_refused_with_its_key(
    exported: ExportedTrajectory, tmp_path: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({**to_line(exported), **change}))
    (item,) = find([path])
    assert isinstance(item, Refusal)
    assert item.problems[0].line == 1


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_note_can_be_exported(value: Any) -> None:
    trajectory = Trajectory("0" * 16, "video", "/x", "t", (), ())
    text = line_text(to_line(ExportedTrajectory(trajectory, reviews=[{"notes": value}])))
    assert len(text.encode().decode().splitlines()) == 1
    assert from_line(json.loads(text)).trajectory == trajectory
