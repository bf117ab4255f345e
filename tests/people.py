"""One reviewer at work, for tests of the ledger."""

from __future__ import annotations

import itertools
from typing import Any

from sqlalchemy.orm import Session

from reviewer import ledger

Op = dict[str, Any]


class Person:
    """One reviewer on one trajectory, who always knows the newest rev."""

    def __init__(self, session: Session, trajectory_id: str, name: str = "ann") -> None:
        self.session, self.trajectory_id, self.name = session, trajectory_id, name
        self._numbers = itertools.count(1)

    @property
    def review(self) -> dict[str, Any]:
        return ledger.current_review(self.session, self.trajectory_id, self.name)

    def op(self, type: str, **fields: Any) -> Op:
        op_id = f"{self.name}-{next(self._numbers)}"
        return {"op_id": op_id, "base_rev": self.review["rev"], "type": type, "shown": []} | fields

    def send(self, op: Op) -> ledger.Answer:
        return ledger.append(self.session, self.trajectory_id, self.name, op)

    def do(self, type: str, **fields: Any) -> str:
        return self.send(self.op(type, **fields)).op_id


def content(review: dict[str, Any]) -> dict[str, Any]:
    """The review without what every op changes."""
    return {name: value for name, value in review.items() if name not in {"rev", "updated_utc"}}
