"""Holds a judge's stored judgements against known truth: the records beside recorded runs, and people's reviews."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select

from db.models import ReviewRow, TrajectoryRow
from reviewer import ledger
from reviewer.agreement import Agreement, Case, Said, Truth, agreement, table
from reviewer.detail import judgements
from reviewer.intake import ignore_progress
from reviewer.jobs import judge_trajectory
from reviewer.judges import Judge, Progress
from reviewer.library import Library
from reviewer.trajectory import Problem

README_BEGIN, README_END = "<!-- evaluate:begin -->", "<!-- evaluate:end -->"
EXAMPLES = "examples"
HUMAN = "human"
TRUTH_FILE = "truth.json"
SETS = {"written_with": "rules written with", "held_out": "held out", "other": "other", "reviewed": "reviewed"}

_MAX_TRUTH_BYTES = 1_000_000


@dataclass(frozen=True)
class Evaluation:
    """A judge held against one kind of truth, an agreement per set of trajectories; ``problems`` are left out."""

    judge: str
    fingerprint: str
    truth: str
    sets: dict[str, Agreement]
    problems: tuple[Problem, ...] = ()

    def to_json(self) -> Iterator[dict[str, Any]]:
        """One JSON value per set."""
        about = {"judge": self.judge, "fingerprint": self.fingerprint, "truth": self.truth}
        for name, figures in self.sets.items():
            yield about | {"set": name} | figures.to_json()

    def table(self) -> str:
        """The figures as a Markdown table, a column per set."""
        return table({SETS[name]: figures for name, figures in self.sets.items()})


def readme_block(evaluation: Evaluation) -> str:
    """The part of README.md that holds the figures, with the marks around it."""
    return f"{README_BEGIN}\n{evaluation.table()}\n{README_END}"


class _Run(NamedTuple):
    """What is needed of a stored trajectory."""

    id: str
    source: str
    step_count: int


def evaluate(library: Library, judge: Judge, truth: str, progress: Progress = ignore_progress) -> Evaluation:
    """Judge what has not been judged of the trajectories whose truth is known, and compare.

    ``truth`` is EXAMPLES, for runs with a truth.json beside them, or HUMAN, for the newest submitted review of each.
    """
    problems: list[Problem] = []
    known = list(_known_from_records(library, problems) if truth == EXAMPLES else _known_from_reviews(library))
    cases: dict[str, list[Case]] = {}
    for done, (run, set_name, truth_of_run) in enumerate(known):
        progress(done, len(known), run.source)
        case = Case(truth_of_run, _said(library, judge, run.id), run.step_count)
        cases.setdefault(set_name, []).append(case)
    sets = {name: agreement(cases[name]) for name in SETS if name in cases}
    return Evaluation(judge.name, judge.fingerprint, truth, sets, tuple(problems))


def truth_of_record(document: Any, step_count: int) -> tuple[str, Truth]:
    """The set and the truth a run's truth.json states. Raises ValueError where it fits no run of so many steps."""
    try:
        deviation = document["deviation"]
        truth = Truth(
            outcome=_one_of(document["outcome"], ("correct", "incorrect")),
            wrong_steps=frozenset(_index(value, step_count) for value in document["error_steps"]),
            first_error=None if (first := document["first_error_step"]) is None else _index(first, step_count),
            ranges=((float(deviation["start_s"]), float(deviation["end_s"])),) if deviation else (),
        )
        return document["set"] if document["set"] in SETS else "other", truth
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"it lacks or misstates {error}") from error


def truth_of_review(review: dict[str, Any]) -> Truth:
    """What a person's review says. Their silence says nothing: a step counts when they labelled it, or when it comes
    before their first error."""
    labels = {int(index): label["label"] for index, label in review["step_labels"].items()}
    first_error = review["first_error"]["step_index"] if review["first_error"] else None
    wrong = {index for index, label in labels.items() if label == "-"} | (
        {first_error} if first_error is not None else set()
    )
    unsure = {index for index, label in labels.items() if label == "unsure"}
    right = {index for index, label in labels.items() if label == "+"} | (set(range(first_error or 0)) - unsure)
    spans = tuple((span["start_s"], span["end_s"]) for span in review["spans"])
    return Truth(
        outcome=review["outcome"] if review["outcome"] in ("correct", "incorrect") else None,
        wrong_steps=frozenset(wrong),
        known_steps=frozenset(wrong | right),
        first_error=first_error,
        ranges=spans or None,
    )


def _known_from_records(library: Library, problems: list[Problem]) -> Iterator[tuple[_Run, str, Truth]]:
    for run in _runs(library):
        path = Path(run.source) / TRUTH_FILE
        try:
            if not path.is_file() or path.stat().st_size > _MAX_TRUTH_BYTES:
                continue
            document = json.loads(path.read_text("utf-8"))
            set_name, truth = truth_of_record(document, run.step_count)
        except (OSError, ValueError, RecursionError) as error:
            cause = error.strerror if isinstance(error, OSError) else error
            problems.append(Problem(str(path), f"The truth can't be read ({cause}); the run was left out."))
            continue
        yield run, set_name, truth


def _known_from_reviews(library: Library) -> Iterator[tuple[_Run, str, Truth]]:
    with library.database.read() as session:
        submitted = select(ReviewRow).where(ReviewRow.status == "submitted").order_by(ReviewRow.updated_utc)
        newest = {review.trajectory_id: review.reviewer for review in session.scalars(submitted)}
        reviews = {id: ledger.current_review(session, id, reviewer) for id, reviewer in newest.items()}
    for run in _runs(library):
        if run.id in reviews:
            yield run, "reviewed", truth_of_review(reviews[run.id])


def _runs(library: Library) -> list[_Run]:
    columns = select(TrajectoryRow.id, TrajectoryRow.source, TrajectoryRow.step_count)
    with library.database.read() as session:
        return [_Run(*row) for row in session.execute(columns.order_by(TrajectoryRow.source))]


def _said(library: Library, judge: Judge, trajectory_id: str) -> Said | None:
    """What the judge says of a trajectory as it is now; None where there is no answer."""
    judgement_id = judge_trajectory(library, judge, trajectory_id)
    with library.database.read() as session:
        made = judgements(session, trajectory_id)
    judgement = next(judgement for judgement in made if judgement["id"] == judgement_id)
    if judgement["error"]:
        return None
    return Said(
        outcome=judgement["outcome"],
        wrong_steps=frozenset(label["step_index"] for label in judgement["step_labels"] if label["label"] == "-"),
        ranges=tuple((span["start_s"], span["end_s"]) for span in judgement["spans"]),
    )


def _one_of(value: Any, allowed: Iterable[str]) -> str:
    if value not in allowed:
        raise ValueError(f"{value!r} is no outcome")
    return str(value)


def _index(value: Any, step_count: int) -> int:
    if not isinstance(value, int) or not 0 <= value < step_count:
        raise ValueError(f"there is no step {value!r} among {step_count}")
    return value
