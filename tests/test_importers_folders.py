"""Plain videos, numbered screenshots, and whatever else lies in a folder."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from runs_on_disk import line, write_osworld, write_picture, write_video

from reviewer.importers import Refusal, find
from reviewer.trajectory import ActionKind, Trajectory


def found(*paths: Path, **options: Any) -> list[Trajectory | Refusal]:
    return list(find(paths, **options))


def trajectory_of(*paths: Path, **options: Any) -> Trajectory:
    (item,) = found(*paths, **options)
    assert isinstance(item, Trajectory), item
    return item


def refusal_of(*paths: Path, **options: Any) -> Refusal:
    (item,) = found(*paths, **options)
    assert isinstance(item, Refusal), item
    assert item.problems
    return item


def write_screenshots(folder: Path, *names: str) -> Path:
    for index, name in enumerate(names):
        write_picture(folder / name, shade=index * 10)
    return folder


def test_a_video_has_no_steps_and_its_task_beside_it(tmp_path: Path) -> None:
    video = write_video(tmp_path / "run №1 #2.mp4")
    assert trajectory_of(video).problems[0].message == "No task text: give --task or a .txt beside it"
    (tmp_path / "task.txt").write_text("For all videos\n", encoding="utf-8")
    assert trajectory_of(tmp_path).task == "For all videos"
    (tmp_path / "run №1 #2.txt").write_bytes("\ufeffDo it – now\r\n".encode())
    trajectory = trajectory_of(tmp_path)
    assert (trajectory.format, trajectory.task, trajectory.problems) == ("video", "Do it – now", ())
    assert (trajectory.steps, trajectory.observations, trajectory.video_path) == ((), (), video)
    assert trajectory_of(tmp_path, task="By hand").task == "By hand"


def test_a_video_is_known_by_its_content(tmp_path: Path) -> None:
    video = write_video(tmp_path / "run.mp4").rename(tmp_path / "run.data")
    assert trajectory_of(video).format == "video"
    assert trajectory_of(tmp_path).format == "video"


@pytest.mark.parametrize(
    "content", [b"", b"just text\n" * 100, b"version https://git-lfs.github.com/spec/v1\nsize 1\n"]
)
def test_a_file_named_like_a_video_that_is_none_is_told(tmp_path: Path, content: bytes) -> None:
    write_video(tmp_path / "good.mp4")
    (tmp_path / "bad.mp4").write_bytes(content)
    bad, good = found(tmp_path)
    assert isinstance(bad, Refusal) and isinstance(good, Trajectory)
    assert bad.problems[0].file == "bad.mp4"


def test_a_cut_off_video_is_refused(tmp_path: Path) -> None:
    video = write_video(tmp_path / "run.mp4")
    video.write_bytes(video.read_bytes()[:400])
    assert refusal_of(video).problems[0].file == "run.mp4"


def test_screenshots_are_observations_in_natural_order(tmp_path: Path) -> None:
    folder = write_screenshots(
        tmp_path / "run", "step_10.png", "step_2.jpg", "step_1.webp", "step_reset.png", "logo.png"
    )
    (folder / "task.txt").write_text("Do it")
    trajectory = trajectory_of(tmp_path)
    assert [observation.path.name for observation in trajectory.observations if observation.path] == [
        "step_reset.png",
        "step_1.webp",
        "step_2.jpg",
        "step_10.png",
    ]
    assert (trajectory.format, trajectory.task, trajectory.problems) == ("screenshots", "Do it", ())
    assert [step.actions[0].kind for step in trajectory.steps] == [ActionKind.OTHER] * 3


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("# A run\n\nTask: **Open the menu**\n", "Open the menu"),
        ("> Goal: Find it\n", "Find it"),
        ("# Execution Trace: Open Notepad\n\nSteps: 6\n", "Open Notepad"),
        ("\n## Click around\n\nmore", "Click around"),
        ("The task: none", "The task: none"),
        ("\n\n---\n", ""),
    ],
)
def test_a_readme_tells_the_task(tmp_path: Path, text: str, task: str) -> None:
    write_screenshots(tmp_path, "1.png", "2.png")
    (tmp_path / "README.md").write_text(text)
    assert trajectory_of(tmp_path).task == task


def test_a_video_among_screenshots_is_the_video_of_the_run(tmp_path: Path) -> None:
    folder = write_screenshots(tmp_path, "1.png", "2.png")
    video = write_video(folder / "run.mp4")
    Image.new("P", (8, 8)).save(folder / "trace.gif")
    trajectory = trajectory_of(tmp_path)
    assert (trajectory.video_path, len(trajectory.steps)) == (video, 1)


def test_a_broken_screenshot_is_missing_and_told(tmp_path: Path) -> None:
    write_screenshots(tmp_path, "1.png", "3.png")
    (tmp_path / "2.png").write_bytes(b"x")
    (tmp_path / "4.png").symlink_to("/etc/hostname")
    trajectory = trajectory_of(tmp_path, task="t")
    assert [bool(observation.path) for observation in trajectory.observations] == [True, False, True]
    assert {problem.file for problem in trajectory.problems} == {"2.png", "4.png"}


def test_a_folder_of_broken_pictures_is_refused(tmp_path: Path) -> None:
    for name in ("1.png", "2.png"):
        (tmp_path / name).write_bytes(b"x")
    assert "none of its pictures" in refusal_of(tmp_path).problems[0].message


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system refuses such names")
def test_a_name_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    video = write_video(tmp_path / "run.mp4")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.mp4"))
    video.rename(odd)
    refusal = refusal_of(tmp_path)
    assert "rename" in refusal.problems[0].message
    refusal.source.encode()


def test_everything_in_a_tree_is_found_and_companions_are_not_told(tmp_path: Path) -> None:
    write_osworld(tmp_path, [line(1, "DONE")], args=True)
    write_video(tmp_path / "videos" / "a.mp4")
    write_screenshots(tmp_path / "pictures" / "run-1", "1.png", "2.png")
    write_screenshots(tmp_path / ".hidden", "1.png", "2.png")
    for name in ("README.md", "LICENSE", "results.json", "run.log", "__MACOSX/._a.mp4", "._b.mp4", "code.ts"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    formats = [item.format if isinstance(item, Trajectory) else item.source for item in found(tmp_path)]
    assert sorted(formats) == ["osworld", "screenshots", "video"]


def test_one_format_alone_is_looked_for(tmp_path: Path) -> None:
    write_osworld(tmp_path, [line(1, "DONE")])
    write_video(tmp_path / "a.mp4")
    assert trajectory_of(tmp_path, format="osworld").format == "osworld"
    assert trajectory_of(tmp_path, format="video").format == "video"
    assert "use one of osworld" in refusal_of(tmp_path, format="nonsense").problems[0].message


@pytest.mark.parametrize("name", ["notes.md", "data.json", "run.jsonl", "empty.mp4"])
def test_a_given_file_in_no_known_format_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("" if name.startswith("empty") else '{"conversations": []}\n')
    refusal = refusal_of(path)
    assert (refusal.source, refusal.problems[0].file) == (str(path), name)


def test_a_folder_with_nothing_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hello")
    message = refusal_of(tmp_path).problems[0].message
    assert "traj.jsonl" in message and "screenshots" in message and "docs/formats.md" in message
    assert "does not exist" in refusal_of(tmp_path / "nowhere").problems[0].message


def test_an_unread_data_file_keeps_its_pictures_from_being_a_run(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"traj": []}\n')
    write_screenshots(tmp_path / "images", "1.png", "2.png")
    assert refusal_of(tmp_path).problems[0].file == "data.jsonl"


def test_an_archive_is_told_to_be_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        archive.writestr("a", "b")
    assert "unpack it first" in refusal_of(tmp_path / "runs.zip").problems[0].message


def test_one_bad_source_stops_no_other(tmp_path: Path) -> None:
    write_osworld(tmp_path / "a", [""])
    write_osworld(tmp_path / "b", [line(1, "DONE")])
    (tmp_path / "c.mp4").write_bytes(b"x")
    kinds = [type(item) for item in found(tmp_path, tmp_path / "nowhere")]
    assert kinds.count(Trajectory) == 1 and kinds.count(Refusal) == 3


def test_trajectories_are_yielded_one_at_a_time(tmp_path: Path) -> None:
    write_osworld(tmp_path / "a", [line(1, "DONE")])
    later = write_osworld(tmp_path / "b", [line(1, "DONE")])
    items = find([tmp_path])
    first = next(items)
    (later / "result.txt").write_text("0.5")
    (second,) = items
    assert isinstance(first, Trajectory) and isinstance(second, Trajectory)
    assert (first.score, second.score) == (1.0, 0.5)


@pytest.mark.skipif(os.geteuid() == 0, reason="every folder is open to root")
def test_a_folder_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    write_osworld(tmp_path / "a", [line(1, "DONE")])
    (tmp_path / "closed").mkdir(mode=0)
    (refusal,) = [item for item in found(tmp_path) if isinstance(item, Refusal)]
    assert refusal.problems[0].file == "closed" and "opened" in refusal.problems[0].message


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.mp4")
    assert "neither a file nor a folder" in refusal_of(tmp_path / "run.mp4").problems[0].message
    assert "nothing to import" in refusal_of(tmp_path).problems[0].message
