"""The command line: ``reviewer import | judge | list | show | export | evaluate | serve``."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from reviewer import __version__, judges, worklist
from reviewer.detail import detail
from reviewer.errors import ReviewerError
from reviewer.evaluate_command import evaluate_command
from reviewer.intake import ignore_progress, import_paths
from reviewer.jobs import judge_trajectory
from reviewer.judges import Progress
from reviewer.library import Library, open_library
from reviewer.settings import Settings

FAILED = 2
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7860
TEXT_WIDTH = 80
CLEAR_LINE = "\r\x1b[K"


class _Group(click.Group):
    """The one place where errors meant for a person become a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ReviewerError as error:
            message = str(error)
        except OSError as error:
            message = f"{error.filename or 'input or output'}: {error.strerror or error}"
        click.echo(f"Error: {_printable(message)}", err=True)
        ctx.exit(FAILED)


json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON Lines.")


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reviewer")
def main() -> None:
    """Play, judge and correct the runs of computer-use agents.

    Data is kept in REVIEWER_HOME (./reviewer-data) and REVIEWER_DB_URL (SQLite in it).
    """
    # Without a handler Python prints logged tracebacks to the terminal.
    logging.getLogger("reviewer").addHandler(logging.NullHandler())


@main.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "format", help="Read the files as this format instead of recognising it.")
@click.option("--task", help="The task of runs that do not state theirs.")
@json_option
def import_command(paths: tuple[Path, ...], format: str | None, task: str | None, as_json: bool) -> None:
    """Import runs from folders, files and zip archives."""
    imported = 0
    with _progress() as progress:
        records = import_paths(_library(), paths, task=task, format=format, is_trusted=True, progress=progress)
        for record in records:
            imported += record["id"] is not None
            _echo(record, as_json, _import_lines)
    if not imported:
        raise ReviewerError("Nothing was imported.")


