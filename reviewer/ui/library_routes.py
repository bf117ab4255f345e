"""The routes of the library: the worklist, one trajectory, its media, judges, jobs and uploads."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from shutil import make_archive
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.background import BackgroundTask

from db.models import MediaRow
from reviewer import alignment_versions, job_queue, judges, worklist
from reviewer.detail import detail
from reviewer.library import Library
from reviewer.media import picture_at
from reviewer.recipes import RECIPES
from reviewer.ui.http import OWN_ORIGIN, JsonObject, Reviewer, reviewer_of
from reviewer.ui.uploads import Uploads

MAX_JOBS_ASKED = 200
MAX_SECONDS = 1e9
MAX_OFFSET = 2**31 - 1
MAX_QUERY_TEXT = 5000
PICTURE_QUALITY = 85
PICTURES_KEPT = 64
KEEP = "private, max-age=31536000, immutable"
_SIGNATURES = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"RIFF", "image/webp"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)


def reader_of(request: Request) -> str:
    """Whose view of the reviews is asked for; nobody's without the header."""
    return reviewer_of(request) if "x-reviewer" in request.headers else ""


Reader = Annotated[str, Depends(reader_of)]
Text = Annotated[str, Query(max_length=MAX_QUERY_TEXT)]


def router(library: Library, wake: Callable[[], None]) -> APIRouter:
    """The library's routes. ``wake`` is called when a job was queued."""
    routes = APIRouter()
    database = library.database
    uploads = Uploads(library.uploads_folder)

    @routes.get("/api/trajectories")
    def list_trajectories(
        reviewer: Reader,
        search: Text = "",
        source: Text = "",
        agent: Text = "",
        judge_outcome: worklist.JudgeOutcome | Literal[""] = "",
        review: worklist.ReviewState | Literal[""] = "",
        problems: bool | Literal[""] = "",
        sort: worklist.Sort = "imported",
        order: Literal["asc", "desc"] = "asc",
        offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
        limit: Annotated[int, Query(ge=0, le=worklist.MAX_LIMIT)] = 50,
        ids: bool = False,
    ) -> JSONResponse:
        query = worklist.Query(
            reviewer=reviewer,
            search=search,
            source=source,
            agent=agent,
            judge_outcome=judge_outcome or None,
            review=review or None,
            problems=None if problems == "" else problems,
            sort=sort,
            descending=order == "desc",
        )
        with database.read() as session:
            page = worklist.page(session, query, offset, limit, all_ids=ids)
        answer: dict[str, Any] = {"total": page.total, "items": page.items}
        return JSONResponse(answer if page.ids is None else answer | {"ids": page.ids})

    @routes.get("/api/choices")
    def choices() -> JSONResponse:
        with database.read() as session:
            values = worklist.choices(session)
            is_importing = job_queue.is_importing(session)
        known = {"judges": list(judges.known()), "recipes": list(RECIPES)}
        return JSONResponse(values | known | {"importing": is_importing})

    @routes.get("/api/trajectories/{trajectory_id}")
    def read_trajectory(trajectory_id: str, reviewer: Reader) -> JSONResponse:
        with database.read() as session:
            return JSONResponse(detail(session, trajectory_id, reviewer))

    @routes.post("/api/trajectories/{trajectory_id}/alignment", dependencies=[OWN_ORIGIN])
    def correct_alignment(trajectory_id: str, reviewer: Reviewer, body: JsonObject) -> JSONResponse:
        version, pins, shift_s = _correction(body)
        try:
            with database.write() as session:
                if body.get("take_back") is True:
                    row = alignment_versions.take_back(session, trajectory_id, version, reviewer)
                else:
                    row = alignment_versions.correct(session, trajectory_id, version, pins, shift_s, reviewer)
        except alignment_versions.StaleAlignment as error:
            return JSONResponse({"detail": str(error), "alignment": error.alignment}, 409)
        return JSONResponse(alignment_versions.to_json(row))

    @routes.post("/api/trajectories/{trajectory_id}/judge", dependencies=[OWN_ORIGIN])
    def ask_judge(trajectory_id: str, body: JsonObject) -> JSONResponse:
        name = judges.load(str(body.get("judge", judges.DEFAULT_JUDGE))).name
        library.trajectory(trajectory_id)
        with database.write() as session:
            job_id = job_queue.enqueue(session, "judge", trajectory_id, {"judge": name})
        wake()
        return JSONResponse({"job_id": job_id})

    @routes.get("/api/jobs")
    def job_states(ids: str) -> JSONResponse:
        asked = ids.split(",")[:MAX_JOBS_ASKED]
        with database.read() as session:
            return JSONResponse({"jobs": job_queue.states(session, asked)})

    @routes.post("/api/jobs/{job_id}/cancel", dependencies=[OWN_ORIGIN])
    def cancel_job(job_id: str) -> JSONResponse:
        with database.write() as session:
            job_queue.cancel(session, job_id)
            states = job_queue.states(session, [job_id])
        if not states:
            raise HTTPException(404, "There is no such job.")
        return JSONResponse(states[0])

    @routes.post("/api/uploads", dependencies=[OWN_ORIGIN])
    def open_upload() -> JSONResponse:
        return JSONResponse({"upload_id": uploads.open(), "limits": vars(uploads.limits)})

    @routes.put("/api/uploads/{upload_id}/files", dependencies=[OWN_ORIGIN])
    async def put_file(upload_id: str, path: str, request: Request) -> JSONResponse:
        return JSONResponse(await uploads.put(upload_id, path, request.stream()))

    @routes.post("/api/uploads/{upload_id}/import", dependencies=[OWN_ORIGIN])
    def import_upload(upload_id: str, body: JsonObject) -> JSONResponse:
        uploads.files(upload_id)
        task = str(body.get("task") or "") or None
        with database.write() as session:
            if not job_queue.states(session, [upload_id]):
                job_queue.enqueue(session, "upload", None, {"task": task}, job_id=upload_id)
        wake()
        return JSONResponse({"job_id": upload_id})

    @routes.get("/api/export/{recipe}")
    def download_export(recipe: str) -> FileResponse:
        with TemporaryDirectory() as folder:
            library.export(recipe, Path(folder, "export"))
            archive = make_archive(str(library.home / f"export-{uuid4().hex}"), "zip", folder, "export")
        name = f"{recipe}-{datetime.now(UTC):%Y-%m-%d}.zip"
        return FileResponse(
            archive, media_type="application/zip", filename=name, background=BackgroundTask(os.unlink, archive)
        )

    @routes.api_route("/media/{media_id}", methods=["GET", "HEAD"])
    def media(media_id: str) -> FileResponse:
        row = _media(library, media_id)
        headers = {"Cache-Control": KEEP, "X-Content-Type-Options": "nosniff"}
        return FileResponse(row.path, media_type=_media_type(Path(row.path), row.kind), headers=headers)

    @routes.get("/media/{media_id}/picture")
    def picture(
        media_id: str,
        at_s: Annotated[float, Query(ge=0, le=MAX_SECONDS, allow_inf_nan=False)],
        width_px: Annotated[int | None, Query(ge=16, le=4096)] = None,
    ) -> Response:
        row = _media(library, media_id)
        if row.kind != "video":
            raise HTTPException(404, "Only a video has pictures by time.")
        jpeg = _jpeg_at(row.path, Path(row.path).stat().st_mtime_ns, round(at_s, 4), width_px)
        return Response(jpeg, media_type="image/jpeg", headers={"Cache-Control": KEEP})

    return routes


