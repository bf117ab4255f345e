"""How far a judge agrees with what is known: proportions with exact intervals, and nothing hidden by abstaining.

Pure functions. ``incorrect`` is the positive class of outcomes and ``-`` that of step labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import binomtest

CONFIDENCE = 0.95

Range = tuple[float, float]


@dataclass(frozen=True)
class Truth:
    """What is known of one trajectory.

    ``wrong_steps`` are the steps known to be wrong, and the other ``known_steps`` those known not to be; None of the
    latter: all are known. ``ranges`` are the deviation ranges in seconds of the video clock, None where not known.
    """

    outcome: str | None
    wrong_steps: frozenset[int] = frozenset()
    known_steps: frozenset[int] | None = None
    first_error: int | None = None
    ranges: tuple[Range, ...] | None = None


@dataclass(frozen=True)
class Said:
    """What a judge said of one trajectory: its outcome, the steps it called ``-``, its ranges on the video clock."""

    outcome: str | None = None
    wrong_steps: frozenset[int] = frozenset()
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True)
class Proportion:
    """``hits`` of ``total``, with the exact (Clopper-Pearson) 95 % interval of the rate behind it."""

    hits: int
    total: int

    @property
    def value(self) -> float | None:
        """The share, None of nothing."""
        return self.hits / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound; 0 to 1 of nothing."""
        if not self.total:
            return 0.0, 1.0
        bounds = binomtest(self.hits, self.total).proportion_ci(confidence_level=CONFIDENCE, method="exact")
        return float(bounds.low), float(bounds.high)

    def to_json(self) -> dict[str, Any]:
        """``{hits, total, value, low, high}``."""
        low, high = self.interval
        return {
            "hits": self.hits,
            "total": self.total,
            "value": self.value,
            "low": round(low, 4),
            "high": round(high, 4),
        }

    def __str__(self) -> str:
        if self.value is None:
            return "0/0"
        low, high = self.interval
        return f"{self.hits}/{self.total} = {self.value:.2f} ({low:.2f}-{high:.2f})"


@dataclass(frozen=True)
class Agreement:
    """A judge held against the truth of some trajectories.

    ``unreadable`` trajectories, where the judge gave no answer, count in nothing else. Where the judge abstains it is
    not wrong, so precision leaves it out, but it has found nothing either, so recall counts it as missed.

    ``outcome_abstained``: trajectories of known outcome without one from the judge. ``first_error``: how often the
    first step it calls ``-`` is the first error, of the trajectories that have one. ``mean_iou``: see
    ``range_overlap``, averaged over the ``range_judged`` trajectories in which both have a range; ``range_missed`` have
    one only in truth and ``range_invented`` only from the judge.
    """

    trajectories: int
    unreadable: int
    outcome_judged: int
    outcome_abstained: int
    outcome_precision: Proportion
    outcome_recall: Proportion
    steps_judged: int
    steps_abstained: int
    step_precision: Proportion
    step_recall: Proportion
    first_error: Proportion
    first_error_abstained: int
    range_judged: int
    range_missed: int
    range_invented: int
    mean_iou: float | None

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {key: value.to_json() if isinstance(value, Proportion) else value for key, value in vars(self).items()}


@dataclass(frozen=True)
class Case:
    """One trajectory to compare: what is known, what the judge said (None when that is unreadable), its step count."""

    truth: Truth
    said: Said | None
    step_count: int


