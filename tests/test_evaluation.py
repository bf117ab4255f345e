from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rows import add_trajectory

from db.session import Database
from reviewer import ledger
from reviewer.agreement import Proportion
from reviewer.cli import main
from reviewer.evaluation import EXAMPLES, HUMAN, README_BEGIN, README_END, evaluate, readme_block, truth_of_review
from reviewer.frame_plan import FramePlan, PlanFrame
from reviewer.intake import import_paths
from reviewer.judges import Judgement, Span, StepLabel, load
from reviewer.library import Library
from reviewer.trajectory import Action, ActionKind, Observation, Step, Trajectory

ROOT = Path(__file__).resolve().parent.parent
STEPS = 4
DURATION_S = 30.0
PLAN = FramePlan(1.0, tuple(PlanFrame(i, 5.0 * i) for i in range(STEPS)), DURATION_S)


class CannedJudge:
    """Answers with what it is given for each trajectory."""

    name = "canned"
    fingerprint = "canned-1"

    def __init__(self, answers: dict[str, Judgement]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def run(self, trajectory: Trajectory, frames: Any, alignment: Any, progress: Any) -> Judgement:
        self.asked.append(trajectory.id)
        return self.answers[trajectory.id]


@pytest.fixture
def library(database: Database, tmp_path: Path) -> Library:
    return Library(database, tmp_path / "home")


def truth(**values: Any) -> dict[str, Any]:
    """The truth of a run that goes wrong in step 1 and stays wrong."""
    return {
        "outcome": "incorrect",
        "first_error_step": 1,
        "error_steps": [1, 2],
        "deviation": {"start_s": 5.0, "end_s": 30.0},
        "set": "written_with",
    } | values


def add_run(library: Library, folder: Path, trajectory_id: str, document: Any = None) -> str:
    folder.mkdir(parents=True)
    if document is not None:
        (folder / "truth.json").write_text(document if isinstance(document, str) else json.dumps(document))
    steps = tuple(Step(i, (Action(ActionKind.CLICK),)) for i in range(STEPS))
    observations = tuple(Observation(i) for i in range(STEPS + 1))
    trajectory = Trajectory(trajectory_id, "osworld", str(folder), "a task", steps, observations)
    with library.database.write() as session:
        return add_trajectory(
            session, trajectory_id, source=str(folder), step_count=STEPS, document=trajectory.to_json()
        )


def minus(*indexes: int) -> tuple[StepLabel, ...]:
    return tuple(StepLabel(index, "-", "seen") for index in indexes)


def test_recorded_truth_is_compared_per_set(library: Library, tmp_path: Path) -> None:
    add_run(library, tmp_path / "a", "a", truth())
    add_run(library, tmp_path / "b", "b", truth(set="held_out"))
    right = truth(set="held_out", outcome="correct", first_error_step=None, error_steps=[], deviation=None)
    add_run(library, tmp_path / "c", "c", right)
    add_run(library, tmp_path / "d", "d")
    said = Judgement("incorrect", step_labels=minus(1), spans=(Span(1.0, 2.0),), frame_plan=PLAN)
    judge = CannedJudge({"a": said, "b": Judgement(), "c": said})
    evaluation = evaluate(library, judge, EXAMPLES)
    assert judge.asked == ["a", "b", "c"]
    assert list(evaluation.sets) == ["written_with", "held_out"]
    first, second = evaluation.sets.values()
    assert (first.outcome_precision, first.outcome_recall) == (Proportion(1, 1), Proportion(1, 1))
    assert (first.step_precision, first.step_recall) == (Proportion(1, 1), Proportion(1, 2))
    assert first.first_error == Proportion(1, 1)
    assert first.mean_iou == pytest.approx(5 / 25)
    assert (second.outcome_precision, second.outcome_recall) == (Proportion(0, 1), Proportion(0, 1))
    assert (second.range_missed, second.range_invented) == (1, 1)


def test_stored_judgements_are_used_and_a_failed_one_is_unreadable(library: Library, tmp_path: Path) -> None:
    add_run(library, tmp_path / "a", "a", truth())
    add_run(library, tmp_path / "b", "b", truth())
    judge = CannedJudge({"a": Judgement("incorrect"), "b": Judgement(error="out of memory")})
    evaluate(library, judge, EXAMPLES)
    figures = evaluate(library, judge, EXAMPLES).sets["written_with"]
    assert judge.asked.count("a") == 1
    assert (figures.trajectories, figures.unreadable, figures.outcome_judged) == (2, 1, 1)


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        "7",
        "[" * 100_000,
        {},
        truth(outcome="fine"),
        truth(error_steps=[9]),
        truth(error_steps=None),
        truth(first_error_step="1"),
        truth(deviation={"start_s": "now"}),
        truth(set=[]),
    ],
)
def test_a_truth_that_cannot_be_read_is_told_and_left_out(library: Library, tmp_path: Path, document: Any) -> None:
    add_run(library, tmp_path / "a", "a", document)
    evaluation = evaluate(library, CannedJudge({}), EXAMPLES)
    assert evaluation.sets == {}
    [problem] = evaluation.problems
    assert problem.file == str(tmp_path / "a" / "truth.json")


