"""JSON as it lies on disks."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer.tolerant_json import JsonError, clean_text, entries_of, parse, read_entries


def values(text: str) -> list[object]:
    return [entry.value for entry in entries_of(text, "f").values]


def lines(text: str) -> list[int]:
    return [entry.line for entry in entries_of(text, "f").values]


@pytest.mark.parametrize(
    ("text", "expected", "at"),
    [
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}], [1, 2]),
        ('{"a": 1}\r\n\r\n{"a": 2}', [{"a": 1}, {"a": 2}], [1, 3]),
        ('[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}], [1, 1]),
        ('[\n {"a": 1},\n {"a": 2}\n]\n', [{"a": 1}, {"a": 2}], [2, 3]),
        ('{\n  "a": [\n 1 ]\n}\n', [{"a": [1]}], [1]),
        ("[1]\n[2]\n", [[1], [2]], [1, 2]),
        ("", [], []),
        (" \n\n", [], []),
    ],
)
def test_files_are_told_apart_by_what_they_hold(text: str, expected: list[object], at: list[int]) -> None:
    assert (values(text), lines(text)) == (expected, at)
    assert entries_of(text, "f").problems == ()


@pytest.mark.parametrize(
    ("text", "kept", "line", "words"),
    [
        ('{"a": 1}\n{"a": ', 1, 2, "cut off"),
        ('{"a": 1}\nnonsense\n{"a": 2}\n', 2, 2, "Not valid JSON"),
        ('[{"a": 1},\n {"a": 2},\n {"a"', 2, 3, "rest was left out"),
        ("[\n1,\n", 1, 3, "cut off"),
        ('{\n "a": 1,\n', 0, 1, "Not valid JSON"),
        ('{"a": 1} {"b": 2}\n', 0, 1, "extra data"),
    ],
)
def test_what_is_broken_is_told_and_the_rest_is_kept(text: str, kept: int, line: int, words: str) -> None:
    entries = entries_of(text, "f")
    (problem,) = entries.problems
    assert (len(entries.values), problem.file, problem.line) == (kept, "f", line)
    assert words in problem.message


def test_numbers_that_are_not_finite_are_missing() -> None:
    assert values('{"a": NaN, "b": -Infinity, "c": 1e999, "d": [NaN]}') == [
        {"a": None, "b": None, "c": None, "d": [None]}
    ]


def test_whole_numbers_beyond_64_bits_become_floats() -> None:
    assert values(f"[{2**63 - 1}, {2**63}, -{2**63}, {10**30}, {'9' * 5000}]") == [
        2**63 - 1,
        float(2**63),
        -(2**63),
        1e30,
        None,
    ]


def test_a_key_that_stands_twice_is_told() -> None:
    entries = entries_of('{"a": 1, "a": 2}', "f")
    assert entries.values[0].value == {"a": 2}
    assert "'a' stands twice" in entries.problems[0].message


@pytest.mark.parametrize("depth", [99, 100])
def test_a_hundred_levels_are_read(depth: int) -> None:
    assert parse("[" * depth + "]" * depth)


@pytest.mark.parametrize("text", ["[" * 101 + "]" * 101, '{"a":' * 5000 + "1" + "}" * 5000, "[" * 200_000])
def test_deeper_nesting_is_refused(text: str) -> None:
    with pytest.raises(JsonError, match=r"nested deeper|not valid JSON"):
        parse(text)


def test_text_can_be_stored_everywhere() -> None:
    assert clean_text("a\0b") == "a\ufffdb"
    assert clean_text("\ud83d\ude00 \ud800") == "😀 \ufffd"
    assert values('{"\\ud800": "\\ud83d\\ude00\\udc00"}') == [{"\ufffd": "😀\ufffd"}]


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "utf-8"),
    ],
)
def test_byte_order_marks_tell_the_encoding(tmp_path: Path, mark: bytes, encoding: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(mark + '{"a": "é№"}\n'.encode(encoding))
    assert read_entries(path).values[0].value == {"a": "é№"}


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"), (b"x" * 101, "over the limit")],
)
def test_files_that_are_not_read_name_themselves_and_the_fix(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(content)
    with pytest.raises(JsonError, match=words) as told:
        read_entries(path, max_bytes=100)
    assert str(path) in str(told.value)
    with pytest.raises(JsonError, match="not a file"):
        read_entries(tmp_path)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from('[]{}",:\\ntruefalse0123456789eE+-. \n\r\ud800\x00é'), max_size=60))
def test_any_text_gives_values_that_are_json(text: str) -> None:
    for entry in entries_of(text, "f").values:
        json.dumps(entry.value, allow_nan=False, ensure_ascii=False).encode()
        assert 1 <= entry.line <= text.count("\n") + 1
