"""``reviewer evaluate``: how far a judge agrees with known truth."""

from __future__ import annotations

import json

import click

from reviewer import judges
from reviewer.errors import ReviewerError
from reviewer.evaluation import EXAMPLES, HUMAN, evaluate
from reviewer.library import open_library
from reviewer.settings import Settings

TITLES = {EXAMPLES: "the truth recorded beside runs", HUMAN: "submitted reviews"}


@click.command("evaluate")
@click.option("--judge", "judge_name", default=judges.DEFAULT_JUDGE, show_default=True, help="The judge to evaluate.")
@click.option("--truth", type=click.Choice([EXAMPLES, HUMAN]), help="Only this kind of truth, instead of both.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON Lines.")
def evaluate_command(judge_name: str, truth: str | None, as_json: bool) -> None:
    """Hold a judge against known truth; what it has not judged yet is judged first."""
    judge = judges.load(judge_name)
    library = open_library(Settings.from_environment())
    evaluations = [evaluate(library, judge, kind) for kind in ([truth] if truth else [EXAMPLES, HUMAN])]
    for evaluation in evaluations:
        for problem in evaluation.problems:
            click.echo(f"{problem.file!r}: {problem.message}", err=True)
        if as_json:
            for record in evaluation.to_json():
                click.echo(json.dumps(record))
        elif evaluation.sets:
            click.echo(f"{judge.name} against {TITLES[evaluation.truth]}:\n\n{evaluation.table()}\n")
    if not any(evaluation.sets for evaluation in evaluations):
        raise ReviewerError("There is nothing to evaluate against: import runs with a truth.json, or submit reviews.")
