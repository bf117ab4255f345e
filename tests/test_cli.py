"""The command line: what each command prints, its exit code, and that no traceback reaches a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from runs_on_disk import line, write_osworld, write_task_definition, write_video

from reviewer import __version__, cli
from reviewer.errors import ReviewerError
from reviewer.judges import DEFAULT_JUDGE, Judgement, known

LINES = [line(1, "pyautogui.click(32, 18)"), line(2, "DONE")]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REVIEWER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("REVIEWER_DB_URL", raising=False)
    return tmp_path / "home"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_task_definition(tmp_path / "in", "Click \x1b[31mred\x1b[0m and say “done”")
    return write_osworld(tmp_path / "in", LINES)


def reviewer(*arguments: object) -> Result:
    result = CliRunner().invoke(cli.main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def json_lines(*arguments: object) -> list[dict[str, Any]]:
    result = reviewer(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(text) for text in result.stdout.splitlines()]


def test_import_tells_each_run_as_a_json_line(tmp_path: Path, run: Path) -> None:
    (record,) = json_lines("import", tmp_path / "in")
    assert list(record) == ["id", "format", "source", "task", "steps", "video", "score", "outcome", "problems"]
    assert (record["format"], record["steps"], record["video"], record["score"], record["outcome"]) == (
        "osworld",
        2,
        None,
        1.0,
        "correct",
    )


def test_import_tells_the_size_and_length_of_a_video(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4")
    (record,) = json_lines("import", tmp_path / "a.mp4", "--task", "Watch")
    assert record["video"] == {"width": 64, "height": 36, "duration_s": pytest.approx(1.0, abs=0.01)}
    assert record["task"] == "Watch"


def test_import_succeeds_if_anything_was_imported(tmp_path: Path, run: Path) -> None:
    (tmp_path / "bad.mp4").write_bytes(b"")
    stored, refused = json_lines("import", run, tmp_path / "bad.mp4")
    assert (stored["id"] is None, refused["id"] is None) == (False, True)
    assert list(refused) == list(stored)
    assert refused["problems"][0]["file"] == "bad.mp4"


def test_import_of_nothing_exits_2_and_says_why(tmp_path: Path) -> None:
    result = reviewer("import", tmp_path / "none.mp4", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["id"] is None
    assert "Nothing was imported" in result.stderr


def test_what_people_read_holds_no_control_characters(tmp_path: Path, run: Path) -> None:
    for arguments in (["import", tmp_path / "in"], ["list"]):
        result = reviewer(*arguments)
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout
        assert "“done”" in result.stdout


def test_list_and_show_tell_what_was_imported(tmp_path: Path, run: Path) -> None:
    (record,) = json_lines("import", tmp_path / "in")
    (item,) = json_lines("list")
    assert (item["id"], item["judge"]["name"]) == (record["id"], None)
    assert json_lines("list", "--search", "no such task") == []
    (shown,) = json_lines("show", record["id"])
    assert shown["trajectory"]["id"] == record["id"]
    human = reviewer("show", record["id"]).stdout
    assert "step 1" in human
    assert "pyautogui.click(32, 18)" in human
    assert "\x1b" not in human


def test_show_of_an_unknown_id_exits_2() -> None:
    result = reviewer("show", "0" * 16)
    assert result.exit_code == 2
    assert "0" * 16 in result.stderr


class OneJudge:
    """A judge that fails on demand."""

    name = "one"
    fingerprint = "f"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def run(self, *_: Any) -> Judgement:
        if self.error:
            raise self.error
        return Judgement(outcome="incorrect", raw="no")


def test_judge_tells_what_was_said(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviewer.judges.load", lambda name: OneJudge())
    (record,) = json_lines("import", tmp_path / "in")
    (said,) = json_lines("judge", "one", "--all")
    assert (said["trajectory_id"], said["judge"], said["outcome"]) == (record["id"], "one", "incorrect")
    assert json_lines("judge", "one", "--id", record["id"]) == [said]
    assert json_lines("list")[0]["judge"]["outcome"] == "incorrect"


def test_a_judge_that_fails_everywhere_exits_2(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviewer.judges.load", lambda name: OneJudge(ReviewerError("The weights are missing.")))
    json_lines("import", tmp_path / "in")
    result = reviewer("judge", "one", "--all")
    assert result.exit_code == 2
    assert "The weights are missing." in result.stdout


@pytest.mark.parametrize("arguments", [("oracle", "--all"), ("oracle",), (DEFAULT_JUDGE, "--id", "0" * 16)])
def test_judge_refuses_what_it_does_not_know(arguments: tuple[str, ...]) -> None:
    result = reviewer("judge", *arguments)
    assert result.exit_code == 2
    assert result.stderr


@pytest.mark.skipif(DEFAULT_JUDGE not in known(), reason="no default judge")
def test_the_default_judge_judges(tmp_path: Path, run: Path) -> None:
    json_lines("import", tmp_path / "in")
    (said,) = json_lines("judge", DEFAULT_JUDGE, "--all")
    assert said["error"] is None


def test_export_writes_and_counts(tmp_path: Path, run: Path) -> None:
    json_lines("import", tmp_path / "in")
    (told,) = json_lines("export", "jsonl", tmp_path / "out")
    assert told["counts"]["trajectories"] == 1
    assert (tmp_path / "out" / "manifest.json").is_file()
    result = reviewer("export", "jsonl", tmp_path / "in")
    assert result.exit_code == 2
    assert "choose an empty one" in result.stderr


def test_a_library_that_can_not_be_opened_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for name, value in (("REVIEWER_HOME", tmp_path / "file"), ("REVIEWER_DB_URL", "mysql://nowhere")):
        monkeypatch.setenv(name, str(value))
        result = reviewer("list")
        assert result.exit_code == 2
        assert result.stderr.startswith("Error: ")


def test_the_version_and_the_commands_are_told() -> None:
    assert __version__ in reviewer("--version").stdout
    help_text = reviewer("--help").stdout
    assert all(name in help_text for name in ("import", "judge", "list", "show", "export", "evaluate", "serve"))
