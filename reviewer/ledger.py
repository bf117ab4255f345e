"""The ledger of overrides: every op a person makes, kept for good, and the review it adds up to.

An op is one row that is never changed, and the review is one row kept beside it in the same transaction; so an op costs
the same whatever the ledger's size. Ops on one trajectory wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, select, tuple_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.models import JudgementRow, MediaRow, OverrideRow, ReviewRow, TrajectoryRow, utc_now
from reviewer import ops
from reviewer.errors import ReviewerError
from reviewer.ops import Bounds, Change, InvalidOp, State

HISTORY_LIMIT = 200
HISTORY_FIELDS = (
    "op_id",
    "reviewer",
    "verified",
    "rev",
    "type",
    "changes",
    "reason",
    "shown",
    "undoes",
    "created_utc",
)
LOG_FIELDS = (*HISTORY_FIELDS, "body")

replay = ops.replay


class UnknownTrajectory(ReviewerError):
    """No trajectory has this id."""

    def __init__(self, trajectory_id: str) -> None:
        super().__init__(f"There is no trajectory {trajectory_id}; it may have been removed or never imported.")


class StaleWrite(ReviewerError):
    """The op was made on an older review: ``rev`` and ``review`` are the present ones, ``ops_since`` what it missed."""

    def __init__(self, rev: int, review: dict[str, Any], ops_since: list[dict[str, Any]]) -> None:
        super().__init__(f"The review has moved on to rev {rev}; look at what changed and send the op again.")
        self.rev = rev
        self.review = review
        self.ops_since = ops_since


class Answer(NamedTuple):
    """What an op is answered with: ``rev`` and ``review`` are those right after it."""

    op_id: str
    rev: int
    review: dict[str, Any]


def append(
    session: Session,
    trajectory_id: str,
    reviewer: str,
    op: Mapping[str, Any],
    *,
    verified: bool = False,
    now_utc: str | None = None,
) -> Answer:
    """Take one op of ``reviewer``; docs/design.md lists the ops. An op already taken is answered as it was then.

    Raises UnknownTrajectory, InvalidOp, or StaleWrite when the op's ``base_rev`` is not the review's rev.
    """
    ops.checked_text("reviewer", reviewer, ops.MAX_ID, 1)
    found = _find(session, trajectory_id, lock=True)
    op_id = ops.checked_text("op_id", op.get("op_id"), ops.MAX_ID, 1)
    body = {name: value for name, value in op.items() if name not in {"op_id", "base_rev", "shown"}}
    if taken := session.scalar(select(OverrideRow).where(OverrideRow.op_id == op_id)):
        if (taken.trajectory_id, taken.reviewer, taken.body) != (trajectory_id, reviewer, body):
            raise InvalidOp(f"op_id {op_id} was already used for another op; give every op its own.")
        return _answer_again(session, taken)
    bounds = _bounds(session, found, op)
    ops.check(op, bounds)
    row = session.get(ReviewRow, (trajectory_id, reviewer))
    rev = row.rev if row else 0
    if op["base_rev"] != rev:
        since = _overrides(trajectory_id, reviewer).where(OverrideRow.rev > op["base_rev"])
        raise StaleWrite(rev, _review(trajectory_id, reviewer, row), _entries(session.scalars(since), HISTORY_FIELDS))

    before = {"status": "in_progress"} if row is None else ops.from_document(row.state)
    after = _after(session, trajectory_id, reviewer, before, op, bounds)
    override = OverrideRow(
        op_id=op_id,
        trajectory_id=trajectory_id,
        reviewer=reviewer,
        verified=verified,
        rev=rev + 1,
        type=op["type"],
        body=body,
        changes=ops.difference(before, after),
        reason=op.get("reason", ""),
        shown=op.get("shown", []),
        undoes=op.get("undoes"),
        created_utc=now_utc or utc_now(),
    )
    session.add(override)
    row = _store_review(session, row, override, after)
    try:
        session.flush()
    except IntegrityError as error:
        raise InvalidOp(f"op_id {op_id} was already used for another op; give every op its own.") from error
    return Answer(op_id, row.rev, _review(trajectory_id, reviewer, row))


def current_review(session: Session, trajectory_id: str, reviewer: str) -> dict[str, Any]:
    """The review of ``reviewer`` as docs/design.md describes it. Raises UnknownTrajectory."""
    _find(session, trajectory_id)
    return _review(trajectory_id, reviewer, session.get(ReviewRow, (trajectory_id, reviewer)))


def history(
    session: Session,
    trajectory_id: str,
    *,
    reviewer: str | None = None,
    before: str | None = None,
    limit: int = HISTORY_LIMIT,
) -> list[dict[str, Any]]:
    """The ops on a trajectory, newest first: of one reviewer or all, older than the op ``before``.

    Raises UnknownTrajectory, and InvalidOp when ``before`` names no op on this trajectory.
    """
    _find(session, trajectory_id)
    moment = tuple_(OverrideRow.created_utc, OverrideRow.id)
    query = select(OverrideRow).where(OverrideRow.trajectory_id == trajectory_id)
    if reviewer is not None:
        query = query.where(OverrideRow.reviewer == reviewer)
    if before is not None:
        ops.checked_text("before", before, ops.MAX_ID, 1)
        last = session.scalar(query.where(OverrideRow.op_id == before))
        if last is None:
            raise InvalidOp(f"before names no op of this history: {before}.")
        query = query.where(moment < tuple_(last.created_utc, last.id))
    query = query.order_by(OverrideRow.created_utc.desc(), OverrideRow.id.desc()).limit(limit)
    return _entries(session.scalars(query), HISTORY_FIELDS)


def log(session: Session, trajectory_id: str) -> list[dict[str, Any]]:
    """The whole ledger of a trajectory, oldest first, with all that ``restore`` needs. Raises UnknownTrajectory."""
    _find(session, trajectory_id)
    query = select(OverrideRow).where(OverrideRow.trajectory_id == trajectory_id).order_by(OverrideRow.id)
    return _entries(session.scalars(query), LOG_FIELDS)


def restore(
    session: Session, trajectory_id: str, entries: Iterable[Mapping[str, Any]], *, trusted: bool = False
) -> int:
    """Put an exported ``log`` back with its op ids, revs, times and reviewers; returns how many ops were new.

    Ops already here are left alone. Names count as unverified unless the log is ``trusted``. Raises UnknownTrajectory,
    and InvalidOp when an entry is malformed or does not continue what this ledger holds; nothing is restored then.
    """
    bounds = Bounds(_find(session, trajectory_id, lock=True).step_count)
    rows = sorted((_row_of(trajectory_id, entry, bounds, trusted) for entry in entries), key=lambda row: row.rev)
    reviews: dict[str, tuple[ReviewRow | None, State]] = {}
    restored = 0
    for new in rows:
        if known := session.scalar(select(OverrideRow).where(OverrideRow.op_id == new.op_id)):
            if _identity(known) != _identity(new):
                raise InvalidOp(f"op {new.op_id}: this ledger holds another op under that op_id.")
            continue
        if new.reviewer not in reviews:
            stored = session.get(ReviewRow, (trajectory_id, new.reviewer))
            reviews[new.reviewer] = (stored, ops.from_document(stored.state) if stored else {"status": "in_progress"})
        review, state = reviews[new.reviewer]
        if new.rev != (review.rev if review else 0) + 1 or any(
            state.get(change["field"]) != change["from"] for change in new.changes
        ):
            raise InvalidOp(f"op {new.op_id}: rev {new.rev} does not continue the ops of {new.reviewer} kept here.")
        state = ops.advance(state, new.changes)
        session.add(new)
        reviews[new.reviewer] = (_store_review(session, review, new, state), state)
        restored += 1
    session.flush()
    return restored


def _find(session: Session, trajectory_id: str, *, lock: bool = False) -> Row[int, float | None, str | None]:
    """The trajectory's measures; with ``lock``, other ops on it wait until the session ends."""
    if "\0" in trajectory_id:
        raise UnknownTrajectory(trajectory_id)
    query = select(TrajectoryRow.step_count, TrajectoryRow.duration_s, TrajectoryRow.media_id)
    query = query.where(TrajectoryRow.id == trajectory_id)
    # A lock that lets rows refer to the trajectory meanwhile; SQLite has none and locks when the session begins.
    found = session.execute(query.with_for_update(key_share=True) if lock else query).one_or_none()
    if found is None:
        raise UnknownTrajectory(trajectory_id)
    return found