def agreement(cases: Iterable[Case]) -> Agreement:
    """Compare a judge with the truth of some trajectories."""
    cases = list(cases)
    read = [(case.truth, case.said, case.step_count) for case in cases if case.said is not None]
    outcomes = [(truth.outcome, said.outcome) for truth, said, _ in read if truth.outcome in ("correct", "incorrect")]
    steps = [pair for truth, said, count in read for pair in _step_pairs(truth, said, count)]
    firsts = [(truth.first_error, min(said.wrong_steps, default=None)) for truth, said, _ in read]
    firsts = [(known, found) for known, found in firsts if known is not None]
    ranges = [(truth.ranges, said.ranges) for truth, said, _ in read if truth.ranges is not None]
    overlaps = [range_overlap(known, found) for known, found in ranges if known and found]
    return Agreement(
        trajectories=len(cases),
        unreadable=len(cases) - len(read),
        outcome_judged=sum(said is not None for _, said in outcomes),
        outcome_abstained=sum(said is None for _, said in outcomes),
        outcome_precision=precision((known == "incorrect", said == "incorrect") for known, said in outcomes),
        outcome_recall=recall((known == "incorrect", said == "incorrect") for known, said in outcomes),
        steps_judged=sum(said for _, said in steps),
        steps_abstained=sum(not said for _, said in steps),
        step_precision=precision(steps),
        step_recall=recall(steps),
        first_error=Proportion(sum(known == found for known, found in firsts), len(firsts)),
        first_error_abstained=sum(found is None for _, found in firsts),
        range_judged=len(overlaps),
        range_missed=sum(bool(known) and not found for known, found in ranges),
        range_invented=sum(bool(found) and not known for known, found in ranges),
        mean_iou=sum(overlaps) / len(overlaps) if overlaps else None,
    )


def precision(pairs: Iterable[tuple[bool, bool]]) -> Proportion:
    """Of the (known, said) pairs said to be positive, those that are."""
    said = [known for known, said in pairs if said]
    return Proportion(sum(said), len(said))


def recall(pairs: Iterable[tuple[bool, bool]]) -> Proportion:
    """Of the (known, said) pairs known to be positive, those said to be."""
    known = [said for known, said in pairs if known]
    return Proportion(sum(known), len(known))


def range_overlap(known: Sequence[Range], found: Sequence[Range]) -> float:
    """Temporal intersection over union: the seconds in some range of both, of the seconds in some range of either.

    Overlapping ranges of one side count once. 0 where neither side covers any time.
    """
    known, found = merged(known), merged(found)
    shared_s = sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in known for b in found)
    union_s = _length_s(known) + _length_s(found) - shared_s
    return shared_s / union_s if union_s > 0 else 0.0


def merged(ranges: Sequence[Range]) -> list[Range]:
    """The same seconds as disjoint ranges in order; empty and backward ranges cover nothing."""
    joined: list[Range] = []
    for start_s, end_s in sorted(range for range in ranges if range[1] > range[0]):
        if joined and start_s <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end_s))
        else:
            joined.append((start_s, end_s))
    return joined


def _length_s(ranges: Iterable[Range]) -> float:
    return sum(end_s - start_s for start_s, end_s in ranges)


def _step_pairs(truth: Truth, said: Said, step_count: int) -> list[tuple[bool, bool]]:
    """(is wrong, is said to be wrong) of every step of which something is known."""
    known = range(step_count) if truth.known_steps is None else sorted(truth.known_steps)
    return [(i in truth.wrong_steps, i in said.wrong_steps) for i in known]


_ROWS = (
    ("Trajectories (unreadable)", lambda a: f"{a.trajectories} ({a.unreadable})"),
    ("Outcome: judged, abstained", lambda a: f"{a.outcome_judged}, {a.outcome_abstained}"),
    ("Outcome `incorrect`: precision", lambda a: str(a.outcome_precision)),
    ("Outcome `incorrect`: recall", lambda a: str(a.outcome_recall)),
    ("Steps: labelled `-`, abstained", lambda a: f"{a.steps_judged}, {a.steps_abstained}"),
    ("Step label `-`: precision", lambda a: str(a.step_precision)),
    ("Step label `-`: recall", lambda a: str(a.step_recall)),
    ("First error found", lambda a: str(a.first_error)),
    ("First error: abstained", lambda a: str(a.first_error_abstained)),
    ("Deviation range: judged, missed, invented", lambda a: f"{a.range_judged}, {a.range_missed}, {a.range_invented}"),
    ("Deviation range: mean temporal IoU where judged", lambda a: "-" if a.mean_iou is None else f"{a.mean_iou:.2f}"),
)


def table(columns: dict[str, Agreement]) -> str:
    """The figures as a Markdown table that reads well as plain text: one column per set of trajectories."""
    lines = [["", *columns], *([name, *map(cell, columns.values())] for name, cell in _ROWS)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(columns) + 1)]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    rule = ["-" * width for width in widths]
    return "\n".join(f"| {' | '.join(line)} |" for line in (padded[0], rule, *padded[1:]))
