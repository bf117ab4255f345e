"""What holds for any row of ops: replay, undo, redo, repetition, staleness and privacy."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from people import Op, Person, content
from rows import add_judgement, add_trajectory
from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import OverrideRow, ReviewRow
from db.session import Database
from reviewer import ledger, ops
from reviewer.ledger import StaleWrite
from reviewer.ops import InvalidOp

steps = st.integers(0, 3)
texts = st.sampled_from(["", "a", "b"])
bodies = st.one_of(
    st.fixed_dictionaries({"type": st.just("set_outcome"), "value": st.sampled_from([None, *ops.OUTCOMES])}),
    st.fixed_dictionaries(
        {
            "type": st.just("put_span"),
            "span_id": st.sampled_from(["s", "t", "a/b"]),
            "start_s": st.integers(0, 5),
            "end_s": st.floats(6, 30),
            "reason": texts,
        }
    ),
    st.fixed_dictionaries({"type": st.just("delete_span"), "span_id": st.sampled_from(["s", "t", "judgement.0"])}),
    st.fixed_dictionaries(
        {
            "type": st.just("label_step"),
            "step_index": steps,
            "label": st.sampled_from([None, *ops.LABELS]),
            "reason": texts,
        }
    ),
    st.fixed_dictionaries({"type": st.just("set_first_error"), "step_index": st.none() | steps, "reason": texts}),
    st.fixed_dictionaries({"type": st.just("set_note"), "step_index": st.none() | steps, "text": texts}),
    st.fixed_dictionaries(
        {"type": st.just("set_better_action"), "step_index": steps, "action": st.sampled_from([None, "x", {"k": 1}])}
    ),
    st.just({"type": "accept", "judgement_id": "judgement"}),
    st.fixed_dictionaries({"type": st.just("undo"), "back": st.integers(1, 4)}),
    st.just({"type": "submit"}),
    st.just({"type": "reopen"}),
)
rows_of_ops = st.lists(st.tuples(st.sampled_from(["ann", "bob"]), bodies), max_size=25)
trajectory_numbers = itertools.count()


def check_invariants(session: Session, person: Person) -> None:
    review = person.review
    changes = session.scalars(
        select(OverrideRow.changes)
        .where(OverrideRow.trajectory_id == person.trajectory_id, OverrideRow.reviewer == person.name)
        .order_by(OverrideRow.rev)
    ).all()
    replayed = ledger.replay(changes)
    stored = session.get(ReviewRow, (person.trajectory_id, person.name))
    assert (ops.from_document(stored.state) if stored else ops.UNREVIEWED) == replayed
    assert review["rev"] == len(changes)
    assert review["spans"] == sorted(review["spans"], key=lambda span: span["start_s"])
    if mark := review["first_error"]:
        assert review["step_labels"][str(mark["step_index"])]["label"] == "-"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(row=rows_of_ops)
def test_any_row_of_ops_replays_undoes_and_repeats(database: Database, row: list[tuple[str, Op]]) -> None:
    number = next(trajectory_numbers)
    with database.write() as session:
        trajectory_id = add_trajectory(session, f"t{number}")
        judgement_id = add_judgement(
            session,
            trajectory_id,
            f"j{number}",
            outcome="incorrect",
            spans=[{"start_s": 2, "end_s": 3, "reason": "j"}],
            step_labels=[{"step_index": 1, "label": "-", "reason": "j"}, {"step_index": 2, "label": "+", "reason": ""}],
        )
        people = {name: Person(session, trajectory_id, name) for name in ("ann", "bob")}
        sent: dict[str, list[tuple[Op, ledger.Answer]]] = {"ann": [], "bob": []}
        for turn, (name, body) in enumerate(row):
            person, other = people[name], people["bob" if name == "ann" else "ann"]
            before, others_before = person.review, other.review
            op = {"op_id": f"{number}.{turn}", "base_rev": before["rev"], **body}
            if "back" in op:
                back = op.pop("back")
                op["undoes"] = sent[name][-back][0]["op_id"] if back <= len(sent[name]) else "none"
            if "judgement_id" in op:
                op["judgement_id"] = judgement_id
            with pytest.raises(StaleWrite):
                person.send(op | {"base_rev": before["rev"] + 1})
            try:
                answer = person.send(op)
            except InvalidOp:
                assert person.review == before
                continue
            sent[name].append((op, answer))
            after = person.review
            assert answer == (op["op_id"], before["rev"] + 1, after)
            assert person.send(op) == answer
            assert other.review == others_before
            check_invariants(session, person)

            undo = {"op_id": f"{number}.{turn}.u", "base_rev": after["rev"], "type": "undo", "undoes": op["op_id"]}
            undone = person.send(undo)
            begun = {"status": "in_progress"} if before["status"] == "unreviewed" else {}
            assert content(undone.review) == content(before) | begun
            redo = {"op_id": f"{number}.{turn}.r", "base_rev": undone.rev, "type": "undo", "undoes": undo["op_id"]}
            assert content(person.send(redo).review) == content(after)
        for name, person in people.items():
            for op, answer in sent[name]:
                assert person.send(op) == answer
            check_invariants(session, person)
        session.rollback()
