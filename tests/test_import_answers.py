"""Every file that is given is answered for, by a name that means something to the person who gave it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from runs_on_disk import TASK_ID, line, write_osworld, write_picture, write_task_definition, write_video

from db.session import Database
from reviewer import job_queue, jobs
from reviewer.importers import Refusal, find
from reviewer.intake import import_paths
from reviewer.library import Library
from reviewer.trajectory import Trajectory

UPLOAD_ID = "u" * 24


@pytest.fixture
def library(database: Database, tmp_path: Path) -> Library:
    return Library(database, tmp_path / "home")


def zipped(path: Path, **files: str) -> Path:
    with ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def write_text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "zero.mp4": (write_text(""), "empty file"),
    "not.mp4": (write_text("words\n" * 99), "no video"),
    "lfs.mp4": (write_text("version https://git-lfs.github.com/spec/v1\nsize 1\n"), "git lfs pull"),
    "empty.json": (write_text(""), "empty file"),
    "empty.jsonl": (write_text(""), "empty file"),
    "cut.json": (write_text('{"task": "t", "steps": ['), "can be read"),
    "deep.json": (write_text("[" * 5000), "deeper than 100 levels"),
    "list.json": (write_text("[1, 2]"), "no object in it is a run"),
    "others.json": (write_text('[{"a": 1}]'), "no object in it is a run"),
    "others.jsonl": (write_text('{"a": 1}\n{"a": 2}\n'), "no object in it is a run"),
    "taskless.json": (write_text('{"steps": [{"action": "DONE"}], "video": "a.mp4"}'), 'no "task"'),
    "slip.zip": (lambda path: zipped(path, **{"../evil": "x"}), "outside the folder"),
    "hollow.zip": (lambda path: zipped(path, **{"notes.md": "x"}), "nothing to import in it"),
    "blank.zip": (lambda path: zipped(path), "nothing to import in it"),
    "junk.zip": (write_text("junk"), "not in a format"),
    "notes.md": (write_text("hello"), "not in a format"),
    "shot.png": (lambda path: write_picture(path), "not in a format"),
    "settings.json": (write_text('{"a": 1}'), "not in a format"),
}
WALKED = ["zero.mp4", "not.mp4", "lfs.mp4", "slip.zip", "hollow.zip", "blank.zip"] + [
    name for name in BAD if name.endswith((".json", ".jsonl")) and name != "settings.json"
]


def write_bad(folder: Path, names: list[str]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        BAD[name][0](folder / name)
    return [folder / name for name in names]


def problems_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [problem for record in records for problem in record["problems"]]


def uploaded(library: Library, fill: Callable[[Path], object]) -> list[dict[str, Any]]:
    files = library.uploads_folder / UPLOAD_ID / "files"
    files.mkdir(parents=True)
    fill(files)
    with library.database.write() as session:
        job_queue.enqueue(session, "upload", None, {"task": None}, job_id=UPLOAD_ID)
    jobs.run_one(library, UPLOAD_ID)
    with library.database.read() as session:
        (job,) = job_queue.states(session, [UPLOAD_ID])
    assert job["state"] == "done", job
    return list(job["result"]["records"])


def assert_refused(records: list[dict[str, Any]], names: list[str], prefix: str = "") -> None:
    told = {record["problems"][0]["file"]: record["problems"][0]["message"] for record in records if not record["id"]}
    assert sorted(told) == sorted(prefix + name for name in names)
    for name in names:
        assert BAD[name][1] in told[prefix + name]
    for problem in problems_of(records):
        assert Path(problem["file"]).name not in problem["message"]
        assert not Path(problem["file"]).is_absolute()


def test_each_file_given_by_name_is_answered(library: Library, tmp_path: Path) -> None:
    paths = write_bad(tmp_path / "in", list(BAD))
    good = write_video(tmp_path / "good.mp4")
    records = list(import_paths(library, [*paths, good], is_trusted=True, task="Watch"))
    assert len(records) == len(BAD) + 1
    assert_refused(records, list(BAD))


def test_each_file_of_an_upload_is_answered_without_the_servers_paths(library: Library) -> None:
    def fill(files: Path) -> None:
        write_bad(files, list(BAD))
        write_video(files / "good.mp4")
        (files / "good.txt").write_text("Watch")
        for name in ("README.md", "args.json", ".DS_Store"):
            (files / name).write_text("{}")

    records = uploaded(library, fill)
    assert [record["task"] for record in records if record["id"]] == ["Watch"]
    assert_refused(records, list(BAD))
    assert str(library.home) not in json.dumps(problems_of(records))


def test_an_upload_of_bad_files_alone_is_answered(library: Library) -> None:
    assert_refused(uploaded(library, lambda files: write_bad(files, list(BAD))), list(BAD))


@pytest.mark.parametrize("with_run", [False, True])
def test_a_folder_of_an_upload_that_gives_nothing_is_answered(library: Library, with_run: bool) -> None:
    def fill(files: Path) -> None:
        (files / "docs" / "deep").mkdir(parents=True)
        (files / "docs" / "deep" / "notes.md").write_text("hello")
        write_task_definition(files, "Click")
        if with_run:
            write_osworld(files / "mine", [line(1, "DONE")])

    records = uploaded(library, fill)
    refused = {record["problems"][0]["file"] for record in records if not record["id"]}
    assert refused == {"docs"} | (set() if with_run else {"evaluation_examples"})
    assert [record["task"] for record in records if record["id"]] == ["Click"] * with_run


@pytest.mark.parametrize("make", [write_osworld, None])
def test_the_files_of_one_run_uploaded_side_by_side_are_one_run(
    library: Library, tmp_path: Path, make: Callable[..., Path] | None
) -> None:
    if make:
        run = make(tmp_path, [line(1, "DONE")], result="1")
        (run / "runtime.log").write_text("x")
    else:
        run = tmp_path / "pictures"
        for number in range(3):
            write_picture(run / f"step_{number}.png", shade=number)
        (run / "README.md").write_text("Task: look")
    (record,) = uploaded(library, lambda files: shutil.copytree(run, files, dirs_exist_ok=True))
    assert record["id"]


def test_data_files_in_a_walked_folder_that_should_be_runs_are_told(library: Library, tmp_path: Path) -> None:
    write_bad(tmp_path / "in" / "sub", list(BAD))
    write_osworld(tmp_path / "in", [line(1, "DONE")])
    records = list(import_paths(library, [tmp_path / "in"], is_trusted=True))
    assert_refused(records, WALKED, prefix="sub/")


def test_companions_of_runs_are_not_told(tmp_path: Path) -> None:
    write_osworld(tmp_path, [line(1, "DONE")], args=True)
    write_task_definition(tmp_path, "Click")
    (tmp_path / "results" / "all_result.json").write_text("{'chrome': {'a': 1.0}}")
    (tmp_path / "results" / "args.json").write_text("")
    (tmp_path / "results" / "settings.json").write_text('{"steps": 50, "task": "chrome"}')
    recorder = tmp_path / "recorder"
    write_video(recorder / "a.mp4")
    (recorder / "events.jsonl").write_text('{"time": 1}\n{"time": 2}\n')
    (recorder / "html.jsonl").write_text("")
    assert [type(item) for item in find([tmp_path], task="t")] == [Trajectory, Trajectory]


def test_task_definitions_beside_results_are_quiet_and_alone_are_told(tmp_path: Path) -> None:
    examples = write_task_definition(tmp_path / "tasks", "Click")
    write_osworld(tmp_path, [line(1, "DONE")])
    for paths in ([tmp_path / "results", examples], [examples, tmp_path / "results"]):
        (run,) = find(paths)
        assert isinstance(run, Trajectory) and run.task == "Click"
    others = write_task_definition(tmp_path / "more", "Type")
    assert [type(item) for item in find([examples, others])] == [Refusal, Refusal]


def test_task_definitions_go_with_the_results_in_a_zip(library: Library, tmp_path: Path) -> None:
    examples = write_task_definition(tmp_path, "Click")
    run = write_osworld(tmp_path, [line(1, "DONE")])
    with ZipFile(tmp_path / "runs.zip", "w") as archive:
        for path in run.iterdir():
            archive.write(path, f"chrome/{TASK_ID}/{path.name}")
    (record,) = import_paths(library, [tmp_path / "runs.zip", examples], is_trusted=True)
    assert (record["task"], record["source"]) == ("Click", f"{tmp_path / 'runs.zip'}/chrome/{TASK_ID}")


def test_a_run_in_a_zip_tells_its_files_by_their_place_there(library: Library, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "runs.zip", **{"a/zero.mp4": "", "b/traj.jsonl": ""})
    records = list(import_paths(library, [archive], is_trusted=True))
    assert {record["problems"][0]["file"] for record in records} == {"a/zero.mp4", "traj.jsonl"}
    assert {record["source"] for record in records} == {f"{archive}/a/zero.mp4", f"{archive}/b"}
