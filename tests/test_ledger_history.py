"""The history of a trajectory, and putting an exported ledger back."""

from __future__ import annotations

from typing import Any

import pytest
from people import Op, Person
from rows import add_judgement, add_trajectory

from db.session import Database
from reviewer import ledger
from reviewer.ops import InvalidOp


def test_history_is_newest_first_in_pages_and_by_reviewer(ann: Person) -> None:
    bob = Person(ann.session, ann.trajectory_id, "bob")
    sent = [person.do("set_note", step_index=1, text=person.name) for _ in range(5) for person in (ann, bob)]
    entries = ledger.history(ann.session, ann.trajectory_id)
    assert [entry["op_id"] for entry in entries] == sent[::-1]
    first = ledger.history(ann.session, ann.trajectory_id, limit=4)
    rest = ledger.history(ann.session, ann.trajectory_id, before=first[-1]["op_id"])
    assert first + rest == entries
    assert [e["rev"] for e in ledger.history(ann.session, ann.trajectory_id, reviewer="bob")] == [5, 4, 3, 2, 1]
    with pytest.raises(InvalidOp, match="before names no op"):
        ledger.history(ann.session, ann.trajectory_id, before="none")


def test_history_tells_what_changed_why_and_what_was_on_screen(ann: Person) -> None:
    ledger.append(
        ann.session,
        ann.trajectory_id,
        "ann",
        ann.op("set_outcome", value="correct", reason="it worked", shown=["j1"]),
        verified=True,
        now_utc="2026-01-02T03:04:05.000006+00:00",
    )
    assert ledger.history(ann.session, ann.trajectory_id) == [
        {
            "op_id": "ann-1",
            "reviewer": "ann",
            "verified": True,
            "rev": 1,
            "type": "set_outcome",
            "changes": [{"field": "outcome", "from": None, "to": "correct"}],
            "reason": "it worked",
            "shown": ["j1"],
            "undoes": None,
            "created_utc": "2026-01-02T03:04:05.000006+00:00",
        }
    ]


def written_ledger(ann: Person) -> list[dict[str, Any]]:
    bob = Person(ann.session, ann.trajectory_id, "bob")
    add_judgement(ann.session, ann.trajectory_id, "j1", spans=[{"start_s": 1, "end_s": 2, "reason": "r"}])
    marked = ann.do("set_first_error", step_index=3, reason="r")
    bob.do("set_note", step_index=None, text="✓ naïve 🙂")
    ann.do("accept", judgement_id="j1", shown=["j1"])
    ann.do("undo", undoes=marked)
    bob.do("set_better_action", step_index=2, action={"kind": "key", "keys": ["Escape"]})
    ann.do("submit")
    return ledger.log(ann.session, ann.trajectory_id)


def test_a_restored_ledger_is_the_same_ledger(ann: Person, any_database: Database) -> None:
    entries = written_ledger(ann)
    with any_database.write() as session:
        add_trajectory(session, "restored")
        assert ledger.restore(session, "restored", entries) == len(entries)
    with any_database.write() as session:
        assert ledger.restore(session, "restored", entries) == 0
    with any_database.read() as session:
        assert sorted(ledger.log(session, "restored"), key=lambda entry: entry["created_utc"]) == entries
        for name in ("ann", "bob"):
            restored = ledger.current_review(session, "restored", name)
            original = ledger.current_review(ann.session, ann.trajectory_id, name)
            assert restored | {"trajectory_id": ann.trajectory_id} == original


def test_work_goes_on_after_a_restore(ann: Person, any_database: Database) -> None:
    entries = written_ledger(ann)
    with any_database.write() as session:
        add_trajectory(session, "restored")
        ledger.restore(session, "restored", entries[:3])
        assert ledger.restore(session, "restored", entries) == len(entries) - 3
        answer = ledger.append(session, "restored", "ann", {"op_id": "new", "base_rev": 4, "type": "reopen"})
        again = {"op_id": entries[0]["op_id"], "base_rev": 0, **entries[0]["body"]}
        assert ledger.append(session, "restored", "ann", again).rev == 1
    assert answer.rev == 5


def test_a_restored_name_is_verified_only_in_a_trusted_log(ann: Person) -> None:
    entries = [entry | {"verified": True} for entry in written_ledger(ann)]
    for trusted in (False, True):
        trajectory_id = add_trajectory(ann.session, f"restored-{trusted}")
        own = [entry | {"op_id": f"{trusted}-{entry['op_id']}"} for entry in entries]
        ledger.restore(ann.session, trajectory_id, own, trusted=trusted)
        assert {entry["verified"] for entry in ledger.log(ann.session, trajectory_id)} == {trusted}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rev": 3}, "does not continue"),
        ({"rev": 0}, "does not continue"),
        ({"rev": "1"}, "rev must be a whole number"),
        ({"reviewer": ""}, "reviewer must have"),
        ({"type": "erase"}, "type must be one of"),
        ({"created_utc": "yesterday"}, "created_utc must have"),
        ({"changes": {}}, "changes must be a list"),
        ({"changes": [{"field": "outcome"}]}, "changes must hold"),
        ({"changes": [{"field": "rev", "from": None, "to": 9}]}, "changes names no field"),
        ({"changes": [{"field": "outcome", "from": "correct", "to": None}]}, "does not continue"),
        ({"changes": [{"field": "outcome", "from": None, "to": "great"}]}, "outcome must be one of"),
        ({"changes": [{"field": "spans/s", "from": None, "to": "x"}]}, "spans/s must be an object"),
        ({"changes": [{"field": "step_labels/99", "from": None, "to": None}]}, "step_labels/99 must be the index"),
        ({"changes": [{"field": "step_labels/01", "from": None, "to": None}]}, "step_labels/01 must be the index"),
        ({"changes": [{"field": "first_error", "from": None, "to": {"step_index": 3}}]}, "first_error must be an"),
        ({"changes": [{"field": "status", "from": "in_progress", "to": None}]}, "status must be one of"),
        ({"changes": [{"field": "step_labels/1", "from": None, "to": {"label": None, "reason": ""}}]}, "must have a"),
        ({"changes": [{"field": ["x"], "from": None, "to": 1}]}, "changes names no field"),
    ],
)
def test_a_log_that_was_tampered_with_restores_nothing(ann: Person, database: Database, change: Op, told: str) -> None:
    entry = written_ledger(ann)[0] | {"op_id": "tampered"} | change
    trajectory_id = add_trajectory(ann.session, "restored")
    with pytest.raises(InvalidOp, match=f"op tampered: .*{told}"):
        ledger.restore(ann.session, trajectory_id, [entry])
    assert ledger.log(ann.session, trajectory_id) == []


def test_a_log_that_contradicts_this_ledger_is_refused(ann: Person) -> None:
    entries = written_ledger(ann)
    other = entries[0] | {"reason": "", "body": {"type": "set_first_error", "step_index": 4}}
    with pytest.raises(InvalidOp, match="holds another op under that op_id"):
        ledger.restore(ann.session, ann.trajectory_id, [other])
    with pytest.raises(InvalidOp, match="does not continue"):
        ledger.restore(ann.session, ann.trajectory_id, [entries[0] | {"op_id": "diverged"}])
