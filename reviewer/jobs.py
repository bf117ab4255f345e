"""Background work: what the rows of the job queue ask for, done one at a time and told about while it runs."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import JobRow, JudgementRow, MediaRow, TrajectoryRow, utc_now
from reviewer import alignment_versions, job_queue
from reviewer.alignment import Alignment
from reviewer.errors import ReviewerError
from reviewer.exported import json_value
from reviewer.intake import ignore_progress, import_paths
from reviewer.judges import Cancelled, Judge, Judgement, Progress, load
from reviewer.ledger import UnknownTrajectory
from reviewer.library import Library
from reviewer.media import FrameSource
from reviewer.trajectory import Trajectory

REPORT_EVERY_S = 0.3
POLL_S = 1.0

log = logging.getLogger(__name__)


def judge_trajectory(library: Library, judge: Judge, trajectory_id: str, progress: Progress = ignore_progress) -> str:
    """The id of this judge's judgement of the trajectory as it is now; it is made unless there is one already.

    A judge that fails leaves a judgement that says why. Raises UnknownTrajectory, and whatever ``progress`` raises to
    stop the work.
    """
    with library.database.read() as session:
        row = session.get(TrajectoryRow, trajectory_id)
        if row is None:
            raise UnknownTrajectory(trajectory_id)
        if made := _made_already(session, judge, row):
            return made
        trajectory, revision = Trajectory.from_json(row.document), row.revision
        media = session.get(MediaRow, row.media_id) if row.media_id else None
        aligned = alignment_versions.newest(session, trajectory_id)
    frames = FrameSource(trajectory, Path(media.path) if media else None)
    alignment = Alignment.from_json(aligned.document) if aligned else None
    judgement = _judgement(judge, trajectory, frames, alignment, progress)
    judgement_id = uuid4().hex[:24]
    with library.database.write() as session:
        session.add(
            JudgementRow(
                id=judgement_id,
                trajectory_id=trajectory_id,
                judge=judge.name,
                fingerprint=judge.fingerprint,
                created_utc=utc_now(),
                outcome=judgement.outcome,
                error=judgement.error,
                document=json_value(judgement.to_json() | {"revision": revision}),
            )
        )
    return judgement_id


def _made_already(session: Session, judge: Judge, row: TrajectoryRow) -> str | None:
    made = select(JudgementRow).where(
        JudgementRow.trajectory_id == row.id,
        JudgementRow.judge == judge.name,
        JudgementRow.fingerprint == judge.fingerprint,
        JudgementRow.error.is_(None),
    )
    rows = session.scalars(made.order_by(JudgementRow.created_utc.desc()))
    return next((judgement.id for judgement in rows if judgement.document.get("revision") == row.revision), None)


def _judgement(
    judge: Judge, trajectory: Trajectory, frames: FrameSource, alignment: Alignment | None, progress: Progress
) -> Judgement:
    try:
        return judge.run(trajectory, frames, alignment, progress)
    except Cancelled:
        raise
    except ReviewerError as error:
        return Judgement(error=str(error))
    except Exception as error:
        log.exception("judge %s failed on %s", judge.name, trajectory.id)
        return Judgement(error=f"{judge.name} failed: {type(error).__name__}: {error}")


def run_one(library: Library, job_id: str) -> None:
    """Do the work of one queued job; nothing happens when it is not waiting any more. Failures end up in its row."""
    with library.database.write() as session:
        job = job_queue.claim(session, job_id)
    if job is None:
        return
    progress = _Reporter(library, job_id)
    try:
        result = KINDS[job.kind](library, job, progress)
    except Cancelled:
        return
    except ReviewerError as error:
        _finish(library, job_id, "failed", str(error))
    except Exception as error:
        log.exception("job %s failed", job_id)
        _finish(library, job_id, "failed", f"{type(error).__name__}: {error}")
    else:
        _finish(library, job_id, "done", result.pop("message", ""), result)


def _finish(library: Library, job_id: str, state: str, message: str, result: dict[str, Any] | None = None) -> None:
    with library.database.write() as session:
        job_queue.finish(session, job_id, state, message, result)


class _Reporter:
    """A ``Progress`` that writes to the job's row a few times a second and raises Cancelled once it is cancelled."""

    def __init__(self, library: Library, job_id: str) -> None:
        self._library = library
        self._job_id = job_id
        self._due_s = 0.0

    def __call__(self, done: int, total: int | None, message: str) -> None:
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + REPORT_EVERY_S
        with self._library.database.write() as session:
            is_wanted = job_queue.report(session, self._job_id, done, total, message)
        if not is_wanted:
            raise Cancelled("The job was cancelled.")


