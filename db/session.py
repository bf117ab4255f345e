"""The database: opened, migrated, and handed out as sessions.

SQLite by default, PostgreSQL by URL, through the same code. SQLite runs with a write-ahead log and a full sync of every
commit; writers of one process wait for each other in Python and those of other processes for SQLite's own lock, which
a write takes when it begins.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import DatabaseError as BrokenDatabase
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from reviewer.errors import ReviewerError

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_S = 30.0
MIGRATION_LOCK_KEY = 0x7261766572
_alembic = threading.Lock()


def sqlite_url(path: Path) -> str:
    """The URL of the SQLite file at ``path``, whatever characters its name has."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


class DatabaseError(ReviewerError):
    """The database can't be opened, read or written; the message names it and what to do."""


class Database:
    """An open database at the newest schema. Safe to share between threads, not between forked processes."""

    def __init__(self, engine: Engine, name: str) -> None:
        """Use ``open``: it also migrates."""
        self.name = name
        self._engine = engine
        self._one_writer = engine.dialect.name == "sqlite"
        # SQLite always reads from one moment; PostgreSQL has to be told.
        self._reader = engine if self._one_writer else engine.execution_options(isolation_level="REPEATABLE READ")
        self._writer = engine.execution_options(begin="BEGIN IMMEDIATE")
        self._writing = threading.Lock()

    @classmethod
    def open(cls, url: str) -> Database:
        """Open the database at ``url`` (``sqlite:///file`` or ``postgresql://…``), made and migrated where needed.

        Two processes may open the same database at the same moment. Raises DatabaseError when the URL is wrong, the
        database can't be used, or it was written by a newer version of the reviewer.
        """
        parsed = _parse(url)
        name = _name(parsed)
        engine = _engine(parsed, name)
        try:
            with _told(name):
                if engine.dialect.name == "sqlite":
                    _use_write_ahead_log(engine)
                _migrate(engine, name)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, name)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that sees one moment of the database; nothing it does is kept. Raises DatabaseError."""
        with _told(self.name), Session(self._reader, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose work is committed, durably, when the block ends, and undone when it raises.

        Not to be nested in a thread: the second would wait for the first. Raises DatabaseError.
        """
        with _told(self.name), self._turn(), Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._one_writer:
            yield
            return
        with self._writing:
            yield

    def close(self) -> None:
        """Give back the idle connections."""
        self._engine.dispose()


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise DatabaseError(
            f"{url!r} is not a database URL; write sqlite:///path/to/reviewer.db or postgresql://user@host/name."
        ) from error
    if parsed.drivername in {"postgres", "postgresql"}:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "sqlite" and parsed.database in {None, "", ":memory:"}:
        raise DatabaseError("The database must be a file, not memory; write sqlite:///path/to/reviewer.db.")
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise DatabaseError(f"{parsed.drivername} databases are not supported; use sqlite:///… or postgresql://….")
    return parsed


def _name(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.render_as_string(hide_password=True)


def _engine(url: URL, name: str) -> Engine:
    try:
        if url.get_backend_name() == "postgresql":
            return create_engine(url, pool_pre_ping=True, pool_size=16, max_overflow=48)
        if not str(url.database).startswith("file:"):
            Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(
            url, poolclass=QueuePool, pool_size=16, max_overflow=48, connect_args={"timeout": BUSY_S}
        )
    except ModuleNotFoundError as error:
        raise DatabaseError(
            f"{name} needs the {error.name} package; run pip install 'trajectory-reviewer[postgres]'."
        ) from error
    except OSError as error:
        raise DatabaseError(f"{name}: its folder can't be made ({error.strerror}); choose another place.") from error
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver's own transactions would begin late and not as IMMEDIATE; _begin_sqlite begins them.
    connection.isolation_level = None
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    # SQLite's own lower() knows only the letters of ASCII.
    connection.create_function("lower", 1, _folded, deterministic=True)


def _folded(value: str | None) -> str | None:
    return None if value is None else value.casefold()


def _begin_sqlite(connection: Connection) -> None:
    if statement := connection.get_execution_options().get("begin", "BEGIN"):
        connection.exec_driver_sql(statement)


def _use_write_ahead_log(engine: Engine) -> None:
    # SQLite does not wait for another process that is switching the same file, so the waiting is done here.
    deadline_s = time.monotonic() + BUSY_S
    while True:
        try:
            with engine.execution_options(begin="").connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except OperationalError as error:
            if "locked" not in str(error.orig) or time.monotonic() > deadline_s:
                raise
            time.sleep(0.01)


def _migrate(engine: Engine, name: str) -> None:
    # The folder goes through a ConfigParser, where a percent sign is special.
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    script = ScriptDirectory(str(MIGRATIONS))
    known = {revision.revision for revision in script.walk_revisions()}
    with engine.execution_options(begin="BEGIN IMMEDIATE").begin() as connection, _alembic:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK_KEY})
        present = MigrationContext.configure(connection).get_current_heads()
        if unknown := sorted(set(present) - known):
            raise DatabaseError(
                f"{name} was written by a newer version of the reviewer (schema {', '.join(unknown)}); "
                "upgrade the reviewer or choose another database."
            )
        if set(present) != set(script.get_heads()):
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn the failures of the database itself, not those of a statement, into a DatabaseError."""
    try:
        yield
    except (OperationalError, BrokenDatabase) as error:
        if type(error) not in {OperationalError, BrokenDatabase}:
            raise
        raise DatabaseError(f"{name}: {_cause(error)}") from error


def _cause(error: DBAPIError) -> str:
    reason = str(error.orig).strip().splitlines()[0]
    fixes = {
        "not a database": "this file is not a reviewer database; move it away or choose another",
        "malformed": "the database is damaged; restore a backup or move it away",
        "readonly": "the database can't be written; check the permissions of the file and its folder",
        "unable to open": "the file can't be opened or made; check the path and its permissions",
        "disk": "the disk is full or failing; free some space and try again",
        "locked": "another program holds the database; close it and try again",
    }
    fix = next(
        (fix for sign, fix in fixes.items() if sign in reason), "check that the database is reachable and healthy"
    )
    return f"{reason}; {fix}."
