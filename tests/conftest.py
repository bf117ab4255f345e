"""Fixtures every test may use: a database of its own, one trajectory in it, and a PostgreSQL where one can run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from people import Person
from ports import free_port
from rows import add_trajectory

from db.session import Database

POSTGRES_USER = "postgres"
START_S = 30.0


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'reviewer.db'}"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database.open(database_url)
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def any_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of each kind in turn; PostgreSQL is skipped where no server is installed."""
    url = f"sqlite:///{tmp_path / 'any.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    database = Database.open(url)
    yield database
    database.close()


@pytest.fixture
def trajectory_id(database: Database) -> str:
    with database.write() as session:
        return add_trajectory(session, "aaaaaaaaaaaaaaaa")


@pytest.fixture
def ann(database: Database, trajectory_id: str) -> Iterator[Person]:
    """A reviewer at work in one write session, committed when the test ends."""
    with database.write() as session:
        yield Person(session, trajectory_id)


def _postgres_binary(name: str) -> str | None:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(installed[-1]) if installed else shutil.which(name)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server started for the tests, without a database name."""
    psycopg = pytest.importorskip("psycopg")
    initdb, postgres = _postgres_binary("initdb"), _postgres_binary("postgres")
    if initdb is None or postgres is None:
        pytest.skip("no PostgreSQL server is installed")
    # The server refuses to run as root, and its user can't enter the folders of pytest.
    user = POSTGRES_USER if os.geteuid() == 0 else None
    with TemporaryDirectory(prefix="reviewer-postgres-") as name:
        folder, port = Path(name), free_port()
        if user is not None:
            shutil.chown(folder, user)
        data, log = folder / "data", folder / "log"
        initialise = [initdb, "-D", data, "-U", "reviewer", "-A", "trust", "--no-sync"]
        subprocess.run(initialise, check=True, capture_output=True, user=user, cwd=folder)
        options = ["-D", data, "-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        with log.open("w") as output:
            server = subprocess.Popen([postgres, *options], user=user, cwd=folder, stdout=output, stderr=output)
        try:
            _await_postgres(psycopg, server, port, log)
            yield f"postgresql://reviewer@127.0.0.1:{port}"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(START_S)


def _await_postgres(psycopg: Any, server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(f"postgresql://reviewer@127.0.0.1:{port}/postgres").close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline_s:
                pytest.fail(f"PostgreSQL did not start: {log.read_text()}")
            time.sleep(0.05)


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    psycopg = pytest.importorskip("psycopg")
    name = f"test_{time.monotonic_ns()}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{postgres_server}/{name}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
