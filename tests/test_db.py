"""The database: made, migrated, shared between threads and processes, and honest about what is wrong with it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from rows import add_trajectory
from sqlalchemy import func, select, text

from db.models import Base, OverrideRow, TrajectoryRow
from db.session import Database, DatabaseError, sqlite_url
from reviewer.errors import ReviewerError

ROOT = Path(__file__).parent.parent
WRITER = """
import sys
sys.path[:0] = sys.argv[3:]
from rows import add_trajectory
from db.session import Database
database = Database.open(sys.argv[1])
sys.stdin.readline()
for number in range(25):
    with database.write() as session:
        add_trajectory(session, f"{sys.argv[2]}-{number}")
"""


def start_writer(url: str, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, url, name, str(ROOT), str(ROOT / "tests")]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def trajectory_count(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(TrajectoryRow)) or 0


def test_migrations_make_exactly_the_tables_of_the_models(any_database: Database) -> None:
    with any_database.read() as session:
        context = MigrationContext.configure(session.connection(), opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_opening_again_keeps_what_was_written(database_url: str) -> None:
    first = Database.open(database_url)
    with first.write() as session:
        add_trajectory(session, "kept")
    first.close()
    assert trajectory_count(Database.open(database_url)) == 1


def test_processes_that_open_and_write_at_the_same_moment_all_succeed(database_url: str) -> None:
    writers = [start_writer(database_url, f"p{number}") for number in range(3)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    outcomes = [(writer.communicate()[1], writer.returncode) for writer in writers]
    assert outcomes == [("", 0)] * 3
    assert trajectory_count(Database.open(database_url)) == 3 * 25


def test_threads_that_open_the_same_new_file_all_succeed(database_url: str) -> None:
    barrier = threading.Barrier(8)

    def open_together(_number: int) -> int:
        barrier.wait()
        return trajectory_count(Database.open(database_url))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(open_together, range(8))) == [0] * 8


def test_many_threads_read_and_write_without_being_locked_out(any_database: Database) -> None:
    def work(number: int) -> int:
        with any_database.write() as session:
            add_trajectory(session, f"t{number}")
        return trajectory_count(any_database)

    with ThreadPoolExecutor(40) as threads:
        counts = list(threads.map(work, range(200)))
    assert max(counts) == 200


def test_a_write_that_raises_leaves_nothing(any_database: Database) -> None:
    with pytest.raises(RuntimeError), any_database.write() as session:
        add_trajectory(session, "lost")
        raise RuntimeError
    assert trajectory_count(any_database) == 0


def test_a_read_keeps_nothing(any_database: Database) -> None:
    with any_database.read() as session:
        add_trajectory(session, "lost")
    assert trajectory_count(any_database) == 0


def test_a_read_sees_one_moment(any_database: Database) -> None:
    with any_database.read() as session:
        count = select(func.count()).select_from(TrajectoryRow)
        assert session.scalar(count) == 0
        with any_database.write() as writing:
            add_trajectory(writing, "later")
        assert session.scalar(count) == 0
    assert trajectory_count(any_database) == 1


def test_sqlite_syncs_fully_and_keeps_foreign_keys(database: Database) -> None:
    with database.read() as session:
        pragmas = {
            name: session.scalar(text(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_an_override_without_its_trajectory_is_refused(any_database: Database) -> None:
    override = OverrideRow(
        op_id="a", trajectory_id="none", reviewer="ann", rev=1, type="submit", body={}, changes=[], shown=[],
        created_utc="",
    )  # fmt: skip
    with pytest.raises(Exception, match=r"(?i)foreign key"), any_database.write() as session:
        session.add(override)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(any_database: Database) -> None:
    url = any_database._engine.url.render_as_string(hide_password=False)
    with any_database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseError, match=r"newer version of the reviewer \(schema 9999\); upgrade"):
        Database.open(url)
    with any_database.read() as session:
        assert session.scalar(text("SELECT version_num FROM alembic_version")) == "9999"


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("These are my notes, not a database.\n" * 100)
    with pytest.raises(ReviewerError, match=r"notes\.db: file is not a database; .*choose another"):
        Database.open(f"sqlite:///{path}")
    assert path.read_text().startswith("These are my notes")


def test_a_damaged_database_is_named(tmp_path: Path, database: Database) -> None:
    with database.write() as session:
        for number in range(200):
            add_trajectory(session, f"t{number}")
    damaged = tmp_path / "damaged.db"
    with sqlite3.connect(database.name) as source, sqlite3.connect(damaged) as copy:
        source.backup(copy)
    content = bytearray(damaged.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    damaged.write_bytes(content)
    with pytest.raises(DatabaseError, match=r"damaged\.db: .*(malformed|damaged)"):
        trajectory_count(Database.open(f"sqlite:///{damaged}"))


def test_a_place_that_cannot_hold_a_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "reviewer.db"):
        with pytest.raises(DatabaseError, match=str(path)):
            Database.open(f"sqlite:///{path}")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, database: Database) -> None:
    read_only = Database.open(f"sqlite:///file:{database.name}?mode=ro&uri=true")
    assert trajectory_count(read_only) == 0
    with pytest.raises(DatabaseError, match=r"reviewer\.db: .*readonly.*check the permissions"), read_only.write() as s:
        add_trajectory(s, "lost")


@pytest.mark.parametrize("url", ["", "reviewer.db", "sqlite://", "sqlite:///:memory:", "mysql://host/name"])
def test_a_wrong_url_is_refused_with_the_right_form(url: str) -> None:
    with pytest.raises(DatabaseError, match="sqlite:///"):
        Database.open(url)


def test_an_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(DatabaseError, match=r"127\.0\.0\.1") as caught:
        Database.open("postgresql://ann:secret@127.0.0.1:1/reviews")
    assert "secret" not in str(caught.value)


def test_folders_are_made_and_odd_names_work(tmp_path: Path) -> None:
    folder = tmp_path / "a folder" / "50%20 done? é#"
    assert trajectory_count(Database.open(sqlite_url(folder / "reviewer.db"))) == 0
    assert (folder / "reviewer.db").exists()


def test_the_package_carries_its_migrations(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "db", tmp_path / "db", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "reviewer", tmp_path / "reviewer", ignore=shutil.ignore_patterns("__pycache__"))
    script = "import sys; from db.session import Database; Database.open(sys.argv[1]).close()"
    subprocess.run([sys.executable, "-c", script, f"sqlite:///{tmp_path / 'x.db'}"], check=True, cwd=tmp_path)
