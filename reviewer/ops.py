"""The ops: what each one may hold, and what it changes in a review. Pure values, no storage.

A review's state is a flat mapping of addressed fields to values: ``status``, ``outcome``, ``first_error``,
``spans/<id>``, ``step_labels/<i>``, ``notes/run``, ``notes/<i>`` and ``better_actions/<i>``; an absent field is null.
An op turns one state into the next, and the difference of the two, ``[{"field", "from", "to"}]``, is what the ledger
keeps: replaying it gives the state, reversing it undoes the op.

The step of the first error is always labelled ``-``. Marking a step gives it that label; moving or clearing the mark
gives the step back the label it had, unless a person has labelled the step since. Labelling the step anything else
clears the mark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from typing import Any

from reviewer.errors import ReviewerError
from reviewer.frame_plan import FramePlan

State = Mapping[str, Any]
Change = dict[str, Any]

MAX_ID = 80
MAX_TEXT = 20_000
MAX_SHOWN = 1000
MAX_REV = 2**31 - 1
LONGEST_S = 1e9
UTC_LENGTH = 32
SURROGATE = re.compile("[\ud800-\udfff]")
OUTCOMES = ("correct", "incorrect", "unsure")
STATUSES = ("in_progress", "submitted")
LABELS = ("+", "-", "unsure")
UNREVIEWED: State = {"status": "unreviewed"}
ENVELOPE = frozenset({"op_id", "base_rev", "type", "shown"})
GROUPS = ("step_labels", "notes", "better_actions")


class InvalidOp(ReviewerError):
    """An op that can't be taken; the message names the field."""


@dataclass(frozen=True)
class Bounds:
    """What an op on one trajectory may name: steps ``0 .. step_count - 1``, and spans up to ``end_s`` where known."""

    step_count: int
    duration_s: float | None = None
    tolerance_s: float = 0.0

    @property
    def end_s(self) -> float:
        """The latest a span may end: the end of the video and half a picture, or ``LONGEST_S``."""
        return LONGEST_S if self.duration_s is None else self.duration_s + self.tolerance_s


Check = Callable[[str, Any, Bounds], None]


def checked_text(name: str, value: Any, longest: int, shortest: int = 0) -> str:
    """``value`` if it is text of ``shortest`` to ``longest`` characters that every database can hold.

    Raises InvalidOp naming ``name``.
    """
    if not isinstance(value, str):
        raise InvalidOp(f"{name} must be text.")
    if not shortest <= len(value) <= longest:
        raise InvalidOp(f"{name} must have {shortest} to {longest} characters; it has {len(value)}.")
    if "\0" in value or SURROGATE.search(value):
        raise InvalidOp(f"{name} holds a character that can't be stored (NUL or half of a surrogate pair).")
    return value


def check(op: Mapping[str, Any], bounds: Bounds) -> None:
    """Refuse an op that is malformed, whatever the review holds. Raises InvalidOp naming the field."""
    checks = CHECKS.get(op["type"]) if isinstance(op.get("type"), str) else None
    if checks is None:
        raise InvalidOp(f"type must be one of {', '.join(CHECKS)}; it is {_quoted(op.get('type'))}.")
    if unknown := sorted(op.keys() - checks.keys() - ENVELOPE):
        raise InvalidOp(f"{', '.join(map(_quoted, unknown))} is not a field of {op['type']}.")
    if missing := sorted((checks.keys() - {"reason"} | {"base_rev"}) - op.keys()):
        raise InvalidOp(f"{', '.join(missing)} is missing in {op['type']}.")
    _check_rev("base_rev", op["base_rev"])
    check_shown("shown", op.get("shown", []))
    for name, check_field in checks.items():
        if name in op:
            check_field(name, op[name], bounds)
    if op["type"] == "put_span" and op["start_s"] >= op["end_s"]:
        raise InvalidOp("start_s must lie before end_s.")


def check_shown(name: str, value: Any) -> None:
    """Refuse anything but a list of judgement ids. Raises InvalidOp."""
    if not isinstance(value, list) or len(value) > MAX_SHOWN:
        raise InvalidOp(f"{name} must be a list of at most {MAX_SHOWN} judgement ids.")
    for judgement_id in value:
        checked_text(name, judgement_id, MAX_ID, 1)


