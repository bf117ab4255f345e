"""Zips that somebody else made."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from reviewer.archive import ArchiveRefused, Limits, is_zip, unpack


def make_zip(path: Path, fill: Callable[[zipfile.ZipFile], None]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        fill(archive)
    return path


def with_files(path: Path, **files: bytes) -> Path:
    return make_zip(path, lambda archive: [archive.writestr(name, data) for name, data in files.items()] and None)


def everything_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_files_are_unpacked_without_what_macos_adds(tmp_path: Path) -> None:
    path = with_files(
        tmp_path / "runs.zip",
        **{
            "a/traj.jsonl": b"{}",
            "a/№1 “x”.png": b"p",
            "__MACOSX/a/._traj.jsonl": b"m",
            "a/._b": b"m",
            ".DS_Store": b"m",
        },
    )
    assert unpack(path, tmp_path / "out") == []
    assert everything_below(tmp_path / "out") == {"a", "a/traj.jsonl", "a/№1 “x”.png"}
    assert is_zip(path) and not is_zip(tmp_path / "out/a/traj.jsonl")


def link(archive: zipfile.ZipFile) -> None:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive.writestr(entry, "/etc/passwd")


def pipe(archive: zipfile.ZipFile) -> None:
    entry = zipfile.ZipInfo("pipe")
    entry.external_attr = (stat.S_IFIFO | 0o600) << 16
    archive.writestr(entry, "")


def named(name: str) -> Callable[[zipfile.ZipFile], None]:
    return lambda archive: archive.writestr(name, b"x")


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (named("../evil"), "outside the folder"),
        (named("a/../../evil"), "outside the folder"),
        (named("a//b"), "outside the folder"),
        (named("/tmp/evil"), "absolute path"),
        (named("C:/evil"), "absolute path"),
        (named("a\\..\\evil"), "absolute path"),
        (named("/".join("a" * 40)), "folders deep"),
        (named("x" * 300), "can't be unpacked"),
        (link, "is a link"),
        (pipe, "no plain file"),
    ],
)
def test_entries_that_are_no_plain_files_below_the_target_are_refused(
    tmp_path: Path, fill: Callable[[zipfile.ZipFile], None], words: str
) -> None:
    def both(archive: zipfile.ZipFile) -> None:
        archive.writestr("good.txt", b"x")
        fill(archive)

    folder = tmp_path / "below"
    folder.mkdir()
    path = make_zip(folder / "runs.zip", both)
    with pytest.raises(ArchiveRefused, match=words) as told:
        unpack(path, folder / "out")
    assert "runs.zip" in str(told.value)
    assert everything_below(tmp_path) == {"below", "below/runs.zip"}


def test_a_password_is_refused(tmp_path: Path) -> None:
    path = with_files(tmp_path / "runs.zip", a=b"x" * 100)
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(ArchiveRefused, match="encrypted"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(max_bytes=1000), "more than 1,000 bytes"),
        (Limits(max_entries=1), "over the limit of 1"),
        (Limits(max_ratio=50), "times its size"),
    ],
)
def test_more_than_was_agreed_is_refused_and_nothing_stays(tmp_path: Path, limits: Limits, words: str) -> None:
    path = with_files(tmp_path / "runs.zip", a=b"\0" * 11 * 1024 * 1024, b=b"y")
    (tmp_path / "out").mkdir()
    with pytest.raises(ArchiveRefused, match=words):
        unpack(path, tmp_path / "out", limits)
    assert everything_below(tmp_path / "out") == set()


def test_an_entry_that_holds_more_than_it_states_is_refused(tmp_path: Path) -> None:
    path = with_files(tmp_path / "runs.zip", a=b"\0" * 100_000)
    data = path.read_bytes().replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path.write_bytes(data)
    with pytest.raises(ArchiveRefused, match="damaged"):
        unpack(path, tmp_path / "out", Limits(max_bytes=1000))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("keep", [0, 10, 60, -30])
def test_a_damaged_archive_is_refused_and_nothing_stays(tmp_path: Path, keep: int) -> None:
    path = with_files(tmp_path / "runs.zip", a=bytes(range(256)) * 4, b=b"y")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ArchiveRefused, match=r"runs\.zip"):
        unpack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_broken_entry_is_refused_and_nothing_stays(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "runs.zip", lambda archive: archive.writestr("a", bytes(range(256)) * 40))
    data = bytearray(path.read_bytes())
    data[50] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ArchiveRefused, match="damaged"):
        unpack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    path = with_files(tmp_path / "runs.zip", a=b"x")
    with pytest.raises(ArchiveRefused, match="not an empty folder"):
        unpack(path, tmp_path)
    assert everything_below(tmp_path) == {"runs.zip"}


def test_entries_that_stand_twice_and_inner_archives_are_told(tmp_path: Path) -> None:
    def fill(archive: zipfile.ZipFile) -> None:
        archive.writestr("a", b"first")
        archive.writestr("inner.zip", b"PK")
        archive.writestr("a", b"second")

    with pytest.warns(UserWarning, match="Duplicate name"):
        path = make_zip(tmp_path / "runs.zip", fill)
    messages = [problem.message for problem in unpack(path, tmp_path / "out")]
    assert (tmp_path / "out/a").read_bytes() == b"first"
    assert len(messages) == 2 and "inner.zip" in messages[0] and "twice" in messages[1]
