"""The worklist: which trajectories to review, searched, filtered and in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from db.models import JobRow, JudgementRow, MediaRow, ReviewRow, TrajectoryRow
from reviewer.media_ids import media_url

MAX_LIMIT = 500
PROBLEMS_SHOWN = 3

Sort = Literal["imported", "task", "steps", "duration", "judge_outcome", "review", "problems"]
JudgeOutcome = Literal["correct", "incorrect", "none"]
ReviewState = Literal["unreviewed", "in_progress", "submitted", "correct", "incorrect", "unsure"]

_Selected = TypeVar("_Selected")

_judgement = aliased(JudgementRow)
_review = aliased(ReviewRow)


@dataclass(frozen=True)
class Query:
    """What one ``reviewer`` asks for; None and "" filter nothing.

    ``source`` is a source format or a whole source, ``judge_outcome`` what the newest judgement says ("none": nothing,
    or nobody asked), ``review`` the status or outcome of this reviewer's review.
    """

    reviewer: str = ""
    search: str = ""
    source: str = ""
    agent: str = ""
    judge_outcome: JudgeOutcome | None = None
    review: ReviewState | None = None
    problems: bool | None = None
    sort: Sort = "imported"
    descending: bool = False


class Page(NamedTuple):
    """``total`` trajectories match; ``items`` are those of one page as JSON values; ``ids`` all of them, if asked."""

    total: int
    items: list[dict[str, Any]]
    ids: list[str] | None


def page(session: Session, query: Query, offset: int = 0, limit: int = 50, *, all_ids: bool = False) -> Page:
    """Read one page of at most ``MAX_LIMIT`` items."""
    offset, limit = max(0, offset), max(0, min(limit, MAX_LIMIT))
    if all_ids:
        ids = ordered_ids(session, query)
        return Page(len(ids), _items(session, ids[offset : offset + limit], query.reviewer), ids)
    total = session.scalar(_filtered(select(func.count(TrajectoryRow.id)), query)) or 0
    some = session.scalars(_ordered(query).offset(offset).limit(limit)).all()
    return Page(total, _items(session, some, query.reviewer), None)


def ordered_ids(session: Session, query: Query) -> list[str]:
    """The ids of everything that matches, in order."""
    return list(session.scalars(_ordered(query)))


def choices(session: Session) -> dict[str, list[str]]:
    """The values there are to filter by: ``{"formats", "agents"}``, sorted."""
    return {
        "formats": _distinct(session, TrajectoryRow.format),
        "agents": _distinct(session, TrajectoryRow.agent),
    }


def _distinct(session: Session, column: InstrumentedAttribute[str]) -> list[str]:
    return list(session.scalars(select(column).where(column != "").distinct().order_by(column)))


def _ordered(query: Query) -> Select[str]:
    keys = [_sort_key(query.sort), TrajectoryRow.id]
    ordered = [key.desc() if query.descending else key.asc() for key in keys]
    if query.sort == "duration":
        ordered[0] = ordered[0].nulls_last()
    return _filtered(select(TrajectoryRow.id), query).order_by(*ordered)


def _sort_key(sort: Sort) -> ColumnElement[Any]:
    keys: dict[Sort, Any] = {
        "imported": TrajectoryRow.imported_utc,
        "task": func.lower(TrajectoryRow.task),
        "steps": TrajectoryRow.step_count,
        "duration": TrajectoryRow.duration_s,
        "judge_outcome": case((_judgement.outcome == "incorrect", 0), (_judgement.outcome == "correct", 1), else_=2),
        "review": case((_review.status == "submitted", 2), (_review.status == "in_progress", 1), else_=0),
        "problems": TrajectoryRow.problem_count,
    }
    key: ColumnElement[Any] = keys[sort]
    return key


def _filtered(statement: Select[_Selected], query: Query) -> Select[_Selected]:
    if query.judge_outcome or query.sort == "judge_outcome":
        statement = statement.outerjoin(_judgement, _judgement.id == _newest_judgement_id())
    if query.review or query.sort == "review":
        mine = and_(_review.trajectory_id == TrajectoryRow.id, _review.reviewer == query.reviewer)
        statement = statement.outerjoin(_review, mine)
    return statement.where(*_conditions(query))


def _conditions(query: Query) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if query.search:
        fields = (TrajectoryRow.task, TrajectoryRow.source, TrajectoryRow.agent, TrajectoryRow.id)
        conditions.append(or_(*(field.icontains(query.search, autoescape=True) for field in fields)))
    if query.source:
        conditions.append(or_(TrajectoryRow.format == query.source, TrajectoryRow.source == query.source))
    if query.agent:
        conditions.append(TrajectoryRow.agent == query.agent)
    if query.judge_outcome:
        value = None if query.judge_outcome == "none" else query.judge_outcome
        conditions.append(_judgement.outcome.is_(None) if value is None else _judgement.outcome == value)
    if query.review == "unreviewed":
        conditions.append(_review.status.is_(None))
    elif query.review in ("in_progress", "submitted"):
        conditions.append(_review.status == query.review)
    elif query.review:
        conditions.append(_review.outcome == query.review)
    if query.problems is not None:
        conditions.append(TrajectoryRow.problem_count > 0 if query.problems else TrajectoryRow.problem_count == 0)
    return conditions


def _newest_judgement_id() -> Any:
    other = aliased(JudgementRow)
    return (
        select(other.id)
        .where(other.trajectory_id == TrajectoryRow.id)
        .order_by(other.created_utc.desc(), other.id.desc())
        .limit(1)
        .correlate(TrajectoryRow)
        .scalar_subquery()
    )


_COLUMNS = (
    TrajectoryRow.id,
    TrajectoryRow.task,
    TrajectoryRow.source,
    TrajectoryRow.format,
    TrajectoryRow.agent,
    TrajectoryRow.step_count,
    TrajectoryRow.duration_s,
    TrajectoryRow.outcome,
    TrajectoryRow.problem_count,
    TrajectoryRow.problems,
    TrajectoryRow.imported_utc,
    TrajectoryRow.revision,
    TrajectoryRow.thumbnail_id,
    MediaRow.width_px,
    MediaRow.height_px,
)


def _items(session: Session, ids: Sequence[str], reviewer: str) -> list[dict[str, Any]]:
    statement = select(*_COLUMNS).outerjoin(MediaRow, MediaRow.id == TrajectoryRow.media_id)
    rows = {row.id: row for row in session.execute(statement.where(TrajectoryRow.id.in_(ids)))}
    judges = _judges(session, ids)
    reviews = {
        row.trajectory_id: {"status": row.status, "outcome": row.outcome}
        for row in session.execute(
            select(ReviewRow.trajectory_id, ReviewRow.status, ReviewRow.outcome).where(
                ReviewRow.trajectory_id.in_(ids), ReviewRow.reviewer == reviewer
            )
        )
    }
    return [
        {
            "id": row.id,
            "task": row.task,
            "source": row.source,
            "format": row.format,
            "agent": row.agent,
            "steps": row.step_count,
            "duration_s": row.duration_s,
            "width_px": row.width_px,
            "height_px": row.height_px,
            "thumbnail_url": media_url(row.thumbnail_id) if row.thumbnail_id else None,
            "judge": judges[row.id],
            "outcome": row.outcome,
            "review": reviews.get(row.id, {"status": "unreviewed", "outcome": None}),
            "problem_count": row.problem_count,
            "problems": row.problems[:PROBLEMS_SHOWN],
            "imported_utc": row.imported_utc,
            "revision": row.revision,
        }
        for row in (rows[id] for id in ids if id in rows)
    ]


def _judges(session: Session, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What the newest judgement of each says, and whether another is on its way."""
    said: dict[str, dict[str, Any]] = {
        id: {"name": None, "outcome": None, "minus_steps": 0, "state": "none"} for id in ids
    }
    newest = select(TrajectoryRow.id, _judgement).join(_judgement, _judgement.id == _newest_judgement_id())
    for id, judgement in session.execute(newest.where(TrajectoryRow.id.in_(ids))):
        labels = judgement.document.get("step_labels", [])
        said[id] = {
            "name": judgement.judge,
            "outcome": judgement.outcome,
            "minus_steps": sum(label["label"] == "-" for label in labels),
            "state": "failed" if judgement.error else "done",
        }
    active = select(JobRow.trajectory_id, JobRow.state).where(
        JobRow.kind == "judge", JobRow.state.in_(("queued", "running")), JobRow.trajectory_id.in_(ids)
    )
    for trajectory_id, state in session.execute(active.order_by(JobRow.state)):
        said[str(trajectory_id)]["state"] = state
    return said