def _bounds(session: Session, found: Row[int, float | None, str | None], op: Mapping[str, Any]) -> Bounds:
    clock = None
    if op.get("type") == "put_span":
        clock = session.scalar(select(MediaRow.clock).where(MediaRow.id == found.media_id))
    return Bounds(found.step_count, found.duration_s, _half_picture_s(clock))


def _half_picture_s(clock: Mapping[str, Any] | None) -> float:
    if clock is None:
        return 0.0
    if "pts_s" in clock:
        last_two = clock["pts_s"][-2:]
        return float(last_two[-1] - last_two[0]) / 2 if last_two else 0.0
    return float(clock["num"] / clock["den"]) / 2


def _after(
    session: Session, trajectory_id: str, reviewer: str, before: State, op: Mapping[str, Any], bounds: Bounds
) -> State:
    undone = _undone_changes(session, trajectory_id, reviewer, op["undoes"]) if op["type"] == "undo" else None
    turns_status = op["type"] == "reopen" or (undone is not None and [c["field"] for c in undone] == ["status"])
    if before["status"] == "submitted" and not turns_status:
        raise InvalidOp(f"type {op['type']} is refused: the review is submitted; reopen it first.")
    if undone is not None:
        return ops.reverse(before, undone)
    if op["type"] == "accept":
        judgement = session.get(JudgementRow, op["judgement_id"])
        if judgement is None or judgement.trajectory_id != trajectory_id:
            raise InvalidOp(f"judgement_id names no judgement of this trajectory: {op['judgement_id']}.")
        return ops.accept(before, judgement.id, judgement.document, bounds)
    return ops.apply(before, op)


