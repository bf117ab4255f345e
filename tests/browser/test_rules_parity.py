"""The browser shows an op's effect at once; it must be the effect that the ledger stores."""

from __future__ import annotations

from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import BrowserContext
from rows import add_judgement, add_trajectory

from db.session import Database
from reviewer import ledger

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "static"
ROUNDS = 60
OPS = 25

APPLY = """async ([base, rounds]) => {
  const { applyOp, changesOf, emptyReview } = await import(base + "review.js");
  return rounds.map(({ id, reviewer, judgements, ops }) => {
    let review = emptyReview(id, reviewer);
    const changes = new Map();
    return ops.map((op) => {
      const known = { judgements, changesOf: (opId) => changes.get(opId) };
      changes.set(op.op_id, changesOf(op, review, known));
      review = applyOp(review, op, known);
      const { rev, updated_utc, ...shown } = review;
      return { shown, changes: changes.get(op.op_id) };
    });
  });
}"""


class Quiet(SimpleHTTPRequestHandler):
    """A file server for the modules, without a log."""

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture
def modules() -> Any:
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Quiet(*args, directory=str(STATIC)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


def random_op(random: Random, op_id: str, judgement_id: str, taken: list[str]) -> dict[str, Any]:
    step = random.randrange(4)
    reason = random.choice(["", "wrong row"])
    start_s = random.randrange(10)
    return random.choice(
        [
            {"type": "set_outcome", "value": random.choice(["correct", "incorrect", "unsure", None])},
            {"type": "put_span", "span_id": f"s{step}", "start_s": start_s, "end_s": start_s + 1.5, "reason": reason},
            {"type": "delete_span", "span_id": f"s{step}"},
            {
                "type": "label_step",
                "step_index": step,
                "label": random.choice(["+", "-", "unsure", None]),
                "reason": reason,
            },
            {"type": "set_first_error", "step_index": random.choice([step, None]), "reason": reason},
            {"type": "set_note", "step_index": random.choice([step, None]), "text": random.choice(["", "a note"])},
            {"type": "accept", "judgement_id": judgement_id},
            {"type": "submit"},
            {"type": "reopen"},
            *([{"type": "undo", "undoes": random.choice(taken[-3:])}] * 3 if taken else []),
        ]
    ) | {"op_id": op_id}


def test_the_browser_and_the_ledger_agree_on_every_op(
    database: Database, modules: str, launch: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    random = Random(7)
    rounds: list[dict[str, Any]] = []
    expected: list[list[dict[str, Any]]] = []
    for number in range(ROUNDS):
        with database.write() as session:
            trajectory_id = add_trajectory(session, f"{number:016x}")
            document = {
                "outcome": "incorrect",
                "spans": [{"start_s": 1.0, "end_s": 2.5, "reason": "loop"}],
                "step_labels": [{"step_index": 2, "label": "-", "reason": "no effect", "probability": None}],
            }
            judgement_id = add_judgement(session, trajectory_id, f"j{number}", **document)
        ops: list[dict[str, Any]] = []
        answers: list[dict[str, Any]] = []
        rev = 0
        for k in range(OPS):
            op = random_op(random, f"{number}-{k}", judgement_id, [op["op_id"] for op in ops])
            try:
                with database.write() as session:
                    answer = ledger.append(session, trajectory_id, "tester", {**op, "base_rev": rev})
            except ledger.InvalidOp:
                continue
            rev = answer.rev
            ops.append(op)
            with database.read() as session:
                [entry] = ledger.history(session, trajectory_id, limit=1)
            shown = {key: value for key, value in answer.review.items() if key not in ("rev", "updated_utc")}
            answers.append({"shown": shown, "changes": entry["changes"]})
        rounds.append(
            {"id": trajectory_id, "reviewer": "tester", "judgements": [{"id": judgement_id, **document}], "ops": ops}
        )
        expected.append(answers)

    page = launch(tmp_path / "profile").new_page()
    page.goto(modules)
    got = page.evaluate(APPLY, [modules, rounds])

    assert sum(len(answers) for answers in expected) > ROUNDS * OPS / 2
    for ops_round, got_answers, wanted in zip(rounds, got, expected, strict=True):
        for op, one, other in zip(ops_round["ops"], got_answers, wanted, strict=True):
            assert one == other, op
