"""The worklist: searched, filtered, in a stable order, and fast."""

from __future__ import annotations

import os
import time
from typing import Any, get_args

import pytest
from sqlalchemy import insert
from worklists import REVIEWER, fill, judgement_values, trajectory_values

from db.models import JobRow, JudgementRow, TrajectoryRow
from db.session import Database
from reviewer import worklist
from reviewer.worklist import Query

COUNT = 40


def add(database: Database, *rows: tuple[type[Any], dict[str, Any]]) -> None:
    with database.write() as session:
        for table, values in rows:
            session.execute(insert(table), [values])


def ids(database: Database, query: Query) -> list[str]:
    with database.read() as session:
        return worklist.ordered_ids(session, query)


def items(database: Database, query: Query, **options: Any) -> list[dict[str, Any]]:
    with database.read() as session:
        return worklist.page(session, query, **options).items


@pytest.fixture
def filled(database: Database) -> Database:
    with database.write() as session:
        fill(session, COUNT)
    return database


@pytest.mark.parametrize("text", ["REPORT-00007", "report-00007.txt", "rename the file report-00007"])
def test_search_finds_a_task_whatever_the_case(filled: Database, text: str) -> None:
    assert [item["task"] for item in items(filled, Query(search=text))] == ["Task 7: rename the file report-00007.txt"]


@pytest.mark.parametrize("text", ["ÉTÉ à", "été À", "ОТЧЁТ", "отчёт", "Η ΟΔΌ", "η οδό"])
def test_search_knows_the_cases_of_every_alphabet(any_database: Database, text: str) -> None:
    tasks = ["Été à Paris", "Отчёт за март", "Η οδός", "nothing"]
    add(any_database, *((TrajectoryRow, trajectory_values(n, task=task)) for n, task in enumerate(tasks)))
    (item,) = items(any_database, Query(search=text))
    assert text.casefold() in item["task"].casefold()


def test_search_takes_wildcards_literally(any_database: Database) -> None:
    tasks = ["100% done", "100 done", "a_b", "axb", r"back\slash"]
    add(any_database, *((TrajectoryRow, trajectory_values(n, task=task)) for n, task in enumerate(tasks)))
    found = {text: [item["task"] for item in items(any_database, Query(search=text))] for text in ("0%", "a_b", "k\\s")}
    assert found == {"0%": ["100% done"], "a_b": ["a_b"], "k\\s": [r"back\slash"]}


def test_search_looks_at_source_agent_and_id(filled: Database) -> None:
    wanted = trajectory_values(3)
    assert ids(filled, Query(search=wanted["id"][2:14].upper())) == [wanted["id"]]
    assert len(ids(filled, Query(search="MODEL-3/os"))) == sum(n % 7 == 3 for n in range(COUNT))


def test_filters_narrow_together(filled: Database) -> None:
    query = Query(source="osworld", agent="model-0", problems=False)
    expected = [n for n in range(COUNT) if n % 3 == 0 and n % 7 == 0 and n % 4 == 0]
    assert ids(filled, query) == [trajectory_values(n)["id"] for n in expected]


@pytest.mark.parametrize(
    ("outcome", "is_wanted"),
    [
        ("correct", lambda n: n % 5 and n % 3 == 0),
        ("incorrect", lambda n: n % 5 and n % 3 == 1),
        ("none", lambda n: not n % 5 or n % 3 == 2),
    ],
)
def test_judge_outcome_filter_counts_the_unjudged_as_none(filled: Database, outcome: Any, is_wanted: Any) -> None:
    assert ids(filled, Query(judge_outcome=outcome)) == [
        trajectory_values(n)["id"] for n in range(COUNT) if is_wanted(n)
    ]


def test_newest_judgement_counts(any_database: Database) -> None:
    values = trajectory_values(1)
    old = judgement_values(2, values["id"], outcome="incorrect", created_utc="2026-01-01T00:00:00.000000+00:00")
    new = judgement_values(1, values["id"], outcome="correct", created_utc="2026-01-03T00:00:00.000000+00:00")
    add(any_database, (TrajectoryRow, values), (JudgementRow, old), (JudgementRow, new))
    assert ids(any_database, Query(judge_outcome="incorrect")) == []
    (item,) = items(any_database, Query(judge_outcome="correct"))
    assert item["judge"] == {"name": "screen_rules", "outcome": "correct", "minus_steps": 1, "state": "done"}


@pytest.mark.parametrize("review", ["unreviewed", "in_progress", "submitted", "correct", "incorrect", "unsure"])
def test_review_filter_is_about_this_reviewer(filled: Database, review: Any) -> None:
    def state(n: int) -> set[str]:
        if n % 4:
            return {"unreviewed"}
        return {"submitted" if n % 8 else "in_progress", str(("correct", "incorrect", None)[n % 3])}

    expected = [trajectory_values(n)["id"] for n in range(COUNT) if review in state(n)]
    assert ids(filled, Query(REVIEWER, review=review)) == expected
    assert len(ids(filled, Query("bob", review=review))) == (COUNT if review == "unreviewed" else 0)


