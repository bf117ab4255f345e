"""The reviewer's own JSON, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs_on_disk import write_picture, write_video

from reviewer.importers import Refusal, find
from reviewer.trajectory import ActionKind, Trajectory


def write(folder: Path, *objects: Any, name: str = "run.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{json.dumps(item)}\n" for item in objects), encoding="utf-8")
    return path


def found(path: Path, **options: Any) -> list[Trajectory | Refusal]:
    return list(find([path], **options))


def trajectory_of(path: Path, **options: Any) -> Trajectory:
    (item,) = found(path, **options)
    assert isinstance(item, Trajectory), item
    return item


def problem_of(path: Path) -> tuple[int | None, str]:
    (item,) = found(path)
    (problem,) = item.problems
    return problem.line, problem.message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("0.png", "1.png", "2.png"):
        write_picture(tmp_path / name, (200, 100))
    return tmp_path


STEPS = [{"action": "pyautogui.click(50, 50)", "thought": "here", "at_s": 1.5}, {"action": "DONE", "number": 7}]


def test_the_short_form_is_read(folder: Path) -> None:
    video = write_video(folder / "run.mp4")
    path = write(
        folder,
        {"task": "Do – it", "video": "run.mp4", "screenshots": ["0.png", "1.png", None], "steps": STEPS, "score": 1},
    )
    trajectory = trajectory_of(folder)
    assert trajectory.problems == ()
    assert (trajectory.format, trajectory.task, trajectory.outcome) == ("native", "Do – it", "correct")
    assert (trajectory.source, trajectory.video_path) == (str(path), video)
    click, done = trajectory.steps
    assert (click.actions[0].kind, click.actions[0].points[0].fraction) == (ActionKind.CLICK, (0.25, 0.5))
    assert (click.thought, click.at_s, click.source_number) == ("here", 1.5, "1")
    assert (done.actions[0].kind, done.at_s, done.source_number) == (ActionKind.FINISH, None, "7")
    assert [bool(observation.path) for observation in trajectory.observations] == [True, True, False]


def test_actions_may_be_spelled_out(folder: Path) -> None:
    action = {"kind": "drag", "points": [{"x": 0.1, "y": 0.2}, {"x": 100, "y": 50}], "keys": ["shift"], "duration_s": 2}
    steps = [{"actions": [action, {"kind": "type", "text": "é"}]}]
    (step,) = trajectory_of(write(folder, {"task": "t", "screenshots": ["0.png", "1.png"], "steps": steps})).steps
    drag, typed = step.actions
    assert [point.fraction for point in drag.points] == [(0.1, 0.2), (0.5, 0.5)]
    assert (drag.keys, drag.duration_s, typed.text) == (("shift",), 2, "é")


def test_a_point_may_say_its_space(folder: Path) -> None:
    points = [
        {"x": 500, "y": 250, "space": "grid", "width": 1000, "height": 1000},
        {"x": 1, "y": 1, "space": "fraction"},
        {"x": 64, "y": 36, "space": "pixel", "width": 128, "height": 72},
    ]
    steps = [{"action": {"kind": "drag", "points": points}}]
    (step,) = trajectory_of(write(folder, {"task": "t", "screenshots": ["0.png", "1.png"], "steps": steps})).steps
    assert [point.fraction for point in step.actions[0].points] == [(0.5, 0.25), (1, 1), (0.5, 0.5)]


def test_pixels_count_in_the_video_where_there_is_no_picture(tmp_path: Path) -> None:
    write_video(tmp_path / "run.mp4")
    steps = [{"action": "pyautogui.click(32, 18)"}]
    trajectory = trajectory_of(write(tmp_path, {"task": "t", "video": "run.mp4", "steps": steps}))
    assert trajectory.steps[0].actions[0].points[0].fraction == (0.5, 0.5)
    (tmp_path / "run.mp4").write_bytes(b"x")
    assert "1920x1080 was assumed" in problem_of(tmp_path / "run.jsonl")[1]


def test_steps_may_name_the_picture_after_them(folder: Path) -> None:
    steps = [{"action": "WAIT", "screenshot": "1.png"}, {"action": "DONE", "screenshot": "2.png"}]
    names = [
        item.path and item.path.name
        for item in trajectory_of(write(folder, {"task": "t", "steps": steps})).observations
    ]
    assert names == [None, "1.png", "2.png"]


def test_as_many_pictures_as_steps_are_those_after_them(folder: Path) -> None:
    trajectory = trajectory_of(write(folder, {"task": "t", "steps": STEPS, "screenshots": ["1.png", "2.png"]}))
    assert [bool(item.path) for item in trajectory.observations] == [False, True, True]


def test_pictures_without_steps_have_unknown_actions_between_them(folder: Path) -> None:
    trajectory = trajectory_of(write(folder, {"task": "t", "screenshots": ["0.png", "1.png", "2.png"]}))
    assert [step.actions[0].kind for step in trajectory.steps] == [ActionKind.OTHER] * 2


def test_several_objects_are_several_trajectories_each_with_its_line(folder: Path) -> None:
    one = {"task": "one", "screenshots": ["0.png"]}
    path = write(folder, one, "nonsense", {**one, "task": "two"}, {"task": "three"})
    first, second, third, fourth = found(path)
    assert isinstance(first, Trajectory) and isinstance(third, Trajectory)
    assert (first.source, third.source) == (f"{path}#1", f"{path}#3")
    assert first.id != third.id
    assert isinstance(second, Refusal) and second.problems[0].line == 2
    assert isinstance(fourth, Refusal) and (fourth.source, fourth.problems[0].line) == (f"{path}#4", 4)


def test_the_id_is_that_of_the_object_unless_it_gives_one(folder: Path) -> None:
    value = {"task": "t", "screenshots": ["0.png"]}
    plain = trajectory_of(write(folder, value))
    turned = trajectory_of(write(folder, dict(reversed(value.items())), name="other.json"))
    assert plain.id == turned.id
    assert trajectory_of(write(folder, {**value, "id": "0123456789abcdef"})).id == "0123456789abcdef"
    assert trajectory_of(write(folder, {**value, "id": "../x"})).id not in (plain.id, "../x")


def test_media_of_a_file_are_not_imported_again_on_their_own(folder: Path) -> None:
    write_video(folder / "run.mp4")
    write(folder, {"task": "t", "video": "run.mp4", "screenshots": ["0.png", "1.png"]})
    assert len(found(folder)) == 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"task": 5, "screenshots": ["0.png"]}, '"task" must be text, not a number'),
        ({"task": "t", "steps": {}, "screenshots": ["0.png"]}, '"steps" must be a list, not an object'),
        ({"task": "t", "screenshots": [5]}, '"screenshots"[0] must be a file name or null, not a number'),
        ({"task": "t", "screenshots": ["absent.png"]}, "neither its video nor any of its pictures"),
        ({"task": "t", "video": "absent.mp4"}, "neither its video nor any of its pictures"),
        ({"task": "t", "steps": []}, "nothing to show"),
    ],
)
def test_an_object_that_cannot_be_shown_is_refused_with_line_and_key(folder: Path, value: Any, words: str) -> None:
    line, message = problem_of(write(folder, value))
    assert line == 1
    assert words in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": ""}, '"task" is empty'),
        ({"score": "good"}, '"score" must be a number from 0 to 1, not text'),
        ({"score": 85}, '"score" must be a number from 0 to 1, not 85'),
        ({"video": "absent.mp4"}, '"video": absent.mp4 is not in the folder'),
        ({"screenshot": 1}, "Unknown key 'screenshot'"),
        ({"steps": [{"action": {"kind": "clik"}}]}, "\"steps\"[0].action.kind 'clik' is not known"),
        ({"steps": [{"action": {"kind": "click", "points": [{"x": 1}]}}]}, '"steps"[0].action.points must be'),
        ({"steps": [{"thought": "t"}]}, '"steps"[0].action is missing'),
        ({"steps": [{"action": "DONE", "at_s": "1"}]}, '"steps"[0].at_s must be a number of seconds, not text'),
        ({"steps": [{"action": "DONE", "at_s": 1e300}]}, '"steps"[0].at_s is too large'),
        ({"score": 1e300}, "not 1e+300"),
        ({"steps": [{"action": "DONE", "when": 1}]}, "Unknown key \"steps\"[0].'when'"),
        ({"steps": ["DONE"]}, '"steps"[0] must be an object, not text'),
    ],
)
def test_what_is_wrong_in_part_is_told_with_line_and_key(folder: Path, change: Any, words: str) -> None:
    value = {"task": "t", "screenshots": ["0.png", "1.png"], "steps": [{"action": "DONE"}], **change}
    path = write(folder, value)
    assert isinstance(found(path)[0], Trajectory)
    line, message = problem_of(path)
    assert line == 1
    assert words in message


def test_pictures_that_do_not_fit_the_steps_are_told(folder: Path) -> None:
    path = write(folder, {"task": "t", "steps": STEPS, "screenshots": ["0.png", None, "1.png", "2.png", "0.png"]})
    assert len(trajectory_of(path).observations) == 3
    assert '"screenshots" has 5 names for 2 steps' in problem_of(path)[1]


@pytest.mark.parametrize("form", ["{}", "../{}", "link.png"])
def test_files_elsewhere_are_shown_only_where_paths_may_be_followed(tmp_path: Path, form: str) -> None:
    secret = write_picture(tmp_path / "secret.png")
    folder = tmp_path / "upload"
    write_picture(folder / "0.png")
    (folder / "link.png").symlink_to(secret)
    name = form.format(secret if form == "{}" else secret.name)
    path = write(folder, {"task": "t", "screenshots": ["0.png", name]})
    assert [bool(item.path) for item in trajectory_of(path).observations] == [True, False]
    assert [bool(item.path) for item in trajectory_of(path, follow_paths=True).observations] == [True, True]


def test_names_from_another_place_are_found_by_their_last_parts(folder: Path) -> None:
    inner = write_picture(folder / "images" / "0.png")
    path = write(folder, {"task": "t", "screenshots": ["C:\\old\\images\\0.png", "/old/1.png"]})
    assert [item.path for item in trajectory_of(path).observations] == [inner, folder / "1.png"]


KEYS = ["task", "video", "screenshots", "steps", "score", "id", "extra", "schema", "version", "agent"]
STEP_KEYS = ["action", "actions", "thought", "at_s", "screenshot", "kind", "points", "x", "y", "space", "keys", "text"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["0.png", "DONE", "click", "pixel"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(STEP_KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6))
def test_any_object_is_imported_or_told(folder: Path, value: dict[str, Any]) -> None:
    value = {"task": "t", "screenshots": ["0.png"], **value}
    for item in found(write(folder, value)):
        if isinstance(item, Refusal):
            assert item.problems
        else:
            assert Trajectory.from_json(json.loads(json.dumps(item.to_json(), allow_nan=False))) == item
