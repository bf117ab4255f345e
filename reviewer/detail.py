"""Everything the review page needs of one trajectory, as JSON values: times on the video clock, points as fractions."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import JudgementRow, MediaRow, TrajectoryRow
from reviewer import alignment_versions, ledger
from reviewer.frame_plan import FramePlan
from reviewer.media_ids import media_id, media_url, observation_role
from reviewer.trajectory import Action, Point, Step, Trajectory


def detail(session: Session, trajectory_id: str, reviewer: str) -> dict[str, Any]:
    """``{trajectory, media, alignment, judgements, review}`` as docs/design.md has it. Raises UnknownTrajectory."""
    row = session.get(TrajectoryRow, trajectory_id)
    if row is None:
        raise ledger.UnknownTrajectory(trajectory_id)
    media = session.get(MediaRow, row.media_id) if row.media_id else None
    alignment = alignment_versions.newest(session, trajectory_id)
    return {
        "trajectory": _trajectory(session, row),
        "media": _media(media) if media else None,
        "alignment": alignment_versions.to_json(alignment) if alignment else None,
        "judgements": judgements(session, trajectory_id),
        "review": ledger.current_review(session, trajectory_id, reviewer),
    }


def _media(media: MediaRow) -> dict[str, Any]:
    return {
        "media_id": media.id,
        "url": media_url(media.id),
        "width_px": media.width_px,
        "height_px": media.height_px,
        "duration_s": media.duration_s,
        "start_s": media.start_s,
        "clock": media.clock,
        "is_proxy": media.original_path is not None,
        "proxy_reason": media.proxy_reason,
    }


def judgements(session: Session, trajectory_id: str) -> list[dict[str, Any]]:
    """Every judgement of a trajectory, newest first within a judge; spans are seconds of the video clock."""
    rows = session.scalars(
        select(JudgementRow)
        .where(JudgementRow.trajectory_id == trajectory_id)
        .order_by(JudgementRow.judge, JudgementRow.created_utc.desc(), JudgementRow.id.desc())
    )
    return [_judgement(row) for row in rows]


def _judgement(row: JudgementRow) -> dict[str, Any]:
    document = row.document
    return {
        "id": row.id,
        "judge": row.judge,
        "fingerprint": row.fingerprint,
        "created_utc": row.created_utc,
        "outcome": row.outcome,
        "probability": document.get("probability"),
        "spans": _video_spans(document),
        "step_labels": document.get("step_labels", []),
        "raw": document.get("raw", ""),
        "frame_plan": document.get("frame_plan"),
        "error": row.error,
        "revision": document.get("revision"),
    }


def _video_spans(document: dict[str, Any]) -> list[dict[str, Any]]:
    if not document.get("frame_plan"):
        return list(document.get("spans", []))
    plan = FramePlan.from_json(document["frame_plan"])
    return [
        span | {edge: plan.to_video_s(span[edge]) for edge in ("start_s", "end_s")}
        for span in document.get("spans", [])
    ]


def _trajectory(session: Session, row: TrajectoryRow) -> dict[str, Any]:
    trajectory = Trajectory.from_json(row.document)
    ids = [media_id(row.content_hash, observation_role(observation.index)) for observation in trajectory.observations]
    pictures = {media.id: media for media in session.scalars(select(MediaRow).where(MediaRow.id.in_(ids)))}
    return {
        "id": row.id,
        "revision": row.revision,
        "format": row.format,
        "source": row.source,
        "task": row.task,
        "agent": row.agent,
        "platform": trajectory.platform,
        "recorded_at": trajectory.recorded_at,
        "imported_utc": row.imported_utc,
        "score": row.score,
        "outcome": row.outcome,
        "problems": row.problems,
        "steps": [_step(step) for step in trajectory.steps],
        "observations": [
            _observation(observation.index, pictures.get(id))
            for observation, id in zip(trajectory.observations, ids, strict=True)
        ],
        "extra": {key: value for key, value in trajectory.extra.items() if key != "export"},
    }


def _observation(index: int, media: MediaRow | None) -> dict[str, Any]:
    return {
        "index": index,
        "media_id": media.id if media else None,
        "url": media_url(media.id) if media else None,
        "width_px": media.width_px if media else None,
        "height_px": media.height_px if media else None,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "index": step.index,
        "source_number": step.source_number,
        "thought": step.thought,
        "raw": step.raw,
        "stamp_s": step.stamp_s,
        "is_terminal": step.is_terminal,
        "actions": [_action(action) for action in step.actions],
    }


def _action(action: Action) -> dict[str, Any]:
    return {
        "kind": action.kind,
        "points": [{"x": x, "y": y} for x, y in map(_fraction, action.points) if math.isfinite(x + y)],
        "text": action.text,
        "keys": list(action.keys),
        "scroll_x": action.scroll_x,
        "scroll_y": action.scroll_y,
        "duration_s": action.duration_s,
        "raw": action.raw,
    }


def _fraction(point: Point) -> tuple[float, float]:
    return point.fraction if point.width > 0 and point.height > 0 else (math.nan, math.nan)