@pytest.mark.parametrize("sort", ["imported", "task", "steps", "duration", "judge_outcome", "review", "problems"])
@pytest.mark.parametrize("descending", [False, True])
def test_every_order_is_stable_and_pages_add_up(filled: Database, sort: Any, descending: bool) -> None:
    query = Query(REVIEWER, sort=sort, descending=descending)
    paged = [item["id"] for offset in range(0, COUNT, 7) for item in items(filled, query, offset=offset, limit=7)]
    assert paged == ids(filled, query)
    assert len(set(paged)) == COUNT


def test_every_order_and_filter_works_on_every_database(any_database: Database) -> None:
    with any_database.write() as session:
        fill(session, COUNT)
    sorts: tuple[Any, ...] = get_args(worklist.Sort)
    for sort in sorts:
        assert len(items(any_database, Query(REVIEWER, sort=sort))) == COUNT
    nulls_last = items(any_database, Query(sort="duration", descending=True))
    assert [item["duration_s"] for item in nulls_last][-4:] == [None] * 4
    assert len(ids(any_database, Query(search="REPORT-0", judge_outcome="none", review="unreviewed"))) > 0


def test_sorts_put_first_what_they_say(filled: Database) -> None:
    assert [item["steps"] for item in items(filled, Query(sort="steps"))] == sorted(n % 40 for n in range(COUNT))
    assert items(filled, Query(sort="judge_outcome"))[0]["judge"]["outcome"] == "incorrect"
    assert items(filled, Query(REVIEWER, sort="review", descending=True))[0]["review"]["status"] == "submitted"
    assert items(filled, Query(sort="problems", descending=True))[0]["problem_count"] == 3
    assert [item["duration_s"] for item in items(filled, Query(sort="duration"))][-4:] == [None] * 4


def test_an_item_carries_what_the_page_shows(filled: Database) -> None:
    number = 8
    values = trajectory_values(number)
    (item,) = items(filled, Query(REVIEWER, search=values["id"]))
    assert item == {
        "id": values["id"],
        "task": values["task"],
        "source": values["source"],
        "format": "native",
        "agent": "model-1",
        "steps": 8,
        "duration_s": 8.0,
        "width_px": 1920,
        "height_px": 1080,
        "thumbnail_url": None,
        "judge": {"name": "screen_rules", "outcome": None, "minus_steps": 3, "state": "done"},
        "outcome": None,
        "review": {"status": "in_progress", "outcome": None},
        "problem_count": 0,
        "problems": [],
        "imported_utc": values["imported_utc"],
        "revision": 1,
    }


def test_waiting_judge_shows_as_queued_and_a_failed_one_as_failed(any_database: Database) -> None:
    waiting, failed = trajectory_values(1), trajectory_values(2)
    job = {
        "id": "j",
        "kind": "judge",
        "trajectory_id": waiting["id"],
        "arguments": {},
        "state": "queued",
        "done": 0,
        "message": "",
        "created_utc": "",
        "updated_utc": "",
    }
    error = judgement_values(1, failed["id"], error="no frames", outcome=None)
    add(any_database, (TrajectoryRow, waiting), (TrajectoryRow, failed), (JobRow, job), (JudgementRow, error))
    assert [item["judge"]["state"] for item in items(any_database, Query(sort="steps"))] == ["queued", "failed"]


def test_all_ids_come_with_a_page(filled: Database) -> None:
    with filled.read() as session:
        page = worklist.page(session, Query(), 10, 5, all_ids=True)
    assert page.total == len(page.ids or []) == COUNT
    assert [item["id"] for item in page.items] == (page.ids or [])[10:15]


def test_a_page_beyond_the_end_is_empty(filled: Database) -> None:
    with filled.read() as session:
        assert worklist.page(session, Query(), COUNT, 10) == (COUNT, [], None)


def test_choices_are_the_values_there_are(filled: Database) -> None:
    with filled.read() as session:
        choices = worklist.choices(session)
    assert choices == {"formats": ["native", "osworld", "video"], "agents": [f"model-{n}" for n in range(7)]}


@pytest.mark.long
@pytest.mark.skipif("REVIEWER_LONG" not in os.environ, reason="long")
def test_ten_thousand_trajectories_list_quickly(database: Database) -> None:
    with database.write() as session:
        fill(session, 10_000)
    for query in (
        Query(REVIEWER),
        Query(REVIEWER, sort="task"),
        Query(REVIEWER, sort="judge_outcome"),
        Query(REVIEWER, search="REPORT-0"),
    ):
        with database.read() as session:
            begin_s = time.perf_counter()
            worklist.page(session, query)
            page_s = time.perf_counter() - begin_s
            worklist.ordered_ids(session, query)
            ids_s = time.perf_counter() - begin_s - page_s
        assert page_s < 0.25, query
        assert ids_s < 0.5, query
