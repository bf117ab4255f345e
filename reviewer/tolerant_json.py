"""JSON as agents leave it on disk: read what can be read, report the rest by line.

Byte order marks, CRLF, blank lines, a truncated last line, ``NaN`` and ``Infinity``, arrays in a ``.jsonl`` file and
pretty-printed objects are all accepted. Numbers that are not finite become None. Nothing here raises but
:class:`JsonError`.
"""

from __future__ import annotations

import codecs
import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reviewer.errors import ReviewerError
from reviewer.trajectory import Problem

MAX_DEPTH = 100
MAX_BYTES = 512 * 1024 * 1024

_LFS_POINTER = b"version https://git-lfs"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class JsonError(ReviewerError):
    """A text that is no JSON, or a file that can't be read at all."""


@dataclass(frozen=True)
class Entry:
    """One value and the 1-based line it starts on."""

    line: int
    value: Any


@dataclass(frozen=True)
class Entries:
    """The values of a file in order, what was wrong with the rest, and whether they are the items of one array."""

    values: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()
    is_array: bool = False


@dataclass(frozen=True)
class Parsed:
    """A value and the keys that stood twice in one of its objects; the last value of such a key is kept."""

    value: Any
    repeated_keys: tuple[str, ...] = ()


def clean_text(text: str) -> str:
    """Make a string storable everywhere: surrogate pairs are joined; lone surrogates and NUL become U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def is_lfs_pointer(data: bytes) -> bool:
    """Whether these are the bytes of a Git LFS pointer, standing in for a file that was not downloaded."""
    return data.startswith(_LFS_POINTER)


def parse(text: str) -> Parsed:
    """Parse one JSON text. Raises JsonError on anything else, and when it nests deeper than 100 levels."""
    start = len(text) - len(text.lstrip(" \t\r\n"))
    parsed, end = _decode_at(text, start)
    if text[end:].strip(" \t\r\n"):
        raise JsonError(f"not valid JSON: extra data at character {end + 1}")
    return parsed


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file. Raises JsonError naming the file and the fix."""
    try:
        if not path.is_file():
            raise JsonError("not a file", path)
        size = path.stat().st_size
        if size > max_bytes:
            raise JsonError(f"{size:,} bytes is over the limit of {max_bytes:,}: split the file", path)
        data = path.read_bytes()
    except OSError as error:
        raise JsonError(f"can't be read ({error.strerror}): check its permissions", path) from None
    if is_lfs_pointer(data):
        raise JsonError("a Git LFS pointer, not the file itself: run `git lfs pull`", path)
    return data


def decode(data: bytes) -> str:
    """Bytes to text by their byte order mark, else UTF-8; undecodable bytes become U+FFFD."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def read_entries(path: Path, max_bytes: int = MAX_BYTES) -> Entries:
    """The values of a JSON or JSON Lines file, told apart by content. Raises JsonError as ``read_bytes`` does."""
    return entries_of(decode(read_bytes(path, max_bytes)), path.name)


def entries_of(text: str, file: str) -> Entries:
    """The values in a text: the lines of JSON Lines, the items of an array, or one object. Never raises."""
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        return Entries(())
    if not _is_json(lines[0][1]) or (len(lines) == 1 and lines[0][1].startswith("[")):
        if lines[0][1].startswith("["):
            return _items_of(text, file)
        if lines[0][1] == "{" or _is_json(text):
            return _lines_of([(lines[0][0], text.strip())], file)
    return _lines_of(lines, file)


def _is_json(text: str) -> bool:
    try:
        parse(text)
    except JsonError:
        return False
    return True


def _lines_of(lines: list[tuple[int, str]], file: str) -> Entries:
    """One value a line; a line that is none is a problem and the rest goes on."""
    values: list[Entry] = []
    problems: list[Problem] = []
    for position, (number, line) in enumerate(lines):
        try:
            parsed = parse(line)
        except JsonError as error:
            cut = position == len(lines) - 1 and line.startswith("{") and not line.endswith("}") and "\n" not in line
            message = "The last line is cut off: it was left out" if cut else f"{_sentence(str(error))}: left out"
            problems.append(Problem(file, message, number))
            continue
        values.append(Entry(number, parsed.value))
        problems.extend(_repeated_problems(parsed, file, number))
    return Entries(tuple(values), tuple(problems))


def _items_of(text: str, file: str) -> Entries:
    """The items of one array, each with the line it starts on; what follows a broken item is left out."""
    values: list[Entry] = []
    problems: list[Problem] = []
    position, line, counted = text.find("[") + 1, 1, 0
    while True:
        position = _skip(text, position)
        line += text.count("\n", counted, position)
        counted = position
        if text[position : position + 1] == "]":
            break
        try:
            parsed, position = _decode_at(text, position)
        except JsonError as error:
            where = "The array is cut off here" if position >= len(text) else f"{_sentence(str(error))} in the array"
            problems.append(Problem(file, f"{where}: the rest was left out", line))
            break
        values.append(Entry(line, parsed.value))
        problems.extend(_repeated_problems(parsed, file, line))
    return Entries(tuple(values), tuple(problems), is_array=True)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    return position


def _repeated_problems(parsed: Parsed, file: str, line: int) -> tuple[Problem, ...]:
    return tuple(
        Problem(file, f"The key {key!r} stands twice in one object: the last value is used", line)
        for key in parsed.repeated_keys[:5]
    )


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:]


def _decode_at(text: str, position: int) -> tuple[Parsed, int]:
    """Parse the value that starts at ``position`` and say where it ends. Raises JsonError."""
    repeated: list[str] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = {clean_text(key): _clean(value) for key, value in pairs}
        if len(built) < len(pairs):
            repeated.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return built

    decoder = json.JSONDecoder(
        object_pairs_hook=build, parse_float=_finite, parse_int=_integer, parse_constant=lambda _: None
    )
    try:
        value, end = decoder.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise JsonError(f"not valid JSON: {error.msg.lower()} at character {error.pos + 1}") from None
    except (RecursionError, MemoryError):
        raise JsonError(f"nested deeper than {MAX_DEPTH} levels") from None
    if _deeper_than(value, MAX_DEPTH):
        raise JsonError(f"nested deeper than {MAX_DEPTH} levels")
    return Parsed(_clean(value), tuple(dict.fromkeys(repeated))), end


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _integer(text: str) -> int | float | None:
    """Integers beyond 64 bits become floats, so that every database and browser can hold them."""
    if len(text) > 20:
        return _finite(text)
    number = int(text)
    return number if -(2**63) <= number < 2**63 else float(number)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _deeper_than(value: Any, limit: int) -> bool:
    """Whether lists and dicts nest deeper than ``limit``, walking level by level."""
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for container in level
            if isinstance(container, dict | list)
            for inner in (container.values() if isinstance(container, dict) else container)
        ]
    return any(isinstance(value, dict | list) for value in level)