def test_a_set_of_another_name_is_counted_as_other(library: Library, tmp_path: Path) -> None:
    add_run(library, tmp_path / "a", "a", truth(set="| evil |"))
    assert list(evaluate(library, CannedJudge({"a": Judgement()}), EXAMPLES).sets) == ["other"]


def test_the_newest_submitted_review_is_the_truth_of_a_run(library: Library, tmp_path: Path) -> None:
    add_run(library, tmp_path / "a", "a")
    add_run(library, tmp_path / "b", "b")
    say(library, "a", "ada", {"type": "set_outcome", "value": "correct"}, {"type": "submit"})
    say(library, "a", "bob", {"type": "set_outcome", "value": "incorrect"}, {"type": "submit"})
    say(library, "b", "ada", {"type": "set_outcome", "value": "correct"})
    judge = CannedJudge({"a": Judgement("incorrect")})
    figures = evaluate(library, judge, HUMAN).sets["reviewed"]
    assert judge.asked == ["a"]
    assert (figures.trajectories, figures.outcome_precision) == (1, Proportion(1, 1))


def say(library: Library, trajectory_id: str, reviewer: str, *ops: dict[str, Any]) -> None:
    for rev, op in enumerate(ops):
        with library.database.write() as session:
            op_id = f"{trajectory_id}-{reviewer}-{rev}"
            ledger.append(session, trajectory_id, reviewer, {"op_id": op_id, "base_rev": rev, "shown": []} | op)


def review(**values: Any) -> dict[str, Any]:
    return {"outcome": None, "spans": [], "step_labels": {}, "first_error": None} | values


def label(value: str) -> dict[str, str]:
    return {"label": value, "reason": ""}


def test_a_reviewers_silence_says_nothing_of_a_step() -> None:
    known = truth_of_review(review(step_labels={"0": label("+"), "3": label("-"), "5": label("unsure")}))
    assert (known.wrong_steps, known.known_steps) == ({3}, {0, 3})
    assert (known.outcome, known.first_error, known.ranges) == (None, None, None)


def test_steps_before_a_first_error_are_known_to_be_right() -> None:
    labels = {"1": label("unsure"), "3": label("-")}
    known = truth_of_review(review(first_error={"step_index": 3, "reason": ""}, step_labels=labels))
    assert (known.wrong_steps, known.known_steps, known.first_error) == ({3}, {0, 2, 3}, 3)


def test_an_outcome_of_which_the_reviewer_is_unsure_is_not_known() -> None:
    spans = [{"start_s": 1.0, "end_s": 2.0}]
    known = truth_of_review(review(outcome="unsure", spans=spans))
    assert (known.outcome, known.ranges) == (None, ((1.0, 2.0),))


def test_the_command_says_what_to_do_where_nothing_is_known(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["evaluate"], env={"REVIEWER_HOME": str(tmp_path), "REVIEWER_DB_URL": ""})
    assert answer.exit_code == 2
    assert "import runs with a truth.json, or submit reviews" in answer.output


def test_the_readme_holds_the_figures_of_the_examples(library: Library, tmp_path: Path, database_url: str) -> None:
    """When this fails, the judge or the examples changed: put what the assertion shows into README.md."""
    records = list(import_paths(library, [ROOT / "examples"]))
    assert len([record for record in records if record["id"]]) == 24
    evaluation = evaluate(library, load("screen_rules"), EXAMPLES)
    readme = (ROOT / "README.md").read_text("utf-8")
    stated = readme[readme.index(README_BEGIN) : readme.index(README_END) + len(README_END)]
    assert stated == readme_block(evaluation)
    assert [figures.trajectories for figures in evaluation.sets.values()] == [12, 12]
    environment = {"REVIEWER_HOME": str(library.home), "REVIEWER_DB_URL": database_url}
    printed = CliRunner().invoke(main, ["evaluate"], env=environment)
    assert evaluation.table() in printed.output
    lines = CliRunner().invoke(main, ["evaluate", "--truth", "examples", "--json"], env=environment)
    assert [json.loads(line) for line in lines.output.splitlines()] == list(evaluation.to_json())