def _correction(body: dict[str, Any]) -> tuple[int, list[dict[str, Any]], float]:
    """The fields of a correction by hand. Refused with 422 where one has another shape."""
    version, pins, shift_s = body.get("base_version"), body.get("pins", []), body.get("shift_s", 0.0)
    if type(version) is not int:
        raise HTTPException(422, "base_version must be the version of the alignment on screen.")
    if not isinstance(pins, list) or not all(isinstance(pin, dict) for pin in pins):
        raise HTTPException(422, 'pins must be a list of {"step_index", "at_s"}.')
    if not all(type(pin.get("step_index")) is int for pin in pins):
        raise HTTPException(422, "A pin needs a whole step_index.")
    placed = [{"step_index": pin["step_index"], "at_s": _seconds("at_s", pin.get("at_s"))} for pin in pins]
    return version, placed, _seconds("shift_s", shift_s)


def _seconds(name: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise HTTPException(422, f"{name} must be a number of seconds.")
    if not abs(value) < MAX_SECONDS:
        raise HTTPException(422, f"{name} is too large; give a number of seconds inside the video.")
    return float(value)


def _media(library: Library, media_id: str) -> MediaRow:
    with library.database.read() as session:
        row = session.get(MediaRow, media_id)
    if row is None:
        raise HTTPException(404, "There is no such media.")
    if not Path(row.path).is_file():
        raise HTTPException(404, f"{Path(row.path).name} is gone from where it was imported; import its folder again.")
    return row


def _media_type(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        start = file.read(12)
    found = next((name for signature, name in _SIGNATURES if start.startswith(signature)), None)
    return found or ("video/mp4" if kind == "video" else "application/octet-stream")


@lru_cache(maxsize=PICTURES_KEPT)
def _jpeg_at(path: str, _changed_ns: int, at_s: float, width_px: int | None) -> bytes:
    picture = picture_at(Path(path), at_s)
    if width_px is not None:
        picture.thumbnail((width_px, picture.height))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=PICTURE_QUALITY)
    return buffer.getvalue()
