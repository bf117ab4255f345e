from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from reviewer.agreement import (
    Agreement,
    Case,
    Proportion,
    Said,
    Truth,
    agreement,
    merged,
    precision,
    range_overlap,
    recall,
    table,
)

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()))
TENTHS = st.integers(0, 60)
RANGES = st.lists(st.tuples(TENTHS, TENTHS), max_size=5)


def case(truth: Truth, said: Said | None, steps: int = 5) -> Case:
    return Case(truth, said, steps)


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (5, 10, 0.1871, 0.8129), (1, 1, 0.025, 1.0)],
)
def test_interval_is_the_published_exact_one(hits: int, total: int, low: float, high: float) -> None:
    assert Proportion(hits, total).interval == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 200), st.integers(0, 200))
@settings(max_examples=30)
def test_interval_bounds_are_quantiles_of_the_beta_distribution(total: int, hits: int) -> None:
    hits = min(hits, total)
    low = beta.ppf(0.025, hits, total - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, total - hits) if hits < total else 1.0
    assert Proportion(hits, total).interval == pytest.approx((low, high), abs=1e-6)


def test_a_proportion_of_nothing_has_no_value_and_the_widest_interval() -> None:
    assert Proportion(0, 0).to_json() == {"hits": 0, "total": 0, "value": None, "low": 0.0, "high": 1.0}
    assert str(Proportion(0, 0)) == "0/0"


@given(PAIRS)
def test_precision_and_recall_count_what_a_loop_counts(pairs: list[tuple[bool, bool]]) -> None:
    both = said_total = known_total = 0
    for known, said in pairs:
        both += known and said
        said_total += said
        known_total += known
    assert precision(pairs) == Proportion(both, said_total)
    assert recall(pairs) == Proportion(both, known_total)


@given(RANGES, RANGES)
def test_overlap_is_the_share_of_tenths_of_a_second_in_both(
    known: list[tuple[int, int]], found: list[tuple[int, int]]
) -> None:
    in_known = {t for start, end in known for t in range(start, end)}
    in_found = {t for start, end in found for t in range(start, end)}
    either = in_known | in_found
    expected = len(in_known & in_found) / len(either) if either else 0.0
    known_s = [(start / 10, end / 10) for start, end in known]
    found_s = [(start / 10, end / 10) for start, end in found]
    assert range_overlap(known_s, found_s) == pytest.approx(expected)
    assert range_overlap(found_s, known_s) == pytest.approx(expected)


@given(RANGES)
def test_merged_ranges_are_in_order_and_apart(ranges: list[tuple[int, int]]) -> None:
    joined = merged(ranges)
    assert all(start < end for start, end in joined)
    assert all(before[1] < after[0] for before, after in pairwise(joined))


def test_backward_and_broken_ranges_cover_nothing() -> None:
    assert merged([(3, 1), (math.nan, 2), (2, 2)]) == []
    assert range_overlap([(0, 4)], [(3, 1)]) == 0


def test_a_judge_that_is_right_everywhere_scores_full_marks() -> None:
    truth = Truth("incorrect", frozenset({2, 3}), first_error=2, ranges=((4.0, 8.0),))
    figures = agreement([case(truth, Said("incorrect", frozenset({2, 3}), ((4.0, 8.0),)))])
    assert figures.outcome_precision == figures.outcome_recall == Proportion(1, 1)
    assert figures.step_precision == figures.step_recall == Proportion(2, 2)
    assert figures.first_error == Proportion(1, 1)
    assert figures.mean_iou == 1.0


def test_abstaining_costs_recall_but_not_precision() -> None:
    wrong = Truth("incorrect", frozenset({1}), first_error=1, ranges=((1.0, 2.0),))
    figures = agreement([case(wrong, Said("incorrect", frozenset({1}), ((1.0, 3.0),))), case(wrong, Said())])
    assert (figures.outcome_judged, figures.outcome_abstained) == (1, 1)
    assert (figures.outcome_precision, figures.outcome_recall) == (Proportion(1, 1), Proportion(1, 2))
    assert (figures.step_precision, figures.step_recall) == (Proportion(1, 1), Proportion(1, 2))
    assert (figures.steps_judged, figures.steps_abstained) == (1, 9)
    assert (figures.first_error, figures.first_error_abstained) == (Proportion(1, 2), 1)
    assert (figures.range_judged, figures.range_missed, figures.mean_iou) == (1, 1, 0.5)


def test_false_alarms_on_correct_runs_cost_precision() -> None:
    right = Truth("correct", ranges=())
    figures = agreement([case(right, Said("incorrect", frozenset({0}), ((0.0, 1.0),)))])
    assert figures.outcome_precision == Proportion(0, 1)
    assert figures.outcome_recall == Proportion(0, 0)
    assert figures.step_precision == Proportion(0, 1)
    assert (figures.range_judged, figures.range_invented, figures.mean_iou) == (0, 1, None)


def test_an_unreadable_judgement_counts_in_nothing_else() -> None:
    truth = Truth("incorrect", frozenset({1}), first_error=1, ranges=((1.0, 2.0),))
    figures = agreement([case(truth, None)])
    assert (figures.trajectories, figures.unreadable) == (1, 1)
    assert figures.outcome_judged + figures.outcome_abstained + figures.steps_judged + figures.steps_abstained == 0
    assert figures.outcome_recall == figures.step_recall == figures.first_error == Proportion(0, 0)


def test_steps_of_which_nothing_is_known_are_left_out() -> None:
    truth = Truth(None, frozenset({1}), known_steps=frozenset({0, 1}))
    figures = agreement([case(truth, Said(None, frozenset({1, 4})))])
    assert figures.step_precision == Proportion(1, 1)
    assert (figures.steps_judged, figures.steps_abstained) == (1, 1)
    assert (figures.outcome_judged, figures.outcome_abstained) == (0, 0)


def test_saying_correct_is_no_find_and_no_false_alarm() -> None:
    figures = agreement([case(Truth("incorrect"), Said("correct")), case(Truth("correct"), Said("correct"))])
    assert figures.outcome_judged == 2
    assert figures.outcome_precision == Proportion(0, 0)
    assert figures.outcome_recall == Proportion(0, 1)


def test_nothing_to_compare_gives_empty_figures() -> None:
    figures = agreement([])
    assert figures.trajectories == 0
    assert figures.mean_iou is None


def test_table_has_a_column_per_set_and_lines_of_one_width() -> None:
    figures = agreement([case(Truth("incorrect"), Said("incorrect"))])
    lines = table({"one": figures, "two": agreement([])}).splitlines()
    assert lines[0].split("|")[2:4] == [f" {'one':<22} ", f" {'two':<7} "]
    assert len({len(line) for line in lines}) == 1
    assert any("1/1 = 1.00 (0.03-1.00)" in line and "0/0" in line for line in lines)


def test_json_names_every_figure() -> None:
    figures = agreement([case(Truth("incorrect"), Said("incorrect"))])
    document = figures.to_json()
    assert document.keys() == set(Agreement.__dataclass_fields__)
    assert document["outcome_recall"] == {"hits": 1, "total": 1, "value": 1.0, "low": 0.025, "high": 1.0}