@main.command()
@click.argument("name")
@click.option("--id", "ids", multiple=True, help="Judge this trajectory; may be given more than once.")
@click.option("--all", "everything", is_flag=True, help="Judge every trajectory.")
@json_option
def judge(name: str, ids: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Have a judge look at trajectories; what it has judged already is shown again."""
    if bool(ids) == everything:
        raise click.UsageError("Say which trajectories: --id ID or --all.")
    chosen = judges.load(name)
    library = _library()
    judged = 0
    with _progress() as progress:
        for trajectory_id in ids or _all_ids(library):
            judgement_id = judge_trajectory(library, chosen, trajectory_id, progress)
            with library.database.read() as session:
                answers = detail(session, trajectory_id, "")["judgements"]
            answer = next(answer for answer in answers if answer["id"] == judgement_id)
            judged += answer["error"] is None
            _echo({"trajectory_id": trajectory_id, **answer}, as_json, _judgement_lines)
    if not judged:
        raise ReviewerError("Nothing was judged.")


@main.command("list")
@click.option("--search", default="", help="Only those with this text in task, source, agent or id.")
@click.option("--source", default="", help="Only those of this format.")
@click.option("--reviewer", default="", help="Whose reviews to show.")
@json_option
def list_command(search: str, source: str, reviewer: str, as_json: bool) -> None:
    """List the trajectories in the order they were imported."""
    query = worklist.Query(reviewer=reviewer, search=search, source=source)
    library = _library()
    offset = 0
    while True:
        with library.database.read() as session:
            page = worklist.page(session, query, offset, worklist.MAX_LIMIT)
        for item in page.items:
            _echo(item, as_json, _list_lines)
        offset += len(page.items)
        if not page.items or offset >= page.total:
            return


@main.command()
@click.argument("trajectory_id", metavar="ID")
@click.option("--reviewer", default="", help="Whose review to show.")
@json_option
def show(trajectory_id: str, reviewer: str, as_json: bool) -> None:
    """Show one trajectory with its judgements."""
    with _library().database.read() as session:
        shown = detail(session, trajectory_id, reviewer)
    _echo(shown, as_json, _show_lines)


@main.command()
@click.argument("recipe")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--id", "ids", multiple=True, help="Export this trajectory; may be given more than once.")
@json_option
def export(recipe: str, folder: Path, ids: tuple[str, ...], as_json: bool) -> None:
    """Write the trajectories with all reviews and judgements into DIR, by a RECIPE such as jsonl."""
    manifest = _library().export(recipe, folder, ids or None)
    _echo({"recipe": manifest.recipe, "folder": str(folder), "counts": manifest.counts}, as_json, _export_lines)


main.add_command(evaluate_command)


@main.command()
@click.option("--host", default=DEFAULT_HOST, show_default=True)
@click.option("--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(1, 65535))
@click.option("--examples/--no-examples", default=True, help="Load the example runs into a new library.")
def serve(host: str, port: int, examples: bool) -> None:
    """Serve the page until Ctrl-C."""
    logging.basicConfig()
    # Gradio takes seconds to import; the other commands do without it.
    server = importlib.import_module("reviewer.ui.server")
    server.serve(Settings.from_environment(), host, port, examples=examples)


def _library() -> Library:
    return open_library(Settings.from_environment())


def _all_ids(library: Library) -> list[str]:
    with library.database.read() as session:
        return worklist.ordered_ids(session, worklist.Query())


@contextmanager
def _progress() -> Iterator[Progress]:
    """Tell on standard error how far it is, where that is a terminal."""
    if not sys.stderr.isatty():
        yield ignore_progress
        return

    def tell(done: int, total: int | None, message: str) -> None:
        count = f"{done}/{total}" if total else str(done)
        click.echo(f"{CLEAR_LINE}{count} {_printable(_short(message, TEXT_WIDTH))}", nl=False, err=True)

    try:
        yield tell
    finally:
        click.echo(CLEAR_LINE, nl=False, err=True)


def _echo(record: dict[str, Any], as_json: bool, lines: Callable[[dict[str, Any]], Iterable[str]]) -> None:
    if sys.stderr.isatty():
        click.echo(CLEAR_LINE, nl=False, err=True)
    if as_json:
        click.echo(json.dumps(record))
        return
    for line in lines(record):
        click.echo(_printable(line))


def _import_lines(record: dict[str, Any]) -> Iterator[str]:
    if record["id"] is None:
        yield f"refused           {record['source']}"
    else:
        what = f"{record['format']}, {_count(record['steps'], 'step')}, {record['outcome'] or 'no outcome'}"
        yield f"{record['id']}  {_short(record['task'] or record['source'], TEXT_WIDTH)}  ({what})"
    for problem in record["problems"]:
        line = f":{problem['line']}" if problem["line"] else ""
        yield f"    {problem['file']}{line}: {problem['message']}"


def _judgement_lines(judgement: dict[str, Any]) -> Iterator[str]:
    said = judgement["error"] or judgement["outcome"] or "no outcome"
    yield f"{judgement['trajectory_id']}  {judgement['judge']}: {said}"
    yield from _label_lines(judgement)


def _label_lines(judgement: dict[str, Any]) -> Iterator[str]:
    for label in judgement["step_labels"]:
        yield f"    step {label['step_index'] + 1}: {label['label']} {label['reason']}"
    for span in judgement["spans"]:
        yield f"    {span['start_s']:.3f} s to {span['end_s']:.3f} s: {span['reason']}"


def _list_lines(item: dict[str, Any]) -> Iterator[str]:
    judged = item["judge"]["outcome"] or item["judge"]["state"]
    columns = (
        item["id"],
        f"{item['steps']:>4}",
        f"{item['outcome'] or '-':<9}",
        f"{judged:<9}",
        item["review"]["status"],
    )
    yield "  ".join((*columns, _short(item["task"] or item["source"], TEXT_WIDTH)))


def _show_lines(shown: dict[str, Any]) -> Iterator[str]:
    trajectory, review = shown["trajectory"], shown["review"]
    for name in ("id", "task", "source", "format", "agent", "score", "outcome", "imported_utc"):
        yield f"{name:<13} {'' if trajectory[name] is None else trajectory[name]}"
    if media := shown["media"]:
        yield f"{'video':<13} {media['width_px']}x{media['height_px']}, {media['duration_s']:.3f} s"
    if review["reviewer"]:
        yield f"{'review':<13} {review['status']}, {review['outcome'] or 'no outcome'} by {review['reviewer']}"
    for problem in trajectory["problems"]:
        yield f"{'problem':<13} {problem['file']}: {problem['message']}"
    at_s = shown["alignment"]["step_at_s"] if shown["alignment"] else []
    for step in trajectory["steps"]:
        time = f"{at_s[step['index']]:9.3f} s" if step["index"] < len(at_s) else ""
        kinds = ", ".join(action["kind"] for action in step["actions"])
        yield f"step {step['index'] + 1:<4} {time}  {_short(step['raw'] or kinds, TEXT_WIDTH)}"
    for judgement in shown["judgements"]:
        yield f"{judgement['judge']}: {judgement['error'] or judgement['outcome'] or 'no outcome'}"
        yield from _label_lines(judgement)


def _export_lines(exported: dict[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{number} {name}" for name, number in exported["counts"].items())
    yield f"{exported['folder']}: {counts}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _short(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _printable(text: str) -> str:
    """Without what a terminal would obey: control characters become spaces."""
    return "".join(character if character.isprintable() else " " for character in text)
