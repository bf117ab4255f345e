"""Storing what was imported: once, again, changed, moved, and with what people did to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from PIL import Image
from runs_on_disk import line, write_osworld, write_picture, write_task_definition, write_video
from sqlalchemy import func, select

from db.models import AlignmentRow, JobRow, JudgementRow, MediaRow, TrajectoryRow
from db.session import Database
from reviewer import alignment_versions, ledger
from reviewer.detail import detail
from reviewer.errors import ReviewerError
from reviewer.intake import import_paths
from reviewer.judges import DEFAULT_JUDGE, known
from reviewer.library import Library
from reviewer.trajectory import Action, ActionKind, CoordinateSpace, Observation, Point, Step, Trajectory

LINES = [line(1, "pyautogui.click(32, 18)"), line(2, "pyautogui.typewrite('hi')"), line(3, "DONE")]


@pytest.fixture
def library(database: Database, tmp_path: Path) -> Library:
    return Library(database, tmp_path / "home")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_osworld(tmp_path / "in", LINES)


@pytest.fixture
def run_with_video(run: Path) -> Path:
    write_video(run / "recording.mp4")
    return run


def records(library: Library, *paths: Path, **options: Any) -> list[dict[str, Any]]:
    return list(import_paths(library, paths, is_trusted=True, **options))


def detail_of(library: Library, trajectory_id: str, reviewer: str = "ada") -> dict[str, Any]:
    with library.database.read() as session:
        return detail(session, trajectory_id, reviewer)


def count(library: Library, table: type[Any]) -> int:
    with library.database.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def say(library: Library, trajectory_id: str, base_rev: int = 0, **op: Any) -> None:
    with library.database.write() as session:
        ledger.append(
            session, trajectory_id, "ada", {"op_id": f"op-{base_rev}", "base_rev": base_rev, "shown": []} | op
        )


def pin(library: Library, trajectory_id: str, step_index: int, at_s: float) -> None:
    with library.database.write() as session:
        newest = alignment_versions.newest(session, trajectory_id)
        assert newest is not None
        pins = [{"step_index": step_index, "at_s": at_s}]
        alignment_versions.correct(session, trajectory_id, newest.version, pins, 0.0, "ada")


def test_a_run_with_video_is_stored_and_told(library: Library, run_with_video: Path, tmp_path: Path) -> None:
    write_task_definition(tmp_path / "in", "Click and type hi")
    (record,) = records(library, tmp_path / "in")
    assert record == {
        "id": record["id"],
        "format": "osworld",
        "source": str(run_with_video),
        "task": "Click and type hi",
        "steps": 3,
        "video": {"width": 64, "height": 36, "duration_s": pytest.approx(1.0, abs=0.01)},
        "score": 1.0,
        "outcome": "correct",
        "problems": [],
    }
    assert len(record["id"]) == 16


def test_the_detail_has_points_as_fractions_and_media_by_opaque_id(library: Library, run_with_video: Path) -> None:
    (record,) = records(library, run_with_video)
    shown = detail_of(library, record["id"])
    assert shown["trajectory"]["steps"][0]["actions"][0]["points"] == [{"x": 0.5, "y": 0.5}]
    assert str(run_with_video) not in json.dumps([shown["media"], shown["trajectory"]["observations"]])
    assert [observation["url"] is None for observation in shown["trajectory"]["observations"]] == [
        True,
        False,
        False,
        False,
    ]
    assert shown["media"]["url"] == f"/review/media/{shown['media']['media_id']}"
    assert shown["alignment"]["version"] == 1
    assert len(shown["alignment"]["step_at_s"]) == 3
    assert shown["review"]["status"] == "unreviewed"
    assert shown["judgements"] == []


def test_a_run_without_video_plays_one_second_per_picture(library: Library, run: Path) -> None:
    (record,) = records(library, run)
    media = detail_of(library, record["id"])["media"]
    assert record["video"] is None
    assert media["is_proxy"]
    assert media["duration_s"] == pytest.approx(4.0, abs=0.01)
    assert media["clock"] == {"num": 1, "den": 1, "count": 4}


def test_a_thumbnail_is_made_and_the_originals_are_left_alone(library: Library, run_with_video: Path) -> None:
    before = {path: path.read_bytes() for path in run_with_video.iterdir()}
    (record,) = records(library, run_with_video)
    with library.database.read() as session:
        row = session.get_one(TrajectoryRow, record["id"])
        thumbnail = session.get_one(MediaRow, row.thumbnail_id)
    with Image.open(thumbnail.path) as image:
        assert image.size == (64, 36)
    assert Path(thumbnail.path).is_relative_to(library.media_folder)
    assert {path: path.read_bytes() for path in run_with_video.iterdir()} == before


def test_a_broken_video_beside_pictures_is_a_problem(library: Library, run: Path) -> None:
    (run / "recording.mp4").write_bytes(b"\0\0\0\x20ftypisom" + b"\0" * 100)
    (record,) = records(library, run)
    assert record["id"] is not None
    assert [problem["file"] for problem in record["problems"] if "without it" in problem["message"]] == [
        "recording.mp4"
    ]
    assert detail_of(library, record["id"])["media"]["duration_s"] == pytest.approx(4.0, abs=0.01)


def test_a_broken_plain_video_is_refused_and_stops_nothing(library: Library, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.mp4").write_bytes(b"\0\0\0\x20ftypisom" + b"\0" * 100)
    write_video(tmp_path / "in" / "b.mp4")
    refused, stored = records(library, tmp_path / "in", task="Watch")
    assert refused["id"] is None
    assert refused["problems"][-1]["file"] == "a.mp4"
    assert (stored["task"], stored["format"]) == ("Watch", "video")
    assert count(library, TrajectoryRow) == 1


def test_a_broken_picture_is_a_problem(library: Library, run: Path) -> None:
    broken = sorted(run.glob("*.png"))[1]
    broken.write_bytes(b"no picture")
    (record,) = records(library, run)
    observations = detail_of(library, record["id"])["trajectory"]["observations"]
    assert [observation["url"] is None for observation in observations] == [True, False, True, False]
    assert any(broken.name in problem["message"] for problem in record["problems"])


def test_importing_again_changes_nothing(library: Library, run: Path) -> None:
    first = records(library, run)
    say(library, first[0]["id"], type="set_outcome", value="incorrect")
    before = detail_of(library, first[0]["id"])
    assert records(library, run) == first
    assert detail_of(library, first[0]["id"]) == before
    assert count(library, AlignmentRow) == 1


def test_a_changed_source_keeps_its_id_and_all_that_people_did(library: Library, run: Path) -> None:
    (first,) = records(library, run)
    say(library, first["id"], type="label_step", step_index=0, label="-")
    pin(library, first["id"], 1, 1.5)
    with (run / "traj.jsonl").open("a") as file:
        file.write(json.dumps(line(4, "DONE")) + "\n")
    write_picture(run / LINES[0]["screenshot_file"], shade=200)
    (second,) = records(library, run)
    shown = detail_of(library, first["id"])
    assert (second["id"], second["steps"]) == (first["id"], 4)
    assert "changed since the import of 20" in second["problems"][-1]["message"]
    assert shown["trajectory"]["revision"] == 2
    assert shown["review"]["step_labels"] == {"0": {"label": "-", "reason": ""}}
    assert shown["alignment"]["step_at_s"][1] == 1.5
    assert (shown["alignment"]["version"], shown["alignment"]["author"]) == (3, "ada")
    assert count(library, TrajectoryRow) == 1
    assert records(library, run)[0] == second


def test_a_moved_run_is_linked_to_its_new_place(library: Library, run_with_video: Path, tmp_path: Path) -> None:
    (first,) = records(library, run_with_video)
    moved = tmp_path / "elsewhere" / "results" / "a" / "chrome" / run_with_video.name
    moved.parent.mkdir(parents=True)
    run_with_video.rename(moved)
    (second,) = records(library, moved)
    assert (second["id"], second["source"]) == (first["id"], str(moved))
    assert detail_of(library, first["id"])["trajectory"]["revision"] == 1
    with library.database.read() as session:
        paths = session.scalars(select(MediaRow.path)).all() + session.scalars(select(MediaRow.original_path)).all()
    assert all(Path(path).exists() for path in paths if path)


def test_a_task_that_was_missing_is_added_later(library: Library, run: Path, tmp_path: Path) -> None:
    (first,) = records(library, run)
    write_task_definition(tmp_path / "in", "Click and type hi")
    (second,) = records(library, tmp_path / "in")
    assert (first["task"], second["task"], second["problems"]) == ("", "Click and type hi", [])
    (third,) = records(library, run)
    assert third == second
    assert detail_of(library, first["id"])["trajectory"]["revision"] == 1
    assert count(library, AlignmentRow) == 1


def test_media_that_were_deleted_are_made_again(library: Library, run: Path) -> None:
    (record,) = records(library, run)
    media = detail_of(library, record["id"])["media"]
    shutil.rmtree(library.media_folder)
    assert records(library, run) == [record]
    assert detail_of(library, record["id"])["media"] == media
    assert len(list(library.media_folder.iterdir())) == 2


def test_a_copy_beside_the_original_is_the_same_trajectory(library: Library, run: Path, tmp_path: Path) -> None:
    (first,) = records(library, run)
    copy = tmp_path / "copy" / "results" / "chrome" / run.name
    shutil.copytree(run, copy)
    (second,) = records(library, copy)
    assert second["source"] == str(copy)
    assert second["problems"][-1]["message"].startswith("the same run is in the library already")
    assert (second["id"], second["problems"][:-1]) == (first["id"], first["problems"])


def test_storing_asks_the_default_judge_once_per_revision(library: Library, run: Path) -> None:
    records(library, run)
    records(library, run)
    assert count(library, JobRow) == (1 if DEFAULT_JUDGE in known() else 0)


def test_an_export_restores_reviews_judgements_and_corrections(
    library: Library, run: Path, tmp_path: Path, database_url: str
) -> None:
    (record,) = records(library, run)
    say(library, record["id"], type="set_outcome", value="incorrect", reason="wrong window")
    pin(library, record["id"], 0, 0.25)
    with library.database.write() as session:
        document = {
            "outcome": "incorrect",
            "probability": 0.25,
            "spans": [],
            "step_labels": [{"step_index": 1, "label": "-", "reason": "nothing moved", "probability": None}],
            "raw": "",
            "frame_plan": None,
            "error": None,
            "revision": 1,
        }
        session.add(
            JudgementRow(
                id="j" * 24,
                trajectory_id=record["id"],
                judge="other",
                fingerprint="f",
                created_utc="2026-01-01T00:00:00+00:00",
                outcome="incorrect",
                error=None,
                document=document,
            )
        )
    library.export("jsonl", tmp_path / "export")
    before = detail_of(library, record["id"])

    other = Library(Database.open(f"sqlite:///{tmp_path / 'other.db'}"), tmp_path / "other")
    (restored,) = records(other, tmp_path / "export")
    assert restored["id"] == record["id"]
    after = detail_of(other, record["id"])
    for key in ("judgements", "review"):
        assert after[key] == before[key]
    assert after["alignment"]["step_at_s"][0] == 0.25
    assert after["alignment"]["author"] == "ada"
    assert records(other, tmp_path / "export") == [restored]
    other.database.close()


def test_a_problem_is_told_once_however_often_a_run_is_exported_and_imported(
    library: Library, run: Path, tmp_path: Path
) -> None:
    (run / "recording.mp4").write_bytes(b"\0\0\0\x20ftypisom" + b"\0" * 100)
    (first,) = records(library, run)
    problems = first["problems"]
    assert any(problem["file"] == "recording.mp4" for problem in problems)
    for number in range(2):
        library.export("jsonl", tmp_path / f"export-{number}")
        library = Library(Database.open(f"sqlite:///{tmp_path / f'{number}.db'}"), tmp_path / f"home-{number}")
        (again,) = records(library, tmp_path / f"export-{number}")
        assert again["problems"] == problems
        library.database.close()
        library = Library(Database.open(f"sqlite:///{tmp_path / f'{number}.db'}"), tmp_path / f"home-{number}")


def test_an_export_that_contradicts_what_is_here_is_refused_whole(library: Library, run: Path, tmp_path: Path) -> None:
    (record,) = records(library, run)
    say(library, record["id"], type="set_outcome", value="incorrect")
    library.export("jsonl", tmp_path / "export")
    lines = tmp_path / "export" / "trajectories.jsonl"
    lines.write_text(lines.read_text().replace("op-0", "op-x"))
    (refused,) = records(library, lines)
    assert refused["id"] is None
    assert "op-x" in refused["problems"][-1]["message"]
    assert detail_of(library, record["id"])["review"]["rev"] == 1


def test_an_unknown_recipe_or_id_is_told(library: Library, tmp_path: Path) -> None:
    with pytest.raises(ReviewerError, match="Known recipes: jsonl"):
        library.export("parquet", tmp_path / "export")
    with pytest.raises(ReviewerError, match="0000"):
        library.export("jsonl", tmp_path / "export", ["0000"])


def test_a_zip_is_imported_and_told_by_its_own_name(library: Library, run: Path, tmp_path: Path) -> None:
    archive = tmp_path / "runs.zip"
    with ZipFile(archive, "w") as file:
        for path in run.iterdir():
            file.write(path, f"chrome/{run.name}/{path.name}")
    (record,) = records(library, archive)
    assert record["source"] == f"{archive}/chrome/{run.name}"
    assert records(library, archive) == [record]


def test_a_zip_that_brings_nothing_new_leaves_nothing(library: Library, run: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        with ZipFile(tmp_path / name, "w") as file:
            for path in run.iterdir():
                file.write(path, f"chrome/{run.name}/{path.name}")
        records(library, tmp_path / name)
    assert len(list((library.home / "unpacked").iterdir())) == 1


def test_zips_in_a_folder_are_imported_and_a_bad_one_is_refused(library: Library, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "zips"
    folder.mkdir()
    with ZipFile(folder / "a.zip", "w") as file:
        file.writestr("../evil/traj.jsonl", "{}")
    with ZipFile(folder / "b.zip", "w") as file:
        for path in run.iterdir():
            file.write(path, f"{run.name}/{path.name}")
    refused, stored = records(library, folder)
    assert (refused["id"], refused["source"]) == (None, str(folder / "a.zip"))
    assert stored["id"] is not None
    assert not (library.home / "evil").exists()


def trajectory(path: Path, **values: Any) -> Trajectory:
    step = Step(0, (Action(ActionKind.CLICK, raw="click"),))
    observations = (Observation(0, path, 64, 36), Observation(1))
    return replace(Trajectory("a" * 16, "native", str(path), "task", (step,), observations), **values)


@pytest.mark.parametrize(
    "hostile",
    [
        lambda t: replace(t, task="a\0b\ud800", agent="\udcff"),
        lambda t: replace(t, score=float("nan"), extra={"x": float("inf"), "\ud800": ["\0"]}),
        lambda t: replace(t, steps=(Step(0, (_aimed(float("nan")), _aimed(10**400), _aimed(1e308, 1e-300))),)),
        lambda t: replace(t, steps=(Step(0, (_aimed(1.0, 0.0),), thought="<script>" * 9),)),
    ],
)
def test_hostile_values_are_stored_and_answered_as_json(
    any_database: Database, tmp_path: Path, hostile: Callable[[Trajectory], Trajectory]
) -> None:
    library = Library(any_database, tmp_path / "home")
    picture = write_picture(tmp_path / "p.png")
    record = library.store(hostile(trajectory(picture))).record
    shown = detail_of(library, record["id"])
    json.dumps([record, shown], allow_nan=False, ensure_ascii=False).encode()


def _aimed(x: float, width: float = 64.0) -> Action:
    return Action(ActionKind.CLICK, (Point(x, 1.0, CoordinateSpace.PIXEL, width, 36.0),))


def test_an_impossible_place_is_left_out(library: Library, tmp_path: Path) -> None:
    steps = (Step(0, (_aimed(float("inf")), _aimed(32.0))),)
    found = replace(trajectory(write_picture(tmp_path / "p.png")), steps=steps)
    shown = detail_of(library, library.store(found).record["id"])
    assert [action["points"] for action in shown["trajectory"]["steps"][0]["actions"]] == [
        [],
        [{"x": 0.5, "y": 1 / 36}],
    ]


def test_a_name_that_is_not_utf8_is_refused_with_the_fix(library: Library, tmp_path: Path) -> None:
    picture = write_picture(tmp_path / "p.png")
    odd = tmp_path / "p\udcff.png"
    shutil.copy(picture, odd)
    with pytest.raises(ReviewerError, match="rename"):
        library.store(trajectory(odd))


def test_a_correction_of_the_step_times_is_taken_back(library: Library, run: Path) -> None:
    (record,) = records(library, run)
    found = detail_of(library, record["id"])["alignment"]
    pin(library, record["id"], 1, found["step_at_s"][1] + 0.1)
    with library.database.write() as session:
        alignment_versions.take_back(session, record["id"], found["version"] + 1, "ada")
    restored = detail_of(library, record["id"])["alignment"]
    assert restored["version"] == found["version"] + 2
    assert restored["step_at_s"] == found["step_at_s"]
    with pytest.raises(ReviewerError, match="no correction"), library.database.write() as session:
        alignment_versions.take_back(session, record["id"], found["version"] + 2, "ada")
