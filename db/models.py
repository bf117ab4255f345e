"""The tables. Times are UTC ISO 8601 strings with offset; durations and positions are seconds of the video clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


def utc_now() -> str:
    """The present moment as every table stores it: UTC, ISO 8601 with offset and microseconds (32 characters)."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Base(DeclarativeBase):
    """Base of every table. Constraints are named by rule, so that a migration can name what it alters."""

    metadata = MetaData(
        naming_convention={
            "ix": "%(table_name)s_%(column_0_N_name)s",
            "uq": "%(table_name)s_%(column_0_N_name)s_unique",
            "fk": "%(table_name)s_%(column_0_N_name)s_fk",
            "pk": "%(table_name)s_pk",
        }
    )
    type_annotation_map = {dict[str, Any]: JSON(none_as_null=True), list[Any]: JSON(none_as_null=True)}  # noqa: RUF012


class TrajectoryRow(Base):
    """An imported trajectory: the columns the worklist sorts and filters by, and the whole of it as a document."""

    __tablename__ = "trajectory"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    revision: Mapped[int] = mapped_column(Integer, default=1)
    content_hash: Mapped[str] = mapped_column(String(64))
    format: Mapped[str] = mapped_column(String(40))
    source: Mapped[str] = mapped_column(Text, unique=True)
    task: Mapped[str] = mapped_column(Text)
    agent: Mapped[str] = mapped_column(Text, default="")
    step_count: Mapped[int] = mapped_column(Integer)
    duration_s: Mapped[float | None] = mapped_column(Float)
    score: Mapped[float | None] = mapped_column(Float)
    outcome: Mapped[str | None] = mapped_column(String(12))
    problem_count: Mapped[int] = mapped_column(Integer, default=0)
    imported_utc: Mapped[str] = mapped_column(String(32), index=True)
    media_id: Mapped[str | None] = mapped_column(ForeignKey("media.id"))
    thumbnail_id: Mapped[str | None] = mapped_column(ForeignKey("media.id"))
    document: Mapped[dict[str, Any]]
    problems: Mapped[list[Any]]

    __table_args__ = (CheckConstraint("outcome in ('correct', 'incorrect')", name="trajectory_outcome"),)


class MediaRow(Base):
    """A file served to the browser under an opaque id.

    ``clock`` holds the presentation times of a video: ``{"num", "den", "count"}`` for picture k at k * num / den
    seconds, or ``{"pts_s": [...]}``. ``original_path`` is the file the media was made from when it is a proxy, and
    ``start_s`` the time of the original's first picture on the original's own timeline.
    """

    __tablename__ = "media"

    id: Mapped[str] = mapped_column(String(24), primary_key=True)
    kind: Mapped[str] = mapped_column(String(10))
    path: Mapped[str] = mapped_column(Text)
    original_path: Mapped[str | None] = mapped_column(Text)
    proxy_reason: Mapped[str] = mapped_column(Text, default="")
    width_px: Mapped[int] = mapped_column(Integer)
    height_px: Mapped[int] = mapped_column(Integer)
    duration_s: Mapped[float | None] = mapped_column(Float)
    start_s: Mapped[float] = mapped_column(Float, default=0.0)
    clock: Mapped[dict[str, Any] | None]

    __table_args__ = (CheckConstraint("kind in ('video', 'image')", name="media_kind"),)


class AlignmentRow(Base):
    """One version of where a trajectory's steps and observations stand on the video clock; the newest counts."""

    __tablename__ = "alignment"

    id: Mapped[int] = mapped_column(primary_key=True)
    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectory.id"))
    version: Mapped[int] = mapped_column(Integer)
    author: Mapped[str] = mapped_column(Text)
    created_utc: Mapped[str] = mapped_column(String(32))
    document: Mapped[dict[str, Any]]

    __table_args__ = (UniqueConstraint("trajectory_id", "version"),)


class JudgementRow(Base):
    """What one judge run said of one trajectory. Spans in the document are judge seconds with their FramePlan."""

    __tablename__ = "judgement"

    id: Mapped[str] = mapped_column(String(24), primary_key=True)
    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectory.id"))
    judge: Mapped[str] = mapped_column(String(40))
    fingerprint: Mapped[str] = mapped_column(String(64))
    created_utc: Mapped[str] = mapped_column(String(32))
    outcome: Mapped[str | None] = mapped_column(String(12))
    error: Mapped[str | None] = mapped_column(Text)
    document: Mapped[dict[str, Any]]

    __table_args__ = (
        CheckConstraint("outcome in ('correct', 'incorrect')", name="judgement_outcome"),
        Index("judgement_newest", "trajectory_id", "judge", "created_utc"),
    )


class OverrideRow(Base):
    """One append-only event by a person. ``changes`` lists ``{"field", "from", "to"}``; rows are never updated."""

    __tablename__ = "override"

    id: Mapped[int] = mapped_column(primary_key=True)
    op_id: Mapped[str] = mapped_column(String(80), unique=True)
    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectory.id"))
    reviewer: Mapped[str] = mapped_column(String(80))
    verified: Mapped[bool] = mapped_column(Boolean, default=False)
    rev: Mapped[int] = mapped_column(Integer)
    type: Mapped[str] = mapped_column(String(24))
    body: Mapped[dict[str, Any]]
    changes: Mapped[list[Any]]
    reason: Mapped[str] = mapped_column(Text, default="")
    shown: Mapped[list[Any]]
    undoes: Mapped[str | None] = mapped_column(String(80))
    created_utc: Mapped[str] = mapped_column(String(32))

    __table_args__ = (
        UniqueConstraint("trajectory_id", "reviewer", "rev"),
        Index("override_newest", "trajectory_id", "created_utc", "id"),
        Index("override_undoing", "undoes"),
    )


class ReviewRow(Base):
    """The current view of one reviewer on one trajectory: their overrides replayed, kept so that reading is one row."""

    __tablename__ = "review"

    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectory.id"), primary_key=True)
    reviewer: Mapped[str] = mapped_column(String(80), primary_key=True)
    rev: Mapped[int] = mapped_column(Integer)
    status: Mapped[str] = mapped_column(String(12))
    outcome: Mapped[str | None] = mapped_column(String(12))
    updated_utc: Mapped[str] = mapped_column(String(32))
    state: Mapped[dict[str, Any]]

    __table_args__ = (
        CheckConstraint("status in ('in_progress', 'submitted')", name="review_status"),
        CheckConstraint("outcome in ('correct', 'incorrect', 'unsure')", name="review_outcome"),
        Index("review_by_reviewer", "reviewer", "status"),
    )


class JobRow(Base):
    """Durable background work: a judge on a trajectory, or an upload to import."""

    __tablename__ = "job"

    id: Mapped[str] = mapped_column(String(24), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    trajectory_id: Mapped[str | None] = mapped_column(ForeignKey("trajectory.id"))
    arguments: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(12), index=True)
    done: Mapped[int] = mapped_column(Integer, default=0)
    total: Mapped[int | None] = mapped_column(Integer)
    message: Mapped[str] = mapped_column(Text, default="")
    result: Mapped[dict[str, Any] | None]
    created_utc: Mapped[str] = mapped_column(String(32))
    updated_utc: Mapped[str] = mapped_column(String(32))

    __table_args__ = (
        CheckConstraint("state in ('queued', 'running', 'done', 'failed', 'cancelled')", name="job_state"),
    )