def check_entry(entry: Mapping[str, Any], bounds: Bounds) -> None:
    """Refuse an entry of an exported ledger that no op could have written. Raises InvalidOp naming the field."""
    checked_text("reviewer", entry["reviewer"], MAX_ID, 1)
    checked_text("reason", entry["reason"], MAX_TEXT)
    checked_text("created_utc", entry["created_utc"], UTC_LENGTH, UTC_LENGTH)
    check_shown("shown", entry["shown"])
    if entry["undoes"] is not None:
        checked_text("undoes", entry["undoes"], MAX_ID, 1)
    if entry["type"] not in tuple(CHECKS):
        raise InvalidOp(f"type must be one of {', '.join(CHECKS)}; it is {_quoted(entry['type'])}.")
    _check_rev("rev", entry["rev"])
    if not isinstance(entry["verified"], bool) or not isinstance(entry["body"], dict):
        raise InvalidOp("verified must be true or false, and body an object.")
    if not isinstance(entry["changes"], list):
        raise InvalidOp("changes must be a list.")
    for change in entry["changes"]:
        if not isinstance(change, dict) or change.keys() != {"field", "from", "to"}:
            raise InvalidOp("changes must hold objects of field, from and to.")
        for value in (change["from"], change["to"]):
            _check_value(change["field"], value, bounds)


def apply(state: State, op: Mapping[str, Any]) -> State:
    """The state after a checked op other than ``accept`` and ``undo``. Raises InvalidOp where the state forbids it."""
    return _consistent(EFFECTS[op["type"]](state, op))


def accept(state: State, judgement_id: str, judgement: Mapping[str, Any], bounds: Bounds) -> State:
    """The state after taking a judgement's outcome, spans and labels; what it does not speak of stays.

    The first step it labels ``-`` becomes the first error where none is marked yet, with that label as its own.
    ``judgement`` is the judgement's document. Its spans are converted to the video clock and named
    ``<judgement_id>.<k>``. Raises InvalidOp when the judgement is an error and says nothing.
    """
    if judgement.get("error"):
        raise InvalidOp("judgement_id names a judgement that failed; there is nothing to accept.")
    fields: dict[str, Any] = {}
    wrong: dict[int, str] = {}
    if judgement.get("outcome"):
        fields["outcome"] = judgement["outcome"]
    plan = FramePlan.from_json(judgement["frame_plan"]) if judgement.get("frame_plan") else None
    for number, span in enumerate(judgement.get("spans") or []):
        start_s, end_s = (plan.to_video_s(span[edge]) if plan else span[edge] for edge in ("start_s", "end_s"))
        start_s, end_s = max(0.0, float(start_s)), min(float(end_s), bounds.duration_s or math.inf)
        if start_s < end_s:
            reason = (span.get("reason") or "")[:MAX_TEXT]
            fields[f"spans/{judgement_id}.{number}"] = {"start_s": start_s, "end_s": end_s, "reason": reason}
    for label in judgement.get("step_labels") or []:
        if label.get("label") in LABELS and 0 <= label["step_index"] < bounds.step_count:
            reason = (label.get("reason") or "")[:MAX_TEXT]
            fields[f"step_labels/{label['step_index']}"] = {"label": label["label"], "reason": reason}
            if label["label"] == "-":
                wrong.setdefault(label["step_index"], reason)
    if wrong and "first_error" not in state:
        fields["first_error"] = {"step_index": min(wrong), "reason": wrong[min(wrong)]}
    return _consistent(_own_label(_with(state, fields), fields))


def reverse(state: State, changes: Iterable[Change]) -> State:
    """The state with an op's changes taken back. Raises InvalidOp when one of its fields was changed since."""
    changes = list(changes)
    for change in changes:
        if state.get(change["field"]) != change["to"]:
            raise InvalidOp(f"undoes names an op whose {change['field']} was changed again since.")
    return _consistent(_with(state, {change["field"]: change["from"] for change in changes}))


def difference(before: State, after: State) -> list[Change]:
    """What turns one state into the other, by field."""
    return [
        {"field": field, "from": before.get(field), "to": after.get(field)}
        for field in sorted(before.keys() | after.keys())
        if before.get(field) != after.get(field)
    ]


def advance(state: State, changes: Iterable[Change]) -> State:
    """The state after one op's changes; any op takes a review out of ``unreviewed``."""
    status = "in_progress" if state["status"] == "unreviewed" else state["status"]
    return _with(state, {"status": status} | {change["field"]: change["to"] for change in changes})


def replay(ledger: Iterable[Sequence[Change]]) -> State:
    """The state after the changes of each op in turn, oldest first; ``unreviewed`` after none."""
    return reduce(advance, ledger, UNREVIEWED)


