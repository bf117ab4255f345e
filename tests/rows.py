"""Rows to test with: a trajectory with a video, and a judgement of it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from db.models import JudgementRow, MediaRow, OverrideRow, ReviewRow, TrajectoryRow, utc_now
from reviewer import ops

STEP_COUNT = 12
DURATION_S = 30.0
PICTURE_S = 1 / 30


def add_trajectory(session: Session, trajectory_id: str, **columns: Any) -> str:
    """Store a trajectory of 12 steps with a video of 30 s at 30 pictures a second; returns its id."""
    media_id = f"media-{trajectory_id}"
    session.add(
        MediaRow(
            id=media_id,
            kind="video",
            path=f"/nowhere/{trajectory_id}.mp4",
            width_px=640,
            height_px=360,
            duration_s=DURATION_S,
            clock={"num": 1, "den": 30, "count": 900},
        )
    )
    session.flush()
    fields: dict[str, Any] = {
        "content_hash": "0" * 64,
        "format": "screenshots",
        "source": f"/nowhere/{trajectory_id}",
        "task": "Turn the lamp off",
        "step_count": STEP_COUNT,
        "duration_s": DURATION_S,
        "imported_utc": utc_now(),
        "media_id": media_id,
        "document": {},
        "problems": [],
    }
    session.add(TrajectoryRow(id=trajectory_id, **(fields | columns)))
    session.flush()
    return trajectory_id


def add_judgement(session: Session, trajectory_id: str, judgement_id: str, **document: Any) -> str:
    """Store a judgement whose document says nothing but what ``document`` holds; returns its id."""
    whole = {"outcome": None, "probability": None, "spans": [], "step_labels": [], "frame_plan": None} | document
    session.add(
        JudgementRow(
            id=judgement_id,
            trajectory_id=trajectory_id,
            judge="screen_rules",
            fingerprint="f" * 64,
            created_utc=utc_now(),
            outcome=whole["outcome"],
            error=whole.get("error"),
            document=whole,
        )
    )
    session.flush()
    return judgement_id


def fill_ledger(session: Session, trajectory_id: str, reviewer: str, count: int) -> None:
    """Store ``count`` ops of one reviewer as the ledger would have: labels going round the steps."""
    fields = [f"step_labels/{rev % STEP_COUNT}" for rev in range(count)]
    values = [{"label": "+" if rev // STEP_COUNT % 2 else "-", "reason": "seen"} for rev in range(count)]
    created_utc = utc_now()
    overrides = [
        {
            "op_id": f"{trajectory_id}-{reviewer}-{rev}",
            "trajectory_id": trajectory_id,
            "reviewer": reviewer,
            "rev": rev + 1,
            "type": "label_step",
            "body": {"type": "label_step", "step_index": rev % STEP_COUNT} | values[rev],
            "changes": [
                {
                    "field": fields[rev],
                    "from": values[rev - STEP_COUNT] if rev >= STEP_COUNT else None,
                    "to": values[rev],
                }
            ],
            "reason": "seen",
            "shown": [],
            "created_utc": created_utc,
        }
        for rev in range(count)
    ]
    session.execute(insert(OverrideRow), overrides)
    state = ops.replay(override["changes"] for override in overrides)
    session.add(
        ReviewRow(
            trajectory_id=trajectory_id,
            reviewer=reviewer,
            rev=count,
            status="in_progress",
            updated_utc=created_utc,
            state=ops.to_document(state),
        )
    )
    session.flush()
