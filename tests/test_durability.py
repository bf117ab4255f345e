"""No acknowledged op is lost and none is doubled, whenever the server is killed."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx
import pytest
from durability_server import serve
from ports import free_port
from rows import STEP_COUNT, add_trajectory
from sqlalchemy import select

from db.models import OverrideRow
from db.session import Database
from reviewer import ledger

START_S = 60.0
WRITERS = ("ann", "bob", "cleo", "dan")
SHARED = "shared"
# Both people of a pair write one review, so that they also make each other's ops stale.
SHARED_NAMES = {"ann": "pair-1", "bob": "pair-1", "cleo": "pair-2", "dan": "pair-2"}


@dataclass
class Writer:
    """One browser: sends its ops one at a time, remembers what was acknowledged and what was not."""

    name: str
    unsent: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    acknowledged: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    revs: dict[str, int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def next_op(self) -> tuple[str, str, dict[str, Any]]:
        number = next(self.numbers)
        trajectory_id, reviewer = (SHARED, SHARED_NAMES[self.name]) if number % 2 else (f"own-{self.name}", self.name)
        step_index, text = number % STEP_COUNT, f"{self.name} {number}"
        op = {"op_id": f"{self.name}-{number}", "type": "set_note", "step_index": step_index, "text": text, "shown": []}
        return trajectory_id, reviewer, op

    def send(self, client: httpx.Client) -> None:
        """Send the op at hand until it is acknowledged. Raises httpx.TransportError when the server dies."""
        if not self.unsent:
            self.unsent.append(self.next_op())
        trajectory_id, reviewer, op = self.unsent[0]
        while True:
            body = op | {"base_rev": self.revs.get(trajectory_id, 0)}
            answer = client.post(f"/api/trajectories/{trajectory_id}/ops", json=body, headers={"X-Reviewer": reviewer})
            self.revs[trajectory_id] = answer.json()["rev"]
            if answer.status_code == 200:
                break
            assert answer.status_code == 409, answer.text
        self.acknowledged[op["op_id"]] = (trajectory_id, reviewer, answer.json()["rev"])
        self.unsent.clear()


@contextmanager
def running_server(url: str) -> Iterator[tuple[BaseProcess, str]]:
    """A server process of its own; forked from one that has the libraries loaded, which saves seconds each time."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["alembic.command", "fastapi", "sqlalchemy.orm", "uvicorn"])
    port = free_port()
    server = processes.Process(target=serve, args=(url, port), daemon=True)
    server.start()
    address = f"http://127.0.0.1:{port}"
    deadline_s = time.monotonic() + START_S
    try:
        while True:
            assert server.is_alive() and time.monotonic() < deadline_s
            try:
                httpx.get(address)
                break
            except httpx.TransportError:
                time.sleep(0.02)
        yield server, address
    finally:
        server.kill()
        server.join()


def write_until_killed(writers: list[Writer], server: BaseProcess, address: str, chance: random.Random) -> int:
    """All writers at full speed until the server is killed; returns how many of them had an op in flight then."""
    wanted = sum(len(writer.acknowledged) for writer in writers) + chance.randint(5, 120)
    sending = {writer.name: False for writer in writers}
    failures: list[BaseException] = []

    def write(writer: Writer) -> None:
        with httpx.Client(base_url=address) as client:
            try:
                while True:
                    sending[writer.name] = True
                    writer.send(client)
                    sending[writer.name] = False
            except httpx.TransportError:
                return
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    while sum(len(writer.acknowledged) for writer in writers) < wanted and not failures:
        time.sleep(0.0005)
    time.sleep(chance.uniform(0, 0.01))
    in_flight = sum(sending.values())
    server.kill()
    for thread in threads:
        thread.join()
    assert failures == []
    return in_flight


def check_ledger(database_path: Path, writers: list[Writer]) -> set[str]:
    """Every acknowledged op is there once, at the rev it was given; returns all op ids found."""
    with sqlite3.connect(database_path) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database = Database.open(f"sqlite:///{database_path}")
    with database.read() as session:
        rows = session.scalars(select(OverrideRow).order_by(OverrideRow.rev)).all()
        found = [row.op_id for row in rows]
        assert len(found) == len(set(found))
        stored = {row.op_id: (row.trajectory_id, row.reviewer, row.rev) for row in rows}
        for writer in writers:
            assert writer.acknowledged.items() <= stored.items()
        for trajectory_id, reviewer in {(row.trajectory_id, row.reviewer) for row in rows}:
            own = [row for row in rows if (row.trajectory_id, row.reviewer) == (trajectory_id, reviewer)]
            assert [row.rev for row in own] == list(range(1, len(own) + 1))
            review = ledger.current_review(session, trajectory_id, reviewer)
            assert review["rev"] == len(own)
            assert review["notes"] == {str(row.body["step_index"]): row.body["text"] for row in own}
    database.close()
    return set(found)


def kill_and_restart(folder: Path, rounds: int, seed: int) -> tuple[int, int, int]:
    """Returns in how many rounds an op was in flight at the kill, how many of those ops had been kept, and all ops."""
    path, chance = folder / "reviewer.db", random.Random(seed)
    url = f"sqlite:///{path}"
    writers = [Writer(name) for name in WRITERS]
    database = Database.open(url)
    with database.write() as session:
        for trajectory_id in (SHARED, *(f"own-{name}" for name in WRITERS)):
            add_trajectory(session, trajectory_id)
    database.close()
    rounds_in_flight = kept_unacknowledged = 0
    for _ in range(rounds):
        with running_server(url) as (server, address):
            resent = [writer.unsent[0][2]["op_id"] for writer in writers if writer.unsent]
            with httpx.Client(base_url=address) as client:
                for writer in writers:
                    if writer.unsent:
                        writer.send(client)
            assert all(any(op_id in writer.acknowledged for writer in writers) for op_id in resent)
            rounds_in_flight += write_until_killed(writers, server, address, chance) > 0
        found = check_ledger(path, writers)
        kept_unacknowledged += sum(writer.unsent[0][2]["op_id"] in found for writer in writers if writer.unsent)
    with running_server(url) as (_, address), httpx.Client(base_url=address) as client:
        for writer in writers:
            if writer.unsent:
                writer.send(client)
    found = check_ledger(path, writers)
    assert found == {op_id for writer in writers for op_id in writer.acknowledged}
    return rounds_in_flight, kept_unacknowledged, len(found)


def test_five_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    in_flight, kept, total = kill_and_restart(tmp_path, rounds=5, seed=1)
    print(f"{total} ops; an op in flight at {in_flight} kills; {kept} unacknowledged ops had been kept")
    assert total > 5 * len(WRITERS)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.environ.get("REVIEWER_LONG") != "1", reason="set REVIEWER_LONG=1 for fifty kills")
def test_fifty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    in_flight, kept, total = kill_and_restart(tmp_path, rounds=50, seed=2)
    print(f"{total} ops; an op in flight at {in_flight} kills; {kept} unacknowledged ops had been kept")
    assert in_flight >= 10
    assert total > 50 * len(WRITERS)
