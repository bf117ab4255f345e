"""How long a person waits for one op: the round trip over HTTP, in an empty ledger and in a large one.

Run it as ``PYTHONPATH=tests python bench/op_round_trip.py``. It starts a server for each of two databases, one empty,
one with 20,000 ops, 2,000 of them by this reviewer on the open trajectory, and sends both the same ops in turn over
kept-alive connections. The commit alone, with its full sync to the disk, is timed beside them.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from ports import free_port
from rows import STEP_COUNT, add_trajectory, fill_ledger

from db.session import Database

ROUNDS = 300
WARM_UP = 20
OWN_OPS = 2_000
OTHER_TRAJECTORIES = 9
OPS_EACH = 2_000
START_S = 60.0


def make_database(path: Path, large: bool) -> int:
    """Make a database with the trajectory ``open``; returns the rev of its review."""
    database = Database.open(f"sqlite:///{path}")
    with database.write() as session:
        add_trajectory(session, "open")
        if large:
            fill_ledger(session, "open", "ann", OWN_OPS)
            for number in range(OTHER_TRAJECTORIES):
                fill_ledger(session, add_trajectory(session, f"other-{number}"), "ann", OPS_EACH)
    database.close()
    return OWN_OPS if large else 0


def start_server(path: Path) -> tuple[subprocess.Popen[bytes], httpx.Client]:
    """Start the review routes over the database and wait until they answer."""
    port = free_port()
    command = [sys.executable, "-m", "durability_server", f"sqlite:///{path}", str(port)]
    server = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"X-Reviewer": "ann"})
    deadline_s = time.monotonic() + START_S
    while True:
        try:
            client.get("/")
            return server, client
        except httpx.TransportError:
            if server.poll() is not None or time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


def op_of(number: int, rev: int) -> dict[str, Any]:
    """The ``number``-th op of a person labelling steps."""
    label = ("+", "-", "unsure")[number // STEP_COUNT % 3]
    return {
        "op_id": f"timed-{number}",
        "base_rev": rev,
        "type": "label_step",
        "step_index": number % STEP_COUNT,
        "label": label,
        "shown": [],
    }


def time_op(client: httpx.Client, number: int, rev: int) -> tuple[float, int]:
    """Send one op; returns the seconds until it was acknowledged and the new rev."""
    start_s = time.perf_counter()
    answer = client.post("/api/trajectories/open/ops", json=op_of(number, rev))
    elapsed_s = time.perf_counter() - start_s
    answer.raise_for_status()
    return elapsed_s, answer.json()["rev"]


def time_commits(path: Path, count: int) -> list[float]:
    """The seconds of each of ``count`` bare commits of one small row, fully synced."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE row (value TEXT)")
    times_s = []
    for _ in range(count):
        start_s = time.perf_counter()
        connection.execute("INSERT INTO row VALUES (?)", ("x" * 1000,))
        times_s.append(time.perf_counter() - start_s)
    connection.close()
    return times_s


def line(name: str, times_s: list[float]) -> str:
    """One line of the table: the median and the 95th of 100, in milliseconds."""
    return f"{name:<34}{statistics.median(times_s) * 1000:>9.2f}{p95_s(times_s) * 1000:>9.2f}"


def p95_s(times_s: list[float]) -> float:
    """The 95th of 100."""
    return statistics.quantiles(times_s, n=20)[18]


def measure(rounds: int = ROUNDS) -> tuple[list[float], list[float], list[float]]:
    """Seconds of ``rounds`` ops in an empty ledger, as many in a large one sent in turn with them, and bare commits."""
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name) / "empty.db", Path(name) / "large.db"]
        revs = [make_database(path, large=path.stem == "large") for path in paths]
        servers = [start_server(path) for path in paths]
        times_s: list[list[float]] = [[], []]
        try:
            for number in range(WARM_UP + rounds):
                for which, (_, client) in enumerate(servers):
                    elapsed_s, revs[which] = time_op(client, number, revs[which])
                    if number >= WARM_UP:
                        times_s[which].append(elapsed_s)
        finally:
            for server, _ in servers:
                server.kill()
                server.wait()
        return times_s[0], times_s[1], time_commits(Path(name) / "commits.db", rounds)


def main() -> None:
    """Measure and print the table."""
    empty_s, large_s, commits_s = measure()
    print(f"{'one op, ' + str(ROUNDS) + ' times':<34}{'p50 ms':>9}{'p95 ms':>9}")
    print(line("empty ledger", empty_s))
    print(line("20,000 ops, 2,000 of them here", large_s))
    print(line("a bare synced commit", commits_s))


if __name__ == "__main__":
    main()
