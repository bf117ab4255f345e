"""The versions of a trajectory's alignment: found automatically, corrected by people, the newest counts.

Each version keeps the corrections that led to it, so that they can be made again when the source has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import AlignmentRow, TrajectoryRow, utc_now
from reviewer.alignment import Alignment, corrected
from reviewer.errors import ReviewerError
from reviewer.ledger import UnknownTrajectory

AUTOMATIC = "automatic"

_PLACED = ("step_at_s", "step_weak", "observation_at_s")


class StaleAlignment(ReviewerError):
    """A correction was made on an older version; ``alignment`` is the present one."""

    def __init__(self, alignment: dict[str, Any]) -> None:
        super().__init__("The steps were placed anew meanwhile; look at where they stand and correct them again.")
        self.alignment = alignment


def newest(session: Session, trajectory_id: str) -> AlignmentRow | None:
    """The version that counts."""
    versions = select(AlignmentRow).where(AlignmentRow.trajectory_id == trajectory_id)
    return session.scalars(versions.order_by(AlignmentRow.version.desc()).limit(1)).first()


def to_json(row: AlignmentRow) -> dict[str, Any]:
    """One version as docs/design.md has it, and the corrections in it."""
    about = {"version": row.version, "author": row.author, "created_utc": row.created_utc}
    return row.document | about | {"corrections": row.document.get("corrections", [])}


def store_found(session: Session, row: TrajectoryRow, alignment: Alignment) -> None:
    """Store an alignment found automatically; the corrections people made of an earlier one are made again."""
    before = newest(session, row.id)
    _add(session, row, before, alignment.to_json(), before.document.get("corrections", []) if before else [])


def correct(
    session: Session, trajectory_id: str, base_version: int, pins: Sequence[dict[str, Any]], shift_s: float, author: str
) -> AlignmentRow:
    """Store a correction by hand as a new version: some steps pinned to times, the others shifted.

    One that changes nothing is answered with the present version. Raises UnknownTrajectory, StaleAlignment when
    ``base_version`` is not the newest, and InvalidCorrection for a shift or pins that fit no step or no time.
    """
    row, before = _at_version(session, trajectory_id, base_version)
    correction = {"pins": list(pins), "shift_s": shift_s, "author": author}
    document = _corrected(before.document, correction, row.duration_s)
    if all(document[name] == before.document[name] for name in _PLACED):
        return before
    return _add_version(session, trajectory_id, before.version + 1, author, document)


def take_back(session: Session, trajectory_id: str, base_version: int, author: str) -> AlignmentRow:
    """Store the placing before the newest correction again, as a new version.

    Raises UnknownTrajectory, StaleAlignment when ``base_version`` is not the newest, and ReviewerError without one.
    """
    _, before = _at_version(session, trajectory_id, base_version)
    corrections = before.document.get("corrections", [])
    if not corrections:
        raise ReviewerError("There is no correction to take back; the steps stand where they were found.")
    earlier = select(AlignmentRow).where(
        AlignmentRow.trajectory_id == trajectory_id, AlignmentRow.version < before.version
    )
    for row in session.scalars(earlier.order_by(AlignmentRow.version.desc())):
        if row.document.get("corrections", []) == corrections[:-1]:
            return _add_version(session, trajectory_id, before.version + 1, author, row.document)
    raise ReviewerError("The placing before this correction is gone, because the run was imported again since.")


def _at_version(session: Session, trajectory_id: str, base_version: int) -> tuple[TrajectoryRow, AlignmentRow]:
    row = session.get(TrajectoryRow, trajectory_id, with_for_update=True)
    before = newest(session, trajectory_id)
    if row is None or before is None:
        raise UnknownTrajectory(trajectory_id)
    if base_version != before.version:
        raise StaleAlignment(to_json(before))
    return row, before


def restore(session: Session, row: TrajectoryRow, corrections: Sequence[dict[str, Any]]) -> None:
    """Make the corrections of an export; those made here already win."""
    before = newest(session, row.id)
    if before is not None and corrections and not before.document.get("corrections"):
        _add(session, row, before, before.document, corrections)


def _add(
    session: Session,
    row: TrajectoryRow,
    before: AlignmentRow | None,
    document: dict[str, Any],
    corrections: Sequence[dict[str, Any]],
) -> None:
    author = AUTOMATIC
    for correction in corrections:
        try:
            document = _corrected(document, correction, row.duration_s)
            author = str(correction["author"])
        except (ReviewerError, KeyError, TypeError, ValueError, AttributeError):
            # It names a step or a moment that this source does not have.
            continue
    _add_version(session, row.id, before.version + 1 if before else 1, author, document)


def _corrected(document: dict[str, Any], correction: dict[str, Any], duration_s: float | None) -> dict[str, Any]:
    alignment = corrected(
        Alignment.from_json(document), correction["pins"], correction["shift_s"], correction["author"], duration_s
    )
    return alignment.to_json() | {"corrections": [*document.get("corrections", []), correction]}


def _add_version(
    session: Session, trajectory_id: str, version: int, author: str, document: dict[str, Any]
) -> AlignmentRow:
    row = AlignmentRow(
        trajectory_id=trajectory_id, version=version, author=author, created_utc=utc_now(), document=document
    )
    session.add(row)
    session.flush()
    return row