def to_document(state: State) -> dict[str, Any]:
    """The state in the shape of a review; ``from_document`` reads it back."""
    document: dict[str, Any] = {
        "status": state["status"],
        "outcome": state.get("outcome"),
        "first_error": state.get("first_error"),
        "spans": [],
        **{group: {} for group in GROUPS},
    }
    for field in sorted(state):
        group, _, key = field.partition("/")
        if group == "spans":
            document["spans"].append({"span_id": key, **state[field]})
        elif key:
            document[group][key] = state[field]
    document["spans"].sort(key=lambda span: (span["start_s"], span["end_s"], span["span_id"]))
    return document


def from_document(document: Mapping[str, Any]) -> State:
    """The state that ``to_document`` wrote."""
    state = {name: document[name] for name in ("status", "outcome", "first_error") if document[name] is not None}
    for span in document["spans"]:
        state[f"spans/{span['span_id']}"] = {name: span[name] for name in ("start_s", "end_s", "reason")}
    for group in GROUPS:
        state |= {f"{group}/{key}": value for key, value in document[group].items()}
    return state


def _with(state: State, fields: State) -> dict[str, Any]:
    return {field: value for field, value in {**state, **fields}.items() if value is not None}


def _own_label(state: State, labelled: Iterable[str]) -> State:
    """A label given by a person, or taken from a judge, no longer goes away with the first-error mark."""
    mark = state.get("first_error")
    if mark is None or f"step_labels/{mark['step_index']}" not in labelled:
        return state
    return _with(state, {"first_error": {"step_index": mark["step_index"], "reason": mark["reason"]}})


def _consistent(state: State) -> State:
    mark = state.get("first_error")
    if mark is None or state.get(f"step_labels/{mark['step_index']}", {}).get("label") == "-":
        return state
    return _with(state, {"first_error": None})


def _set_outcome(state: State, op: Mapping[str, Any]) -> State:
    return _with(state, {"outcome": op["value"]})


def _put_span(state: State, op: Mapping[str, Any]) -> State:
    span = {"start_s": float(op["start_s"]), "end_s": float(op["end_s"]), "reason": op.get("reason", "")}
    return _with(state, {f"spans/{op['span_id']}": span})


def _delete_span(state: State, op: Mapping[str, Any]) -> State:
    field = f"spans/{op['span_id']}"
    if field not in state:
        raise InvalidOp(f"span_id names no span of this review: {_quoted(op['span_id'])}.")
    return _with(state, {field: None})


def _label_step(state: State, op: Mapping[str, Any]) -> State:
    field = f"step_labels/{op['step_index']}"
    label = None if op["label"] is None else {"label": op["label"], "reason": op.get("reason", "")}
    return _own_label(_with(state, {field: label}), [field])


def _set_first_error(state: State, op: Mapping[str, Any]) -> State:
    """``replaced`` in the mark is the label its step had before, kept while the step's ``-`` is the mark's own."""
    mark = state.get("first_error")
    if mark is not None and "replaced" in mark:
        state = _with(state, {f"step_labels/{mark['step_index']}": mark["replaced"]})
    if op["step_index"] is None:
        return _with(state, {"first_error": None})
    field, reason = f"step_labels/{op['step_index']}", op.get("reason", "")
    label = state.get(field)
    placed = {"step_index": op["step_index"], "reason": reason}
    if label is not None and label["label"] == "-":
        return _with(state, {"first_error": placed})
    return _with(state, {"first_error": {**placed, "replaced": label}, field: {"label": "-", "reason": reason}})


def _set_note(state: State, op: Mapping[str, Any]) -> State:
    key = "run" if op["step_index"] is None else op["step_index"]
    return _with(state, {f"notes/{key}": op["text"] or None})


def _set_better_action(state: State, op: Mapping[str, Any]) -> State:
    return _with(state, {f"better_actions/{op['step_index']}": op["action"]})


def _submit(state: State, _op: Mapping[str, Any]) -> State:
    return _with(state, {"status": "submitted"})


def _reopen(state: State, _op: Mapping[str, Any]) -> State:
    if state["status"] != "submitted":
        raise InvalidOp("type is reopen, but the review is not submitted.")
    return _with(state, {"status": "in_progress"})


def _quoted(value: Any) -> str:
    return json.dumps(value)[:MAX_ID]


