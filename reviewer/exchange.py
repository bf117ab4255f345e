"""A trajectory with all that was said of it, taken out of the library as an export and put back from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from db.models import JudgementRow, MediaRow, TrajectoryRow
from reviewer import alignment_versions, ledger
from reviewer.detail import judgements
from reviewer.errors import ReviewerError
from reviewer.exported import ExportedTrajectory
from reviewer.judges import Judgement
from reviewer.playable import sha256_of_file
from reviewer.trajectory import Trajectory

_JUDGED = ("outcome", "probability", "step_labels", "raw", "frame_plan", "error")


def take_out(session: Session, row: TrajectoryRow) -> ExportedTrajectory:
    """Everything the library holds of one trajectory."""
    media = session.get(MediaRow, row.media_id) if row.media_id else None
    alignment = alignment_versions.newest(session, row.id)
    return ExportedTrajectory(
        trajectory=Trajectory.from_json(row.document),
        media=_media(media) if media else None,
        alignment=alignment_versions.to_json(alignment) if alignment else None,
        reviews=_reviews(session, row.id),
        judgements=_judgements(session, row.id),
    )


def put_back(session: Session, row: TrajectoryRow, export: dict[str, Any]) -> None:
    """Restore what people and judges said according to an export; what is here already is left alone.

    Raises ReviewerError when the export is malformed or does not continue what is here.
    """
    for judgement in export["judgements"]:
        _restore_judgement(session, row.id, judgement)
    ledger.restore(session, row.id, [op for review in export["reviews"] for op in review.get("ops") or []])
    alignment_versions.restore(session, row, (export["alignment"] or {}).get("corrections") or [])


def _media(media: MediaRow) -> dict[str, Any]:
    original = Path(media.original_path or media.path)
    return {
        "name": original.name,
        "original_path": str(original),
        "sha256": sha256_of_file(original) if original.is_file() else None,
        "width_px": media.width_px,
        "height_px": media.height_px,
        "duration_s": media.duration_s,
        "start_s": media.start_s,
        "clock": media.clock,
        "proxy_reason": media.proxy_reason,
    }


def _reviews(session: Session, trajectory_id: str) -> list[dict[str, Any]]:
    log = ledger.log(session, trajectory_id)
    reviewers = sorted({op["reviewer"] for op in log})
    return [
        ledger.current_review(session, trajectory_id, reviewer)
        | {"ops": [op for op in log if op["reviewer"] == reviewer]}
        for reviewer in reviewers
    ]


def _judgements(session: Session, trajectory_id: str) -> list[dict[str, Any]]:
    """The judgements as the page shows them, with ``judge_start_s`` and ``judge_end_s`` in each span."""
    taken = []
    for judgement in judgements(session, trajectory_id):
        stored = session.get_one(JudgementRow, judgement["id"]).document["spans"]
        spans = [
            shown | {"judge_start_s": span["start_s"], "judge_end_s": span["end_s"]}
            for shown, span in zip(judgement["spans"], stored, strict=True)
        ]
        taken.append(judgement | {"spans": spans})
    return taken


def _restore_judgement(session: Session, trajectory_id: str, judgement: dict[str, Any]) -> None:
    try:
        if session.get(JudgementRow, judgement["id"]) is not None:
            return
        spans = [
            {"start_s": span["judge_start_s"], "end_s": span["judge_end_s"], "reason": span["reason"]}
            for span in judgement["spans"]
        ]
        document = {key: judgement[key] for key in _JUDGED} | {"spans": spans, "revision": judgement.get("revision")}
        Judgement.from_json(document)
        session.add(
            JudgementRow(
                id=judgement["id"],
                trajectory_id=trajectory_id,
                judge=judgement["judge"],
                fingerprint=judgement["fingerprint"],
                created_utc=judgement["created_utc"],
                outcome=judgement["outcome"],
                error=judgement["error"],
                document=document,
            )
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReviewerError(f"A judgement of {trajectory_id} in the export is malformed ({error!r}).") from error
