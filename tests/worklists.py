"""Worklists to test and measure with: many trajectories with judgements, reviews and jobs."""

from __future__ import annotations

import hashlib
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from db.models import JobRow, JudgementRow, MediaRow, ReviewRow, TrajectoryRow

REVIEWER = "ada"
DOCUMENT_STEP = {"index": 0, "thought": "I look at the window and click the button that saves the file. " * 12}
OUTCOMES = ("correct", "incorrect", None)


def trajectory_values(number: int, **values: Any) -> dict[str, Any]:
    """The columns of one trajectory; its numbers, texts and outcomes vary with ``number``."""
    id = hashlib.sha256(str(number).encode()).hexdigest()[:16]
    return {
        "id": id,
        "revision": 1,
        "content_hash": id * 4,
        "format": ("osworld", "video", "native")[number % 3],
        "source": f"/runs/model-{number % 7}/os/{id}",
        "task": f"Task {number}: rename the file report-{number:05}.txt",
        "agent": f"model-{number % 7}",
        "step_count": number % 40,
        "duration_s": None if number % 10 == 9 else float(number % 97),
        "score": None,
        "outcome": OUTCOMES[number % 3],
        "problem_count": number % 4,
        "imported_utc": f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000000+00:00",
        "media_id": None,
        "thumbnail_id": None,
        "document": {"steps": [], "observations": []},
        "problems": [{"file": "traj.jsonl", "line": line + 1, "message": "odd"} for line in range(number % 4)],
        **values,
    }


def judgement_values(number: int, trajectory_id: str, **values: Any) -> dict[str, Any]:
    """The columns of one judgement of a trajectory."""
    return {
        "id": f"{number:024}",
        "trajectory_id": trajectory_id,
        "judge": "screen_rules",
        "fingerprint": "f",
        "created_utc": f"2026-01-02T00:00:00.{number % 1_000_000:06}+00:00",
        "outcome": OUTCOMES[number % 3],
        "error": None,
        "document": {"step_labels": [{"step_index": 0, "label": "-"}] * (number % 5)},
        **values,
    }


def fill(session: Session, count: int) -> None:
    """Insert ``count`` trajectories of real size, most judged, some reviewed, some with a job waiting."""
    media, trajectories, judgements, reviews, jobs = [], [], [], [], []
    for number in range(count):
        media_id = f"{number:024}"
        media.append(
            {"id": media_id, "kind": "video", "path": "v.mp4", "width_px": 1920, "height_px": 1080, "start_s": 0.0}
        )
        document = {"steps": [DOCUMENT_STEP] * (number % 40), "observations": []}
        values = trajectory_values(number, media_id=media_id, document=document)
        trajectories.append(values)
        if number % 5:
            judgements.append(judgement_values(number, values["id"]))
        if number % 4 == 0:
            status = "submitted" if number % 8 else "in_progress"
            reviews.append(
                {
                    "trajectory_id": values["id"],
                    "reviewer": REVIEWER,
                    "rev": 1,
                    "status": status,
                    "outcome": OUTCOMES[number % 3],
                    "updated_utc": values["imported_utc"],
                    "state": {},
                }
            )
        if number % 3 == 0:
            jobs.append(
                {
                    "id": media_id,
                    "kind": "judge",
                    "trajectory_id": values["id"],
                    "arguments": {"judge": "screen_rules"},
                    "state": "queued",
                    "done": 0,
                    "message": "",
                    "created_utc": values["imported_utc"],
                    "updated_utc": values["imported_utc"],
                }
            )
    for table, rows in (
        (MediaRow, media),
        (TrajectoryRow, trajectories),
        (JudgementRow, judgements),
        (ReviewRow, reviews),
        (JobRow, jobs),
    ):
        session.execute(insert(table), rows)
