"""The ledger of overrides: what each op does, what is refused, and that nothing is lost or doubled."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from people import Op, Person, content
from rows import DURATION_S, PICTURE_S, STEP_COUNT, add_judgement, add_trajectory

from db.session import Database
from reviewer import ledger
from reviewer.ledger import StaleWrite, UnknownTrajectory
from reviewer.ops import InvalidOp

# What each op does


def test_a_review_nobody_began_is_unreviewed_and_empty(ann: Person) -> None:
    assert ann.review == {
        "trajectory_id": ann.trajectory_id,
        "reviewer": "ann",
        "rev": 0,
        "status": "unreviewed",
        "outcome": None,
        "spans": [],
        "step_labels": {},
        "first_error": None,
        "first_error_label": None,
        "notes": {},
        "better_actions": {},
        "updated_utc": None,
    }


def test_every_op_is_seen_in_the_review(ann: Person) -> None:
    ann.do("set_outcome", value="incorrect", reason="the lamp is still on")
    ann.do("put_span", span_id="late", start_s=20, end_s=25.5, reason="wrong menu")
    ann.do("put_span", span_id="early", start_s=1.25, end_s=2)
    ann.do("label_step", step_index=2, label="+", reason="fine")
    ann.do("label_step", step_index=4, label="unsure")
    ann.do("set_first_error", step_index=7, reason="opens the wrong menu")
    ann.do("set_note", step_index=None, text="a slow run")
    ann.do("set_note", step_index=7, text="here")
    ann.do("set_better_action", step_index=7, action={"kind": "click", "points": []})
    answer = ann.send(ann.op("submit"))
    assert answer.review == ann.review
    assert content(ann.review) == {
        "trajectory_id": ann.trajectory_id,
        "reviewer": "ann",
        "status": "submitted",
        "outcome": "incorrect",
        "spans": [
            {"span_id": "early", "start_s": 1.25, "end_s": 2.0, "reason": ""},
            {"span_id": "late", "start_s": 20.0, "end_s": 25.5, "reason": "wrong menu"},
        ],
        "step_labels": {
            "2": {"label": "+", "reason": "fine"},
            "4": {"label": "unsure", "reason": ""},
            "7": {"label": "-", "reason": "opens the wrong menu"},
        },
        "first_error": {"step_index": 7, "reason": "opens the wrong menu"},
        "first_error_label": {"replaced": None},
        "notes": {"run": "a slow run", "7": "here"},
        "better_actions": {"7": {"kind": "click", "points": []}},
    }
    assert ann.review["rev"] == 10


def test_null_and_empty_values_take_back(ann: Person) -> None:
    ann.do("set_outcome", value="correct")
    begun = content(ann.review) | {"outcome": None}
    ann.do("label_step", step_index=1, label="-")
    ann.do("set_first_error", step_index=2)
    ann.do("set_note", step_index=1, text="x")
    ann.do("set_better_action", step_index=1, action="press Escape")
    ann.do("put_span", span_id="s", start_s=0, end_s=1)
    ann.do("set_outcome", value=None)
    ann.do("label_step", step_index=1, label=None)
    ann.do("set_first_error", step_index=None)
    ann.do("set_note", step_index=1, text="")
    ann.do("set_better_action", step_index=1, action=None)
    ann.do("delete_span", span_id="s")
    assert content(ann.review) == begun


def test_a_span_put_again_is_replaced(ann: Person) -> None:
    ann.do("put_span", span_id="s", start_s=0, end_s=1, reason="first")
    ann.do("put_span", span_id="s", start_s=2, end_s=DURATION_S + PICTURE_S / 3)
    assert [(s["start_s"], s["reason"]) for s in ann.review["spans"]] == [(2.0, "")]


def test_moving_the_first_error_takes_its_own_label_along(ann: Person) -> None:
    ann.do("label_step", step_index=3, label="+", reason="looked fine")
    ann.do("set_first_error", step_index=3)
    ann.do("set_first_error", step_index=5)
    assert ann.review["step_labels"] == {
        "3": {"label": "+", "reason": "looked fine"},
        "5": {"label": "-", "reason": ""},
    }
    ann.do("set_first_error", step_index=None)
    assert ann.review["step_labels"] == {"3": {"label": "+", "reason": "looked fine"}}


def test_moving_the_first_error_leaves_a_label_a_person_gave(ann: Person) -> None:
    ann.do("label_step", step_index=3, label="-", reason="before the mark")
    ann.do("set_first_error", step_index=3)
    ann.do("set_first_error", step_index=5)
    ann.do("label_step", step_index=5, label="-", reason="after the mark")
    ann.do("set_first_error", step_index=7)
    assert ann.review["step_labels"] == {
        "3": {"label": "-", "reason": "before the mark"},
        "5": {"label": "-", "reason": "after the mark"},
        "7": {"label": "-", "reason": ""},
    }


def test_marking_the_same_step_again_changes_the_reason(ann: Person) -> None:
    ann.do("set_first_error", step_index=3, reason="a")
    ann.do("set_first_error", step_index=3, reason="b")
    assert ann.review["first_error"] == {"step_index": 3, "reason": "b"}
    assert ann.review["step_labels"] == {"3": {"label": "-", "reason": "b"}}


@pytest.mark.parametrize("label", ["+", "unsure", None])
def test_a_step_that_is_no_longer_wrong_is_no_longer_the_first_error(ann: Person, label: str | None) -> None:
    ann.do("set_first_error", step_index=3)
    relabel = ann.do("label_step", step_index=3, label=label)
    assert ann.review["first_error"] is None
    ann.do("undo", undoes=relabel)
    assert ann.review["first_error"] == {"step_index": 3, "reason": ""}


def test_accepting_a_judgement_takes_what_it_says_and_leaves_the_rest(ann: Person) -> None:
    add_judgement(
        ann.session,
        ann.trajectory_id,
        "j1",
        outcome="incorrect",
        spans=[{"start_s": 4, "end_s": 6, "reason": "typo"}, {"start_s": 29, "end_s": 31, "reason": ""}],
        step_labels=[
            {"step_index": 2, "label": "-", "reason": "typo", "probability": 0.9},
            {"step_index": 3, "label": None, "reason": "", "probability": None},
        ],
    )
    ann.do("put_span", span_id="mine", start_s=10, end_s=11)
    ann.do("label_step", step_index=2, label="+")
    ann.do("label_step", step_index=3, label="+")
    accepted = ann.do("accept", judgement_id="j1", shown=["j1"])
    review = ann.review
    assert review["outcome"] == "incorrect"
    assert [(s["span_id"], s["start_s"], s["end_s"]) for s in review["spans"]] == [
        ("j1.0", 4.0, 6.0),
        ("mine", 10.0, 11.0),
        ("j1.1", 29.0, DURATION_S),
    ]
    assert review["step_labels"] == {"2": {"label": "-", "reason": "typo"}, "3": {"label": "+", "reason": ""}}
    assert (review["first_error"], review["first_error_label"]) == ({"step_index": 2, "reason": "typo"}, None)
    ann.do("undo", undoes=accepted)
    assert ann.review["first_error"] is None
    assert ann.review["outcome"] is None
    assert ann.review["step_labels"]["2"]["label"] == "+"
    assert [span["span_id"] for span in ann.review["spans"]] == ["mine"]


MINUSES = [
    {"step_index": 5, "label": "-", "reason": "late", "probability": None},
    {"step_index": 1, "label": "+", "reason": "", "probability": None},
    {"step_index": 3, "label": "-", "reason": "wrong menu", "probability": None},
]


def test_accepting_marks_the_first_minus_whose_label_outlives_the_mark(ann: Person) -> None:
    add_judgement(ann.session, ann.trajectory_id, "j1", step_labels=MINUSES)
    ann.do("accept", judgement_id="j1")
    assert ann.review["first_error"] == {"step_index": 3, "reason": "wrong menu"}
    ann.do("set_first_error", step_index=None)
    assert ann.review["step_labels"]["3"] == {"label": "-", "reason": "wrong menu"}


@pytest.mark.parametrize("mine", [1, 6])
def test_accepting_leaves_the_first_error_a_person_marked(ann: Person, mine: int) -> None:
    add_judgement(ann.session, ann.trajectory_id, "j1", step_labels=MINUSES)
    ann.do("set_first_error", step_index=mine, reason="mine")
    ann.do("accept", judgement_id="j1")
    # The judge calls step 1 right, and what is no error is no first error.
    assert ann.review["first_error"] == (None if mine == 1 else {"step_index": 6, "reason": "mine"})


def test_accepted_spans_are_converted_to_the_video_clock(ann: Person) -> None:
    plan = {
        "fps": 1.0,
        "frames": [{"obs_index": i, "at_s": at_s} for i, at_s in enumerate((0.0, 4.0, 8.0, 20.0))],
        "duration_s": DURATION_S,
    }
    add_judgement(
        ann.session, ann.trajectory_id, "j1", frame_plan=plan, spans=[{"start_s": 1, "end_s": 2.5, "reason": ""}]
    )
    ann.do("accept", judgement_id="j1")
    assert [(s["start_s"], s["end_s"]) for s in ann.review["spans"]] == [(4.0, 14.0)]


def test_a_judgement_that_failed_or_is_another_trajectorys_is_not_accepted(ann: Person) -> None:
    add_judgement(ann.session, ann.trajectory_id, "failed", error="out of memory")
    add_judgement(ann.session, add_trajectory(ann.session, "other"), "foreign")
    for judgement_id in ("failed", "foreign", "none"):
        with pytest.raises(InvalidOp, match="judgement_id"):
            ann.do("accept", judgement_id=judgement_id)


# Undo


def test_undoing_an_undo_is_redo(ann: Person) -> None:
    marked = ann.do("set_first_error", step_index=3, reason="r")
    done = content(ann.review)
    undone = ann.do("undo", undoes=marked)
    assert ann.review["first_error"] is None
    assert ann.review["step_labels"] == {}
    redone = ann.do("undo", undoes=undone)
    assert content(ann.review) == done
    ann.do("undo", undoes=redone)
    assert ann.review["first_error"] is None


def test_an_op_is_undone_once_until_it_is_redone(ann: Person) -> None:
    first = ann.do("set_outcome", value="correct")
    undone = ann.do("undo", undoes=first)
    with pytest.raises(InvalidOp, match="already undone"):
        ann.do("undo", undoes=first)
    redone = ann.do("undo", undoes=undone)
    with pytest.raises(InvalidOp, match="already undone"):
        ann.do("undo", undoes=undone)
    ann.do("undo", undoes=first)
    assert ann.review["outcome"] is None
    with pytest.raises(InvalidOp, match="outcome was changed again"):
        ann.do("undo", undoes=redone)


def test_undo_names_the_field_that_was_changed_again(ann: Person) -> None:
    first = ann.do("label_step", step_index=3, label="-")
    ann.do("set_note", step_index=3, text="unrelated")
    ann.do("label_step", step_index=3, label="+")
    before = ann.review
    with pytest.raises(InvalidOp, match="step_labels/3 was changed again since"):
        ann.do("undo", undoes=first)
    assert ann.review == before


def test_only_ones_own_ops_on_this_trajectory_are_undone(ann: Person) -> None:
    bob = Person(ann.session, ann.trajectory_id, "bob")
    elsewhere = Person(ann.session, add_trajectory(ann.session, "other"), "ann-elsewhere")
    for op_id in (bob.do("set_outcome", value="correct"), elsewhere.do("set_outcome", value="correct"), "none"):
        with pytest.raises(InvalidOp, match="undoes names no op of yours"):
            ann.do("undo", undoes=op_id)


def test_a_long_row_of_undo_and_redo_stays_undoable(ann: Person) -> None:
    last = ann.do("set_outcome", value="correct")
    for _ in range(120):
        last = ann.do("undo", undoes=last)
    assert ann.review["outcome"] == "correct"


# Submitted


def test_a_submitted_review_takes_nothing_until_it_is_reopened(ann: Person) -> None:
    labelled = ann.do("set_outcome", value="correct")
    ann.do("submit")
    for fields in (
        {"type": "set_outcome", "value": None},
        {"type": "undo", "undoes": labelled},
        {"type": "submit"},
    ):
        with pytest.raises(InvalidOp, match="submitted; reopen it first"):
            ann.do(**fields)
    ann.do("reopen")
    assert ann.review["status"] == "in_progress"
    ann.do("set_outcome", value=None)
    with pytest.raises(InvalidOp, match="not submitted"):
        ann.do("reopen")


def test_undoing_the_submit_reopens_and_redoing_it_submits_again(ann: Person) -> None:
    submitted = ann.do("submit")
    undone = ann.do("undo", undoes=submitted)
    assert ann.review["status"] == "in_progress"
    redone = ann.do("undo", undoes=undone)
    assert ann.review["status"] == "submitted"
    ann.do("undo", undoes=redone)
    assert ann.review["status"] == "in_progress"


# Refusals


STEP = f"one of the {STEP_COUNT} steps"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"type": "set_outcom", "value": None}, 'type must be one of .*; it is "set_outcom"'),
        ({"type": None}, "type must be one of"),
        ({"type": ["submit"]}, "type must be one of"),
        ({"type": "submit", "value": 1, "when": 2}, '"value", "when" is not a field of submit'),
        ({"type": "put_span", "span_id": "s", "start_s": 1}, "end_s is missing in put_span"),
        ({"type": "set_outcome", "value": "right"}, "value must be one of correct"),
        ({"type": "set_outcome", "value": ["correct"]}, "value must be one of correct"),
        ({"type": "set_outcome", "value": None, "reason": 3}, "reason must be text"),
        ({"type": "set_outcome", "value": None, "reason": "x" * 20_001}, "reason must have 0 to 20000"),
        ({"type": "set_outcome", "value": None, "reason": "a\0b"}, "reason holds a character"),
        ({"type": "set_outcome", "value": None, "reason": "\ud800"}, "reason holds a character"),
        ({"type": "label_step", "step_index": STEP_COUNT, "label": "+"}, STEP),
        ({"type": "label_step", "step_index": -1, "label": "+"}, STEP),
        ({"type": "label_step", "step_index": True, "label": "+"}, STEP),
        ({"type": "label_step", "step_index": 1.0, "label": "+"}, STEP),
        ({"type": "label_step", "step_index": None, "label": "+"}, STEP),
        ({"type": "label_step", "step_index": 1, "label": "after_error"}, "label must be one of"),
        ({"type": "set_first_error", "step_index": "1"}, STEP),
        ({"type": "set_note", "step_index": 1, "text": None}, "text must be text"),
        ({"type": "put_span", "span_id": "", "start_s": 1, "end_s": 2}, "span_id must have 1 to 80"),
        ({"type": "put_span", "span_id": "s", "start_s": 2, "end_s": 2}, "start_s must lie before end_s"),
        ({"type": "put_span", "span_id": "s", "start_s": 3, "end_s": 2}, "start_s must lie before end_s"),
        ({"type": "put_span", "span_id": "s", "start_s": -0.1, "end_s": 2}, "start_s must lie inside the video"),
        ({"type": "put_span", "span_id": "s", "start_s": 0, "end_s": 30.03}, "end_s must lie inside the video"),
        ({"type": "put_span", "span_id": "s", "start_s": 0, "end_s": float("nan")}, "end_s must lie inside"),
        ({"type": "put_span", "span_id": "s", "start_s": 0, "end_s": float("inf")}, "end_s must lie inside"),
        ({"type": "put_span", "span_id": "s", "start_s": 0, "end_s": 10**400}, "end_s must lie inside"),
        ({"type": "put_span", "span_id": "s", "start_s": False, "end_s": 1}, "start_s must be a number"),
        ({"type": "delete_span", "span_id": "none"}, "span_id names no span"),
        ({"type": "set_better_action", "step_index": 1, "action": 3}, "action must be an action"),
        ({"type": "set_better_action", "step_index": 1, "action": {"x": float("nan")}}, "action holds what JSON"),
        ({"type": "set_better_action", "step_index": 1, "action": {"x": "y" * 20_000}}, "action must have"),
        ({"type": "submit", "shown": "j1"}, "shown must be a list"),
        ({"type": "submit", "shown": [1]}, "shown must be text"),
        ({"type": "submit", "base_rev": -1}, "base_rev must be a whole number"),
        ({"type": "submit", "base_rev": 2**40}, "base_rev must be a whole number"),
        ({"type": "submit", "base_rev": None}, "base_rev must be a whole number"),
        ({"type": "submit", "op_id": ""}, "op_id must have 1 to 80"),
        ({"type": "submit", "op_id": 7}, "op_id must be text"),
        ({"type": "submit", "op_id": "x" * 81}, "op_id must have 1 to 80"),
    ],
)
def test_a_malformed_op_is_refused_naming_the_field(ann: Person, fields: Op, told: str) -> None:
    with pytest.raises(InvalidOp, match=told):
        ann.send({"op_id": "a", "base_rev": 0, "shown": []} | fields)
    assert ann.review["rev"] == 0
    assert ledger.history(ann.session, ann.trajectory_id) == []


def test_spans_of_a_video_of_unknown_length_have_no_end(ann: Person) -> None:
    person = Person(ann.session, add_trajectory(ann.session, "long", duration_s=None, media_id=None))
    person.do("put_span", span_id="s", start_s=0, end_s=86_400)
    assert person.review["spans"][0]["end_s"] == 86_400


def test_the_half_picture_past_the_end_comes_from_the_clock(ann: Person) -> None:
    ann.do("put_span", span_id="s", start_s=0, end_s=DURATION_S + 0.49 * PICTURE_S)
    with pytest.raises(InvalidOp, match="end_s"):
        ann.do("put_span", span_id="s", start_s=0, end_s=DURATION_S + 0.51 * PICTURE_S)


def test_an_unknown_trajectory_is_told(database: Database) -> None:
    with database.write() as session:
        for ask in (
            lambda: ledger.append(session, "none", "ann", {"op_id": "a", "base_rev": 0, "type": "submit"}),
            lambda: ledger.current_review(session, "none", "ann"),
            lambda: ledger.history(session, "none"),
            lambda: ledger.log(session, "none"),
            lambda: ledger.restore(session, "none", []),
        ):
            with pytest.raises(UnknownTrajectory, match="no trajectory none"):
                ask()


def test_odd_names_are_told_by_every_database(any_database: Database) -> None:
    with any_database.write() as session:
        trajectory_id = add_trajectory(session, "a")
        with pytest.raises(UnknownTrajectory):
            ledger.history(session, "a\0")
        for before in ("a\0", "", "\ud800"):
            with pytest.raises(InvalidOp, match="before"):
                ledger.history(session, trajectory_id, before=before)
        with pytest.raises(InvalidOp, match="reviewer"):
            ledger.append(session, trajectory_id, "a\0", {"op_id": "a", "base_rev": 0, "type": "submit"})


def test_a_stale_op_is_refused_with_what_it_missed(ann: Person) -> None:
    ann.do("set_outcome", value="correct")
    stale = ann.op("set_outcome", value="incorrect")
    ann.do("set_note", step_index=None, text="from another tab")
    ann.do("label_step", step_index=0, label="+")
    with pytest.raises(StaleWrite) as caught:
        ann.send(stale)
    assert caught.value.rev == 3
    assert caught.value.review == ann.review
    assert [op["type"] for op in caught.value.ops_since] == ["set_note", "label_step"]
    assert ann.send(stale | {"base_rev": 3}).rev == 4


def test_an_op_from_the_future_is_stale_too(ann: Person) -> None:
    with pytest.raises(StaleWrite) as caught:
        ann.send(ann.op("submit", base_rev=5))
    assert (caught.value.rev, caught.value.ops_since) == (0, [])


# Sent twice


def test_an_op_sent_again_is_answered_as_the_first_time(ann: Person) -> None:
    op = ann.op("set_outcome", value="correct", shown=["j1"])
    first = ann.send(op)
    ann.do("set_outcome", value="incorrect")
    ann.do("submit")
    assert ann.send(op) == first
    assert ann.send(op | {"base_rev": 2, "shown": []}) == first
    assert ann.review["rev"] == 3


@pytest.mark.parametrize("change", [{"value": "incorrect"}, {"reason": ""}, {"type": "submit"}, {"extra": 1}])
def test_an_op_id_used_for_another_body_is_refused(ann: Person, change: Op) -> None:
    op = ann.op("set_outcome", value="correct")
    ann.send(op)
    with pytest.raises(InvalidOp, match=r"op_id .* was already used"):
        ann.send(op | change)


def test_an_op_id_is_one_reviewers_on_one_trajectory(ann: Person) -> None:
    op = ann.op("set_outcome", value="correct")
    ann.send(op)
    with pytest.raises(InvalidOp, match="already used"):
        Person(ann.session, ann.trajectory_id, "bob").send(op)
    with pytest.raises(InvalidOp, match="already used"):
        Person(ann.session, add_trajectory(ann.session, "other")).send(op)


def test_threads_racing_on_one_review_lose_and_double_nothing(any_database: Database) -> None:
    with any_database.write() as session:
        trajectory_id = add_trajectory(session, "contested")
    barrier = threading.Barrier(6)

    def send_all(name: str) -> list[int]:
        barrier.wait()
        revs = []
        for number in range(12):
            op: Op = {
                "op_id": f"{name}-{number}",
                "base_rev": 0,
                "type": "set_note",
                "step_index": number,
                "text": name,
            }
            while True:
                try:
                    with any_database.write() as session:
                        answer = ledger.append(session, trajectory_id, "ann", op)
                except StaleWrite as stale:
                    op["base_rev"] = stale.rev
                else:
                    revs.append(answer.rev)
                    break
        return revs

    with ThreadPoolExecutor(6) as threads:
        revs = [rev for sent in threads.map(send_all, "abcdef") for rev in sent]
    assert sorted(revs) == list(range(1, 73))
    with any_database.read() as session:
        assert len(ledger.history(session, trajectory_id)) == 72


def test_threads_racing_with_one_op_id_are_answered_alike(any_database: Database) -> None:
    with any_database.write() as session:
        trajectory_id = add_trajectory(session, "contested")
    barrier = threading.Barrier(6)

    def send(_number: int) -> ledger.Answer:
        barrier.wait()
        with any_database.write() as session:
            op = {"op_id": "same", "base_rev": 0, "type": "set_outcome", "value": "correct"}
            return ledger.append(session, trajectory_id, "ann", op)

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(send, range(6)))
    assert answers == [answers[0]] * 6
    assert answers[0].rev == 1