def _check_rev(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_REV:
        raise InvalidOp(f"{name} must be a whole number from 0.")


def _check_id(name: str, value: Any, _bounds: Bounds) -> None:
    checked_text(name, value, MAX_ID, 1)


def _check_text(name: str, value: Any, _bounds: Bounds) -> None:
    checked_text(name, value, MAX_TEXT)


def _one_of(choices: Sequence[str]) -> Check:
    def check_choice(name: str, value: Any, _bounds: Bounds) -> None:
        if value is not None and value not in choices:
            raise InvalidOp(f"{name} must be one of {', '.join(choices)} or null; it is {_quoted(value)}.")

    return check_choice


def _check_seconds(name: str, value: Any, bounds: Bounds) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOp(f"{name} must be a number of seconds.")
    if not 0 <= value <= bounds.end_s:
        raise InvalidOp(f"{name} must lie inside the video, from 0 to {bounds.end_s:g} s.")


def _check_step(name: str, value: Any, bounds: Bounds) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < bounds.step_count:
        raise InvalidOp(f"{name} must be the index of one of the {bounds.step_count} steps, counted from 0.")


def _check_step_or_null(name: str, value: Any, bounds: Bounds) -> None:
    if value is not None:
        _check_step(name, value, bounds)


def _check_action(name: str, value: Any, _bounds: Bounds) -> None:
    if value is None:
        return
    if not isinstance(value, str | dict) or not value:
        raise InvalidOp(f"{name} must be an action as an object or as text, or null.")
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InvalidOp(
            f"{name} holds what JSON can't say: a number that is not finite, or too deep a nest."
        ) from error
    checked_text(name, written, MAX_TEXT)


def _check_value(field: Any, value: Any, bounds: Bounds) -> None:
    """Refuse a field no op addresses, and a value that field never has."""
    if not isinstance(field, str):
        raise InvalidOp(f"changes names no field of a review: {_quoted(field)}.")
    group, _, key = field.partition("/")
    if group in {"step_labels", "notes", "better_actions"} and key != "run":
        _check_step(field, int(key) if re.fullmatch("0|[1-9][0-9]{0,8}", key) else None, bounds)
    if field == "status":
        if value not in STATUSES:
            raise InvalidOp(f"status must be one of {', '.join(STATUSES)}.")
        return
    if value is None:
        return
    if group == "spans":
        _check_keys(field, value, {"start_s", "end_s", "reason"})
        _check_id(field, key, bounds)
        _check_text(field, value["reason"], bounds)
        _check_seconds(field, value["start_s"], bounds)
        _check_seconds(field, value["end_s"], bounds)
    elif group == "step_labels":
        _check_keys(field, value, {"label", "reason"})
        if value["label"] is None:
            raise InvalidOp(f"{field} must have a label, or be null.")
        _one_of(LABELS)(field, value["label"], bounds)
        _check_text(field, value["reason"], bounds)
    elif field == "first_error":
        _check_keys(field, value, {"step_index", "reason"}, {"replaced"})
        _check_step(field, value["step_index"], bounds)
        _check_text(field, value["reason"], bounds)
        _check_value(f"step_labels/{value['step_index']}", value.get("replaced"), bounds)
    elif group == "notes":
        _check_text(field, value, bounds)
    elif group == "better_actions":
        _check_action(field, value, bounds)
    elif field == "outcome":
        _one_of(OUTCOMES)(field, value, bounds)
    else:
        raise InvalidOp(f"changes names no field of a review: {_quoted(field)}.")


def _check_keys(field: str, value: Any, required: Set[str], optional: Set[str] = frozenset()) -> None:
    if not isinstance(value, dict) or not required <= value.keys() <= required | optional:
        raise InvalidOp(f"{field} must be an object of {', '.join(sorted(required))}.")


CHECKS: Mapping[str, Mapping[str, Check]] = {
    "set_outcome": {"value": _one_of(OUTCOMES), "reason": _check_text},
    "put_span": {"span_id": _check_id, "start_s": _check_seconds, "end_s": _check_seconds, "reason": _check_text},
    "delete_span": {"span_id": _check_id},
    "label_step": {"step_index": _check_step, "label": _one_of(LABELS), "reason": _check_text},
    "set_first_error": {"step_index": _check_step_or_null, "reason": _check_text},
    "set_note": {"step_index": _check_step_or_null, "text": _check_text},
    "set_better_action": {"step_index": _check_step, "action": _check_action},
    "accept": {"judgement_id": _check_id},
    "undo": {"undoes": _check_id},
    "submit": {},
    "reopen": {},
}

EFFECTS: Mapping[str, Callable[[State, Mapping[str, Any]], State]] = {
    "set_outcome": _set_outcome,
    "put_span": _put_span,
    "delete_span": _delete_span,
    "label_step": _label_step,
    "set_first_error": _set_first_error,
    "set_note": _set_note,
    "set_better_action": _set_better_action,
    "submit": _submit,
    "reopen": _reopen,
}
