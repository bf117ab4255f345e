"""A server of the review routes alone, to be killed and timed.

Run it as ``PYTHONPATH=tests python -m durability_server URL PORT``.
"""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI

from db.session import Database
from reviewer.ui import review_routes
from reviewer.ui.http import tell_errors


def review_app(database: Database) -> FastAPI:
    """The review routes as an application of their own."""
    app = FastAPI()
    tell_errors(app)
    app.include_router(review_routes.router(database))
    return app


def serve(url: str, port: int) -> None:
    """Serve the review of the database at ``url`` until killed."""
    uvicorn.run(review_app(Database.open(url)), port=port, log_level="error")


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