def _undone_changes(session: Session, trajectory_id: str, reviewer: str, op_id: str) -> list[Change]:
    target = session.scalar(_overrides(trajectory_id, reviewer).where(OverrideRow.op_id == op_id))
    if target is None:
        raise InvalidOp(f"undoes names no op of yours on this trajectory: {op_id}.")
    if _is_undone(session, op_id):
        raise InvalidOp(f"undoes names an op that is already undone: {op_id}.")
    return target.changes


def _is_undone(session: Session, op_id: str) -> bool:
    """Whether the last undo of the op stands; an undo that was itself undone does not."""
    undone = False
    last = select(OverrideRow.op_id).order_by(OverrideRow.rev.desc()).limit(1)
    while (undo_id := session.scalar(last.where(OverrideRow.undoes == op_id))) is not None:
        op_id, undone = undo_id, not undone
    return undone


def _answer_again(session: Session, taken: OverrideRow) -> Answer:
    until = (
        select(OverrideRow.changes)
        .where(
            OverrideRow.trajectory_id == taken.trajectory_id,
            OverrideRow.reviewer == taken.reviewer,
            OverrideRow.rev <= taken.rev,
        )
        .order_by(OverrideRow.rev)
    )
    document = ops.to_document(ops.replay(session.scalars(until)))
    review = _rendered(taken.trajectory_id, taken.reviewer, taken.rev, document, taken.created_utc)
    return Answer(taken.op_id, taken.rev, review)


def _store_review(session: Session, row: ReviewRow | None, override: OverrideRow, state: State) -> ReviewRow:
    if row is None:
        row = ReviewRow(trajectory_id=override.trajectory_id, reviewer=override.reviewer)
        session.add(row)
    row.rev = override.rev
    row.status = state["status"]
    row.outcome = state.get("outcome")
    row.updated_utc = override.created_utc
    row.state = ops.to_document(state)
    return row


def _review(trajectory_id: str, reviewer: str, row: ReviewRow | None) -> dict[str, Any]:
    if row is None:
        return _rendered(trajectory_id, reviewer, 0, ops.to_document(ops.replay([])), None)
    return _rendered(trajectory_id, reviewer, row.rev, row.state, row.updated_utc)


def _rendered(
    trajectory_id: str, reviewer: str, rev: int, document: Mapping[str, Any], updated_utc: str | None
) -> dict[str, Any]:
    mark = document["first_error"]
    return {
        "trajectory_id": trajectory_id,
        "reviewer": reviewer,
        "rev": rev,
        **document,
        "first_error": mark and {"step_index": mark["step_index"], "reason": mark["reason"]},
        "first_error_label": {"replaced": mark["replaced"]} if mark and "replaced" in mark else None,
        "updated_utc": updated_utc,
    }


def _overrides(trajectory_id: str, reviewer: str) -> Select[OverrideRow]:
    return (
        select(OverrideRow)
        .where(OverrideRow.trajectory_id == trajectory_id, OverrideRow.reviewer == reviewer)
        .order_by(OverrideRow.rev)
    )


def _entries(rows: Iterable[OverrideRow], names: Sequence[str]) -> list[dict[str, Any]]:
    return [{name: getattr(row, name) for name in names} for row in rows]


def _identity(row: OverrideRow) -> tuple[Any, ...]:
    return row.trajectory_id, row.reviewer, row.rev, row.type, row.body, row.changes


def _row_of(trajectory_id: str, entry: Mapping[str, Any], bounds: Bounds, trusted: bool) -> OverrideRow:
    op_id = ops.checked_text("op_id", entry.get("op_id"), ops.MAX_ID, 1)
    try:
        fields = {name: entry[name] for name in LOG_FIELDS}
        ops.check_entry(fields, bounds)
    except KeyError as error:
        raise InvalidOp(f"op {op_id}: {error.args[0]} is missing.") from error
    except InvalidOp as error:
        raise InvalidOp(f"op {op_id}: {error}") from error
    return OverrideRow(**{**fields, "trajectory_id": trajectory_id, "verified": trusted and fields["verified"]})
