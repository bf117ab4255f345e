"""How long the worklist takes with 10,000 trajectories: ``make bench``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from statistics import median

from worklists import REVIEWER, fill

from db.session import Database
from reviewer import worklist
from reviewer.worklist import Query

COUNT = 10_000
REPEATS = 15
QUERIES = {
    "as imported": Query(REVIEWER),
    "search": Query(REVIEWER, search="report-0"),
    "by task": Query(REVIEWER, sort="task"),
    "by judge outcome": Query(REVIEWER, sort="judge_outcome"),
    "not judged": Query(REVIEWER, judge_outcome="none"),
    "by review": Query(REVIEWER, sort="review", descending=True),
    "submitted": Query(REVIEWER, review="submitted"),
    "with problems": Query(REVIEWER, problems=True),
}


def median_ms(work: Callable[[], object]) -> float:
    """The median time of several runs in milliseconds."""
    times = []
    for _ in range(REPEATS):
        begin_s = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin_s) * 1000)
    return median(times)


def main() -> None:
    """Print one line per query: a page, and all ids in order."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database.open(f"sqlite:///{folder}/bench.db")
        with database.write() as session:
            fill(session, COUNT)
        print(f"{COUNT:,} trajectories; median ms of {REPEATS}")
        with database.read() as session:
            for name, query in QUERIES.items():
                page_ms = median_ms(lambda query=query: worklist.page(session, query))
                last_ms = median_ms(lambda query=query: worklist.page(session, query, COUNT - 100))
                ids_ms = median_ms(lambda query=query: worklist.ordered_ids(session, query))
                print(f"{name:<18} page {page_ms:6.1f}   last page {last_ms:6.1f}   all ids {ids_ms:6.1f}")
        database.close()


if __name__ == "__main__":
    main()
