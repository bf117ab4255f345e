"""Uploads: a browser opens one, sends its files one by one, and has them imported.

An upload is a folder ``<uploads>/<upload_id>/files``. A file that arrives takes its place only when it is whole.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import category
from uuid import uuid4

from fastapi import HTTPException

GIB = 1024**3
MAX_DEPTH = 32
MAX_NAME_BYTES = 255
MAX_PATH_CHARACTERS = 1000
SPARE_BYTES = GIB // 2


@dataclass(frozen=True)
class Limits:
    """How much one upload may hold."""

    file_bytes: int = 2 * GIB
    upload_bytes: int = 8 * GIB
    files: int = 20_000


@dataclass
class _Usage:
    bytes: int = 0
    files: int = 0


class Uploads:
    """The uploads under ``folder``. Refusals are HTTPExceptions whose detail says what to do."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        self.folder = folder
        self.limits = limits or Limits()
        self._usages: dict[str, _Usage] = {}
        self._lock = threading.Lock()

    def open(self) -> str:
        """Begin an upload and return its id."""
        upload_id = uuid4().hex[:24]
        (self.folder / upload_id / "files").mkdir(parents=True)
        return upload_id

    def files(self, upload_id: str) -> Path:
        """The folder of an upload's files. Refused with 404 when there is no such upload."""
        folder = self.folder / upload_id / "files"
        if not (len(upload_id) == 24 and upload_id.isalnum() and upload_id.isascii() and folder.is_dir()):
            raise HTTPException(404, "There is no such upload; start again.")
        return folder

    async def put(self, upload_id: str, name: str, body: AsyncIterator[bytes]) -> dict[str, Any]:
        """Keep one file under its relative path ``name``; the same path again replaces it."""
        folder = self.files(upload_id)
        target = folder / safe_path(name)
        usage = await asyncio.to_thread(self._usage, upload_id, folder)
        partial = folder.parent / f"{uuid4().hex}.part"
        try:
            size = await self._receive(name, partial, body, usage)
            await asyncio.to_thread(_put_in_place, partial, target, name, usage, size)
        finally:
            partial.unlink(missing_ok=True)
        return {"path": name, "bytes": size}

    async def _receive(self, name: str, partial: Path, body: AsyncIterator[bytes], usage: _Usage) -> int:
        if usage.files >= self.limits.files:
            raise HTTPException(413, f"An upload holds at most {self.limits.files:,} files; send the rest as another.")
        size = 0
        room = min(self.limits.file_bytes, self.limits.upload_bytes - usage.bytes)
        free = shutil.disk_usage(partial.parent).free - SPARE_BYTES
        with partial.open("wb") as file:
            async for chunk in body:
                size += len(chunk)
                if size > self.limits.file_bytes:
                    raise HTTPException(
                        413, f"{name} is larger than {_gib(self.limits.file_bytes)}; use `reviewer import`."
                    )
                if size > room:
                    raise HTTPException(
                        413, f"An upload holds at most {_gib(self.limits.upload_bytes)}; send less at once."
                    )
                if size > free:
                    raise HTTPException(507, "The server's disk is full; free some space there.")
                await asyncio.to_thread(file.write, chunk)
        return size

    def _usage(self, upload_id: str, folder: Path) -> _Usage:
        with self._lock:
            if upload_id not in self._usages:
                sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
                self._usages[upload_id] = _Usage(sum(sizes), len(sizes))
            return self._usages[upload_id]


def safe_path(name: str) -> Path:
    """A browser's relative path as a path that stays below its folder. Refused with 422 when it is none."""
    parts = name.split("/")
    if not name or len(name) > MAX_PATH_CHARACTERS or len(parts) > MAX_DEPTH:
        raise HTTPException(422, f"A path has 1 to {MAX_PATH_CHARACTERS} characters and at most {MAX_DEPTH} levels.")
    for part in parts:
        if part in ("", ".", "..") or not _is_plain(part):
            raise HTTPException(422, f"{name!r} is no plain relative path; rename the file or its folder.")
    return Path(*parts)


def _is_plain(part: str) -> bool:
    has_odd_character = any(character == "\\" or category(character) in ("Cc", "Cs") for character in part)
    return not has_odd_character and len(part.encode()) <= MAX_NAME_BYTES


def _put_in_place(partial: Path, target: Path, name: str, usage: _Usage, size: int) -> None:
    try:
        before = target.stat().st_size if target.is_file() else None
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.replace(target)
    except OSError as error:
        raise HTTPException(
            409, f"{name}: a file and a folder of the upload have the same name; rename one."
        ) from error
    usage.bytes += size - (before or 0)
    usage.files += before is None


def _gib(size: int) -> str:
    return f"{size / GIB:g} GiB"