def _run_judge(library: Library, job: JobRow, progress: Progress) -> dict[str, Any]:
    judgement_id = judge_trajectory(library, load(job.arguments["judge"]), job.trajectory_id or "", progress)
    with library.database.read() as session:
        judgement = session.get_one(JudgementRow, judgement_id)
    if judgement.error:
        raise ReviewerError(judgement.error)
    return {"judgement_id": judgement_id}


def _import(
    library: Library, paths: list[Path], progress: Progress, *, task: str | None = None, answer_each: bool = False
) -> dict[str, Any]:
    records = list(import_paths(library, paths, task=task, answer_each=answer_each, progress=progress))
    imported = sum(record["id"] is not None for record in records)
    return {"records": records, "message": f"{imported} imported, {len(records) - imported} refused"}


def _run_upload(library: Library, job: JobRow, progress: Progress) -> dict[str, Any]:
    files = library.uploads_folder / job.id / "files"
    try:
        return _import(library, [files], progress, task=job.arguments.get("task"), answer_each=True)
    finally:
        if not library.refers_to(files):
            shutil.rmtree(files.parent, ignore_errors=True)


def _run_examples(library: Library, _job: JobRow, progress: Progress) -> dict[str, Any]:
    return _import(library, example_paths(), progress)


KINDS: dict[str, Callable[[Library, JobRow, Progress], dict[str, Any]]] = {
    "judge": _run_judge,
    "upload": _run_upload,
    "examples": _run_examples,
}


def example_paths() -> list[Path]:
    """The packaged example runs: inside an installed package, else beside it in the source tree."""
    package = Path(__file__).parent
    return [folder for folder in (package / "examples", package.parent / "examples") if (folder / "runs").is_dir()][:1]


def queue_examples(library: Library) -> None:
    """Have the examples loaded, once in the life of a library and only while it is empty."""
    with library.database.write() as session:
        was_queued = session.scalars(select(JobRow.id).where(JobRow.kind == "examples").limit(1)).first()
        has_any = session.scalars(select(TrajectoryRow.id).limit(1)).first()
        if not was_queued and not has_any and example_paths():
            job_queue.enqueue(session, "examples", None, {})


class Worker:
    """The thread of a server that does what is queued, the oldest first. One per library at a time."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="reviewer-worker", daemon=True)

    def start(self) -> None:
        """Begin; what an earlier server left running is done again."""
        with self._library.database.write() as session:
            job_queue.requeue_running(session)
        self._thread.start()

    def wake(self) -> None:
        """Look at the queue now rather than at the next turn."""
        self._woken.set()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Take no further job and wait for the one at hand; what isn't finished is done again at the next start."""
        self._stopping = True
        self._woken.set()
        self._thread.join(timeout_s)

    def _work(self) -> None:
        while not self._stopping:
            self._woken.clear()
            try:
                while not self._stopping and (job_id := self._next()):
                    run_one(self._library, job_id)
            except Exception:
                # The thread has to outlive a full disk or a database that is away for a while.
                log.exception("the queue can't be worked on")
            self._woken.wait(POLL_S)

    def _next(self) -> str | None:
        with self._library.database.read() as session:
            return job_queue.next_queued(session)
