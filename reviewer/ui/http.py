"""What every route shares: who asks, from where, with which body, and how an error is told."""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any, NoReturn
from urllib.parse import unquote

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DataError

from db.session import DatabaseError
from reviewer.alignment import InvalidCorrection
from reviewer.errors import ReviewerError
from reviewer.ledger import StaleWrite, UnknownTrajectory
from reviewer.ops import MAX_ID, InvalidOp

MAX_BODY_BYTES = 1_000_000
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
STATUS_OF_ERROR: dict[type[ReviewerError], int] = {
    UnknownTrajectory: 404,
    StaleWrite: 409,
    InvalidOp: 422,
    InvalidCorrection: 422,
    DatabaseError: 503,
}


def reviewer_of(request: Request) -> str:
    """The name in the header ``X-Reviewer``, percent-decoded and in Unicode's composed form. 400 without one."""
    header = request.headers.get("x-reviewer", "")
    try:
        name = unicodedata.normalize("NFC", unquote(header.encode("ascii").decode(), errors="strict")).strip()
    except UnicodeError as error:
        raise HTTPException(400, "The header X-Reviewer must be percent-encoded UTF-8.") from error
    if not name:
        raise HTTPException(400, "Give your name in the header X-Reviewer, so that your review is kept as yours.")
    if len(name) > MAX_ID or not name.isprintable():
        raise HTTPException(400, f"The name in X-Reviewer must be at most {MAX_ID} printable characters.")
    return name


def refuse_foreign_origin(request: Request) -> None:
    """Refuse with 403 a request that a page of another site makes the browser send.

    A page can't make a browser send X-Forwarded-Host without asking first, so a proxy's word for the host counts too.
    """
    origin = request.headers.get("origin")
    if origin is None:
        return
    scheme, _, netloc = origin.lower().partition("://")
    port = DEFAULT_PORTS.get(scheme, "")
    hosts = (request.headers.get(name, "").lower() for name in ("host", "x-forwarded-host"))
    if not netloc or netloc.removesuffix(port) not in {host.removesuffix(port) for host in hosts}:
        raise HTTPException(403, f"Requests from {origin} are refused; open the reviewer's own page.")


async def json_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object. 415 when it is not declared as JSON, 413 over 1 MB, 422 when it is not an object."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "The body must be JSON with the header Content-Type: application/json.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413, f"The body is over {MAX_BODY_BYTES:,} bytes; send less at once.")
    try:
        document = json.loads(body.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise HTTPException(422, f"The body is not JSON in UTF-8: {error}.") from error
    if not isinstance(document, dict):
        raise HTTPException(422, "The body must be a JSON object.")
    return document


Reviewer = Annotated[str, Depends(reviewer_of)]
JsonObject = Annotated[dict[str, Any], Depends(json_object)]
OWN_ORIGIN = Depends(refuse_foreign_origin)


def tell_errors(app: FastAPI) -> None:
    """Make ``app`` answer every error meant for a person as ``{"detail": message}`` with a fitting status."""
    app.add_exception_handler(ReviewerError, _tell)
    app.add_exception_handler(RequestValidationError, _tell_validation)
    app.add_exception_handler(DataError, _tell_unstorable)


def _tell(_request: Request, error: Exception) -> JSONResponse:
    status = next((code for kind, code in STATUS_OF_ERROR.items() if isinstance(error, kind)), 400)
    content: dict[str, Any] = {"detail": str(error)}
    if isinstance(error, StaleWrite):
        content |= {"rev": error.rev, "review": error.review, "ops_since": error.ops_since}
    return JSONResponse(content, status)


def _tell_validation(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    told = (f"{'.'.join(str(part) for part in found['loc'][1:])}: {found['msg']}" for found in error.errors())
    return JSONResponse({"detail": "; ".join(told)}, 422)


def _tell_unstorable(_request: Request, _error: Exception) -> JSONResponse:
    return JSONResponse({"detail": "A value holds what the database can't, such as the character NUL."}, 422)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
