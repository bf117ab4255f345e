"""The routes of a review: send one op, read the history."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from db.session import Database
from reviewer import ledger
from reviewer.ui.http import OWN_ORIGIN, JsonObject, Reviewer

MAX_HISTORY = 1000


def router(database: Database) -> APIRouter:
    """``POST /api/trajectories/{id}/ops`` and ``GET /api/trajectories/{id}/history`` over ``database``."""
    routes = APIRouter(prefix="/api/trajectories/{trajectory_id}")

    @routes.post("/ops", dependencies=[OWN_ORIGIN])
    def send_op(trajectory_id: str, reviewer: Reviewer, op: JsonObject) -> JSONResponse:
        with database.write() as session:
            answer = ledger.append(session, trajectory_id, reviewer, op)
        return JSONResponse(answer._asdict())

    @routes.get("/history")
    def read_history(
        trajectory_id: str,
        before: str | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_HISTORY)] = ledger.HISTORY_LIMIT,
    ) -> JSONResponse:
        with database.read() as session:
            ops: list[dict[str, Any]] = ledger.history(session, trajectory_id, before=before, limit=limit)
        return JSONResponse({"ops": ops})

    return routes
