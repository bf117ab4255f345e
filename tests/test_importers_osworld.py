"""OSWorld result folders, whole and broken."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from runs_on_disk import TASK_ID, line, write_osworld, write_picture, write_task_definition, write_video

from reviewer.importers import Refusal, find
from reviewer.trajectory import ActionKind, Trajectory

CLICK = "pyautogui.click(10, 20)"


def found(*paths: Path, **options: Any) -> list[Trajectory | Refusal]:
    return list(find(paths, **options))


def trajectory_of(*paths: Path, **options: Any) -> Trajectory:
    (item,) = found(*paths, **options)
    assert isinstance(item, Trajectory), item
    return item


def refusal_of(*paths: Path) -> Refusal:
    (item,) = found(*paths)
    assert isinstance(item, Refusal), item
    return item


def problems_of(trajectory: Trajectory) -> list[tuple[str, int | None, str]]:
    return [(problem.file, problem.line, problem.message) for problem in trajectory.problems]


def has_problem(trajectory: Trajectory, words: str, line: int | None = None, file: str = "traj.jsonl") -> bool:
    return any(
        words in problem.message and problem.line == line and problem.file == file for problem in trajectory.problems
    )


def test_a_whole_run_is_read_without_a_problem(tmp_path: Path) -> None:
    folder = write_osworld(tmp_path, [line(1, CLICK), line(2, "pyautogui.write('x')"), line(3, "DONE")], args=True)
    write_task_definition(tmp_path, "Open a tab – №1")
    video = write_video(folder / "recording.mp4")
    write_picture(folder / "step_0.png", shade=200)
    trajectory = trajectory_of(tmp_path)
    assert trajectory.problems == ()
    assert (trajectory.format, trajectory.task, trajectory.score) == ("osworld", "Open a tab – №1", 1.0)
    assert (trajectory.agent, trajectory.platform) == ("a-model", "chrome")
    assert trajectory.extra == {"domain": "chrome", "example_id": TASK_ID}
    assert trajectory.recorded_at == "2025-09-29T10:15:01"
    assert (trajectory.source, trajectory.video_path) == (str(folder), video)
    assert [step.actions[0].kind for step in trajectory.steps] == [ActionKind.CLICK, ActionKind.TYPE, ActionKind.FINISH]
    assert [observation.path.name for observation in trajectory.observations if observation.path] == [
        "step_0.png",
        *(item["screenshot_file"] for item in (line(1, ""), line(2, ""), line(3, ""))),
    ]
    assert trajectory.steps[1].thought == "Thought 2"


def test_steps_keep_the_stamps_of_the_source_at_their_grain(tmp_path: Path) -> None:
    lines = [line(1, CLICK), line(2, CLICK, action_timestamp="20250929@101511250000"), line(3, CLICK)]
    lines[2]["action_timestamp"] = "yesterday"
    first, second, third = trajectory_of(write_osworld(tmp_path, lines)).steps
    assert first.stamp_s is not None and second.stamp_s is not None
    assert second.stamp_s - first.stamp_s == 10.25
    assert (first.stamp_resolution_s, second.stamp_resolution_s) == (1.0, 1e-6)
    assert (third.stamp_s, third.stamp_resolution_s) == (None, None)


def test_every_line_is_a_step_also_with_the_same_number(tmp_path: Path) -> None:
    lines = [line(1, CLICK), line(1, "WAIT", action_timestamp="20250929@101505"), line(2, "DONE")]
    steps = trajectory_of(write_osworld(tmp_path, lines)).steps
    assert [step.source_number for step in steps] == ["1", "1", "2"]
    assert [step.index for step in steps] == [0, 1, 2]


def test_the_last_of_several_appended_runs_is_kept(tmp_path: Path) -> None:
    again = [line(1, "WAIT", action_timestamp="20250930@090000"), line(2, "DONE", action_timestamp="20250930@090010")]
    trajectory = trajectory_of(write_osworld(tmp_path, [line(1, CLICK), line(2, CLICK), line(3, CLICK), *again]))
    assert [step.actions[0].kind for step in trajectory.steps] == [ActionKind.WAIT, ActionKind.FINISH]
    assert has_problem(trajectory, "Lines 1 to 3 are an earlier run", 1)


def test_a_run_of_one_step_that_was_repeated_is_a_restart(tmp_path: Path) -> None:
    lines = [line(1, "FAIL", done=True), line(1, "DONE", done=True, action_timestamp="20250930@090000")]
    trajectory = trajectory_of(write_osworld(tmp_path, lines))
    assert [step.actions[0].kind for step in trajectory.steps] == [ActionKind.FINISH]


def test_lines_out_of_order_are_kept_and_told(tmp_path: Path) -> None:
    trajectory = trajectory_of(write_osworld(tmp_path, [line(2, CLICK), line(1, CLICK), line(3, "DONE")]))
    assert [step.source_number for step in trajectory.steps] == ["2", "1", "3"]
    assert has_problem(trajectory, "Earlier than the line above", 2)


def test_a_cut_off_last_line_is_told_by_its_number(tmp_path: Path) -> None:
    trajectory = trajectory_of(write_osworld(tmp_path, [line(1, CLICK), json.dumps(line(2, CLICK))[:40]]))
    assert len(trajectory.steps) == 1
    assert has_problem(trajectory, "The last line is cut off", 2)


def test_error_and_event_lines_are_told_and_are_no_steps(tmp_path: Path) -> None:
    lines = [{"mode": "x", "event": "start"}, line(1, CLICK), {"Error": "Time limit exceeded in chrome/1"}]
    trajectory = trajectory_of(write_osworld(tmp_path, lines))
    assert len(trajectory.steps) == 1
    assert has_problem(trajectory, "An event without an action", 1)
    assert has_problem(trajectory, "Time limit exceeded in chrome/1", 3)


def test_a_reset_line_gives_the_task_and_the_first_picture(tmp_path: Path) -> None:
    reset = {
        "step_num": 0,
        "action": "reset",
        "instruction": "Do it",
        "screenshot_file": "step_reset_20250929@101500.png",
    }
    trajectory = trajectory_of(write_osworld(tmp_path, [reset, line(1, "DONE")]))
    assert (trajectory.task, len(trajectory.steps)) == ("Do it", 1)
    assert trajectory.observations[0].path is not None


def test_a_reset_line_begins_a_run(tmp_path: Path) -> None:
    reset = {"step_num": 0, "action": "reset", "instruction": "Do it"}
    trajectory = trajectory_of(write_osworld(tmp_path, [reset, line(1, CLICK), reset, line(2, "DONE")]))
    assert [step.actions[0].kind for step in trajectory.steps] == [ActionKind.FINISH]
    assert has_problem(trajectory, "Lines 1 to 2 are an earlier run", 1)


def test_pictures_taken_before_the_action_are_placed_before_it(tmp_path: Path) -> None:
    lines = [line(number, CLICK, screenshot_file=f"step_{number}.png") for number in (1, 2, 2)]
    folder = write_osworld(tmp_path, lines)
    write_picture(folder / "step_1_draw.png")
    trajectory = trajectory_of(folder)
    assert [observation.path and observation.path.name for observation in trajectory.observations] == [
        "step_1.png",
        None,
        "step_2.png",
        None,
    ]
    assert has_problem(trajectory, "step_2.png was overwritten", 2)
    (folder / "step_2.png").write_bytes(b"x")
    assert has_problem(trajectory_of(folder), "step_2.png: the picture can't be read", 3)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "is not in the folder"),
        (b"", "empty file"),
        (b"not a picture", "can't be read"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"),
    ],
)
def test_a_picture_that_is_missing_or_broken_keeps_its_step(tmp_path: Path, content: bytes | None, words: str) -> None:
    folder = write_osworld(tmp_path, [line(1, CLICK), line(2, "DONE")])
    picture = folder / line(1, CLICK)["screenshot_file"]
    picture.unlink()
    if content is not None:
        picture.write_bytes(content)
    trajectory = trajectory_of(folder)
    assert len(trajectory.steps) == 2
    assert [bool(observation.path) for observation in trajectory.observations] == [False, False, True]
    assert has_problem(trajectory, words, 1)


def test_a_cut_off_picture_is_missing(tmp_path: Path) -> None:
    folder = write_osworld(tmp_path, [line(1, CLICK)])
    picture = folder / line(1, CLICK)["screenshot_file"]
    Image.effect_noise((200, 200), 50).save(picture)
    picture.write_bytes(picture.read_bytes()[:5000])
    assert has_problem(trajectory_of(folder), "cut off", 1)


def test_a_picture_with_too_many_pixels_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_osworld(tmp_path, [line(1, CLICK)])
    monkeypatch.setattr("reviewer.importers.files.MAX_PICTURE_PX", 64 * 36 - 1)
    trajectory = trajectory_of(folder)
    assert trajectory.observations[1].path is None
    assert has_problem(trajectory, "make it smaller", 1)


@pytest.mark.parametrize(
    "name", ["../../secret.png", "/etc/hostname", "link.png", "C:\\runs\\..\\secret.png", "\0", "x" * 5000]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = write_osworld(tmp_path, [line(1, CLICK, screenshot_file=name)], pictures=False)
    secret = write_picture(folder.parent.parent / "secret.png")
    (folder / "link.png").symlink_to(secret)
    trajectory = trajectory_of(folder)
    assert trajectory.observations[1].path is None
    assert has_problem(trajectory, "leads outside the folder" if name == "link.png" else "is not in the folder", 1)


@pytest.mark.parametrize("prefix", ["/home/somebody/results/", "D:\\Projetos\\run\\", "file:///mnt/x/"])
def test_names_from_another_machine_are_found_by_their_last_part(tmp_path: Path, prefix: str) -> None:
    name = line(1, CLICK)["screenshot_file"]
    folder = write_osworld(tmp_path, [line(1, CLICK, screenshot_file=prefix + name)], pictures=False)
    write_picture(folder / name)
    assert trajectory_of(folder).observations[1].path == folder / name


@pytest.mark.parametrize(
    ("text", "score", "outcome"),
    [
        ("1", 1.0, "correct"),
        ("0.0\n", 0.0, "incorrect"),
        ("True", 1.0, "correct"),
        ("False\n", 0.0, "incorrect"),
        ("0.9999999999922918", 0.9999999999922918, "correct"),
        ("0.028626288575876013", 0.028626288575876013, None),
    ],
)
def test_scores_in_all_their_spellings(tmp_path: Path, text: str, score: float, outcome: str | None) -> None:
    trajectory = trajectory_of(write_osworld(tmp_path, [line(1, "DONE")], result=text))
    assert (trajectory.score, trajectory.outcome) == (score, outcome)
    assert not any(problem.file == "result.txt" for problem in trajectory.problems)


@pytest.mark.parametrize("text", [None, "", "nan", "inf", "<html>", '{"completed": true}'])
def test_what_is_no_score_is_told(tmp_path: Path, text: str | None) -> None:
    trajectory = trajectory_of(write_osworld(tmp_path, [line(1, "DONE")], result=text))
    assert (trajectory.score, trajectory.outcome) == (None, None)
    assert any(problem.file == "result.txt" for problem in trajectory.problems)


@pytest.mark.parametrize(
    ("response", "thought"),
    [
        ("plain", "plain"),
        (None, ""),
        (["a", {"text": "b"}], "a\nb"),
        ({"provider": "x", "raw_response": "c"}, "c"),
        ({"usage": 3}, '{"usage": 3}'),
        (7, "7"),
    ],
)
def test_responses_of_any_shape_become_the_thought(tmp_path: Path, response: Any, thought: str) -> None:
    assert trajectory_of(write_osworld(tmp_path, [line(1, CLICK, response=response)])).steps[0].thought == thought


def test_the_screen_size_comes_from_the_arguments_or_the_picture(tmp_path: Path) -> None:
    told = trajectory_of(write_osworld(tmp_path / "a", [line(1, CLICK)], args=True))
    seen = trajectory_of(write_osworld(tmp_path / "b", [line(1, CLICK)]))
    guessed = trajectory_of(write_osworld(tmp_path / "c", [line(1, CLICK)], pictures=False))
    sizes = [
        (item.steps[0].actions[0].points[0].width, item.steps[0].actions[0].points[0].height)
        for item in (told, seen, guessed)
    ]
    assert sizes == [(1280, 800), (64, 36), (1920, 1080)]
    assert has_problem(guessed, "1920x1080 was assumed")
    assert not any("1920x1080" in problem.message for problem in (*told.problems, *seen.problems))


def test_the_agent_is_read_from_the_path_with_a_slash_in_its_name(tmp_path: Path) -> None:
    assert trajectory_of(write_osworld(tmp_path, [line(1, "DONE")])).agent == "maker/model-7b"


def test_the_agent_is_the_folder_above_a_domain_that_defines_the_task(tmp_path: Path) -> None:
    folder = write_osworld(tmp_path, [line(1, "DONE")])
    shutil.move(folder, tmp_path / "agent-a" / "mail" / "task-1")
    definition = tmp_path / "evaluation_examples" / "examples" / "mail" / "task-1.json"
    definition.parent.mkdir(parents=True)
    definition.write_text(json.dumps({"instruction": "Send it"}))
    trajectory = trajectory_of(tmp_path)
    assert (trajectory.agent, trajectory.platform, trajectory.task) == ("agent-a", "mail", "Send it")


def test_a_task_given_by_hand_wins_and_a_missing_one_is_told(tmp_path: Path) -> None:
    folder = write_osworld(tmp_path, [line(1, "DONE")])
    assert has_problem(trajectory_of(folder), "No task text")
    write_task_definition(tmp_path, "From the definition")
    assert trajectory_of(tmp_path).task == "From the definition"
    assert trajectory_of(folder, tmp_path / "evaluation_examples").task == "From the definition"
    assert trajectory_of(tmp_path, task="By hand").task == "By hand"


def test_lines_are_recognised_under_another_name(tmp_path: Path) -> None:
    folder = write_osworld(tmp_path, [line(1, "DONE")])
    other = folder / "lines.txt"
    (folder / "traj.jsonl").rename(other)
    trajectory = trajectory_of(other)
    assert (trajectory.format, len(trajectory.steps)) == ("osworld", 1)


def test_a_thought_is_the_words_and_raw_keeps_the_action(tmp_path: Path) -> None:
    code = "import pyautogui\npyautogui.click(1, 2)"
    told = line(1, code, response=f"The menu is open.\n```python\n{code}\n```")
    write_osworld(tmp_path, [told, line(2, "DONE", response="```DONE```")])
    steps = trajectory_of(tmp_path).steps
    assert [(step.thought, step.raw) for step in steps] == [("The menu is open.", code), ("", "DONE")]


def test_the_id_is_that_of_the_lines_wherever_they_lie(tmp_path: Path) -> None:
    folder = write_osworld(tmp_path / "a", [line(1, "DONE")])
    shutil.copytree(folder, tmp_path / "copy")
    assert trajectory_of(folder).id == trajectory_of(tmp_path / "copy").id


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no action"),
        ('{"Error": "Time limit exceeded"}\n', "Time limit exceeded"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"),
        ('{"step_num": 1, "action": "DONE", "screenshot": "screenshot-step_0_1.png"}', "Windows Agent Arena"),
        ('{"step_num": 1, "actions": ["DONE"], "rewards": [0]}', "MacOSArena"),
        ("[" * 1000, "holds no action"),
    ],
)
def test_what_is_no_run_is_refused_with_its_name_and_the_reason(tmp_path: Path, text: str, words: str) -> None:
    folder = write_osworld(tmp_path, [text])
    refusal = refusal_of(tmp_path)
    assert refusal.source == str(folder)
    assert words in refusal.problems[0].message
    assert refusal.problems[0].file in ("traj.jsonl", str(folder.relative_to(tmp_path)))


def test_an_error_alone_with_a_recording_can_still_be_watched(tmp_path: Path) -> None:
    folder = write_osworld(tmp_path, [{"Error": "crashed"}])
    write_video(folder / "recording.mp4")
    trajectory = trajectory_of(tmp_path)
    assert (len(trajectory.steps), len(trajectory.observations)) == (0, 1)
    assert has_problem(trajectory, "crashed", 1)


def test_an_empty_recording_is_told(tmp_path: Path) -> None:
    folder = write_osworld(tmp_path, [line(1, "DONE")])
    (folder / "recording.mp4").touch()
    trajectory = trajectory_of(folder)
    assert trajectory.video_path is None
    assert has_problem(trajectory, "An empty file", file="recording.mp4")


LINES = [line(1, CLICK), line(2, "pyautogui.write('x')"), line(3, CLICK), line(4, "DONE")]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    order=st.lists(st.sampled_from(range(4)), max_size=8),
    cut=st.integers(0, 400),
    ending=st.sampled_from(["\n", "\r\n", "\n\n \n"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    is_array=st.booleans(),
    noise=st.sampled_from(["", "NaN\n", '{"reward": NaN, "action": Infinity}\n', "{}\n", "null\n", '"x"\n', "\x00\n"]),
)
def test_mutilated_lines_are_imported_or_told(
    tmp_path: Path, order: list[int], cut: int, ending: str, mark: bytes, is_array: bool, noise: str
) -> None:
    shutil.rmtree(tmp_path / "results", ignore_errors=True)
    folder = write_osworld(tmp_path, LINES)
    chosen = [LINES[index] for index in order]
    text = json.dumps(chosen, indent=1) if is_array else noise + ending.join(map(json.dumps, chosen))
    whole = mark + text.replace("\n", ending if is_array else "\n").encode()
    (folder / "traj.jsonl").write_bytes(whole[: len(whole) - cut])
    (item,) = found(folder)
    if isinstance(item, Refusal):
        assert item.problems
        return
    assert len(item.observations) == len(item.steps) + 1
    assert [step.index for step in item.steps] == list(range(len(item.steps)))
    assert Trajectory.from_json(json.loads(json.dumps(item.to_json(), allow_nan=False))) == item
    if len(item.steps) < len(chosen):
        assert item.problems
