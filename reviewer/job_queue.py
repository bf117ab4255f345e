"""The rows of background work: queued, claimed, told about, finished or cancelled. Running it is ``jobs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.models import JobRow, utc_now

ACTIVE = ("queued", "running")
IMPORTS = ("upload", "examples")


def enqueue(
    session: Session, kind: str, trajectory_id: str | None, arguments: dict[str, Any], job_id: str | None = None
) -> str:
    """Queue one piece of work and return its id; the same work on a trajectory is not queued twice."""
    if trajectory_id is not None:
        waiting = select(JobRow).where(
            JobRow.state == "queued", JobRow.kind == kind, JobRow.trajectory_id == trajectory_id
        )
        for job in session.scalars(waiting):
            if job.arguments == arguments:
                return job.id
    now = utc_now()
    job = JobRow(
        id=job_id or uuid4().hex[:24],
        kind=kind,
        trajectory_id=trajectory_id,
        arguments=arguments,
        state="queued",
        result=None,
        created_utc=now,
        updated_utc=now,
    )
    session.add(job)
    session.flush()
    return job.id


def next_queued(session: Session) -> str | None:
    """The id of the job that waits longest; an upload, for which a person waits, goes before the others."""
    queued = select(JobRow.id).where(JobRow.state == "queued")
    return session.scalars(queued.order_by(JobRow.kind != "upload", JobRow.created_utc, JobRow.id).limit(1)).first()


def claim(session: Session, job_id: str) -> JobRow | None:
    """Take a queued job to run it; None when it is no longer waiting."""
    if not _move(session, job_id, ("queued",), state="running", done=0, total=None, message="", result=None):
        return None
    return session.get(JobRow, job_id)


def report(session: Session, job_id: str, done: int, total: int | None, message: str) -> bool:
    """Tell how far a running job is; False when it was cancelled meanwhile."""
    return _move(session, job_id, ("running",), done=done, total=total, message=message)


def finish(session: Session, job_id: str, state: str, message: str = "", result: dict[str, Any] | None = None) -> bool:
    """End a running job as "done" or "failed"; False when it was cancelled meanwhile."""
    return _move(session, job_id, ("running",), state=state, message=message, result=result)


def cancel(session: Session, job_id: str) -> bool:
    """Stop a job that waits or runs; False when it had ended before."""
    return _move(session, job_id, ACTIVE, state="cancelled", message="cancelled")


def requeue_running(session: Session) -> None:
    """Put back what a worker that is gone left running."""
    session.execute(update(JobRow).where(JobRow.state == "running").values(state="queued", updated_utc=utc_now()))


def is_importing(session: Session) -> bool:
    """Whether trajectories are on their way in."""
    imports = select(JobRow.id).where(JobRow.state.in_(ACTIVE), JobRow.kind.in_(IMPORTS))
    return session.scalars(imports.limit(1)).first() is not None


def states(session: Session, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The asked jobs as JSON values, oldest first; unknown ids are left out."""
    rows = session.scalars(select(JobRow).where(JobRow.id.in_(ids)).order_by(JobRow.created_utc, JobRow.id))
    return [
        {
            "id": row.id,
            "kind": row.kind,
            "trajectory_id": row.trajectory_id,
            "state": row.state,
            "done": row.done,
            "total": row.total,
            "message": row.message,
            "result": row.result,
            "created_utc": row.created_utc,
            "updated_utc": row.updated_utc,
        }
        for row in rows
    ]


def _move(session: Session, job_id: str, before: Sequence[str], **values: Any) -> bool:
    statement = update(JobRow).where(JobRow.id == job_id, JobRow.state.in_(before))
    moved = session.scalars(
        statement.values(updated_utc=utc_now(), **values).returning(JobRow.id),
        execution_options={"synchronize_session": False},
    )
    return moved.first() is not None
