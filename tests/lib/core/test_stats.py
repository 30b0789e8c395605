import subprocess
import sys
from itertools import combinations, product
from math import isnan, nan
from operator import mul
from random import Random

import numpy as np
import pytest

from lib.core.stats import (
    effective_n,
    holm,
    mean_interval,
    paired_delta_interval,
    pass_at_k,
    percentiles,
    rate_interval,
    rate_interval_of_totals,
    sign_flip_p,
    wilson,
)


def test_wilson_matches_a_published_example():
    # Newcombe (1998), table I: 81 of 263 and 0 of 20
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_wilson_at_the_edges():
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 7)[0] == 0.0
    assert wilson(7, 7)[1] == 1.0
    assert wilson(1, 2.5)[0] < 0.4 < wilson(1, 2.5)[1]  # an effective sample size
    for successes, n in [(-1, 2), (3, 2), (nan, 2)]:
        with pytest.raises(ValueError):
            wilson(successes, n)


def test_mean_interval_is_students():
    # mean 2, standard deviation 1, n = 3, t(2, 0.975) = 4.3027: half-width 4.3027 / sqrt(3) = 2.4841
    assert mean_interval([1, 2, 3]) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-4)


def test_samples_of_one_problem_are_one_cluster():
    means = [1, 2, 3]
    values, groups = [m + d for m in means for d in (-0.5, 0.5)], [g for g in "abc" for _ in range(2)]
    assert mean_interval(values, groups) == pytest.approx(mean_interval(means))
    copies = [m for m in means for _ in range(100)]  # copying an answer adds no knowledge
    assert mean_interval(copies, [g for g in "abc" for _ in range(100)]) == pytest.approx(mean_interval(means))


def test_unequal_clusters_are_centred_on_the_overall_mean():
    # mean 3; residuals summed per problem: -4, 3, 1; V = (16 + 9 + 1) * 3/2 / 4^2 = 2.4375
    low, high = mean_interval([1, 1, 6, 4], ["a", "a", "b", "c"])
    assert (low + high) / 2 == pytest.approx(3)
    assert (high - low) / 2 == pytest.approx(4.3027 * 2.4375**0.5, abs=1e-3)


def test_paired_delta():
    first, second = [0, 1, 0, 1] * 6, [1, 1, 1, 0] * 6
    groups = [*range(12)] * 2
    assert paired_delta_interval(first, second) == mean_interval([1, 0, 1, -1] * 6)
    assert paired_delta_interval(first, second, groups) == mean_interval([1, 0, 1, -1] * 6, groups)
    with pytest.raises(ValueError):
        paired_delta_interval([1], [1, 2])


def test_an_interval_of_differences_stays_within_their_bounds():
    """Two questions, one of them lost: Student's interval of -1 and 0 is -0.5 -/+ 12.7 * 0.5."""
    assert mean_interval([-1, 0]) == pytest.approx((-6.853, 5.853), abs=1e-3)
    assert paired_delta_interval([1, 0], [0, 0]) == (-1, 1)
    assert paired_delta_interval([1, 0], [-1, 0], most=2) == (-2, 2)  # two deltas differ by 2 at most
    low, high = paired_delta_interval([0, 0, 0], [1, 1, 0])
    assert low == mean_interval([1, 1, 0])[0] and high == 1  # the end that is within them is not moved


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 1), (0, 1), (1, 0)])
def test_equal_differences_of_a_few_pairs_say_little(first, second):
    """Of n pairs without a spread, the share of others may be as large as Wilson's interval of 0 of n reaches."""
    for n in (2, 12, 800):
        low, high = paired_delta_interval([first] * n, [second] * n)
        seen, hidden = second - first, wilson(0, n)[1]
        assert (low, high) == pytest.approx((seen - hidden * (1 + seen), seen + hidden * (1 - seen)))
        assert -1 <= low <= seen <= high <= 1 and high - low == pytest.approx(2 * hidden)
    same = paired_delta_interval([first] * 8, [second] * 8, [0, 0, 0, 0, 1, 1, 1, 1])
    assert same == paired_delta_interval([first] * 2, [second] * 2)  # two clusters
    assert all(map(isnan, paired_delta_interval([first], [second])))
    tenths = paired_delta_interval([0.1, 0.2], [0.4, 0.5])  # equal but for rounding
    assert tenths == pytest.approx((0.3 - 1.3 * wilson(0, 2)[1], 0.3 + 0.7 * wilson(0, 2)[1]))


def test_intervals_without_spread():
    assert all(map(isnan, mean_interval([])))
    assert all(map(isnan, mean_interval([1.0])))
    assert all(map(isnan, mean_interval([1, 2], ["a", "a"])))
    assert mean_interval([0.1] * 7) == (pytest.approx(0.1), pytest.approx(0.1))


def n_of(values, groups):
    """The effective number of values in groups."""
    parts = {}
    for value, group in zip(values, groups, strict=True):
        parts.setdefault(group, []).append(value)
    return effective_n([*map(sum, parts.values())], [*map(len, parts.values())], len(values))


def test_effective_n():
    groups = [g for g in range(50) for _ in range(4)]
    assert n_of([float(g % 2) for g in groups], groups) == pytest.approx(50, rel=0.02)  # perfectly correlated
    independent = [float(Random(i).random() < 0.5) for i in range(200)]
    assert 120 < n_of(independent, groups) <= 200
    assert n_of([0.0, 0.0, 1.0, 1.0] * 50, groups) == 200  # negative correlation earns no extra
    assert n_of([1.0] * 200, groups) == 50
    assert n_of([1.0, 0.0], ["a", "a"]) == 1
    assert n_of([], []) == 0


def test_intervals_cover_as_often_as_they_claim():
    random = Random(0)
    hits = 0
    for _ in range(400):
        rates = [random.betavariate(2, 2) for _ in range(60)]
        values = [float(random.random() < rate) for rate in rates for _ in range(4)]
        groups = [g for g in range(60) for _ in range(4)]
        n = n_of(values, groups)
        low, high = wilson(sum(values) / len(values) * n, n)
        hits += low <= 0.5 <= high
    assert 0.92 <= hits / 400 <= 0.98  # ignoring the clusters covers 87 %


def test_one_answer_to_each_problem_has_mcnemars_test():
    # 2 * (C(10,0) + C(10,1)) / 2^10 = 22 / 1024
    assert sign_flip_p([1] * 9 + [-1]) == sign_flip_p([-1] * 9 + [1, 0, 0]) == pytest.approx(22 / 1024)
    assert sign_flip_p([]) == sign_flip_p([0, 0]) == sign_flip_p([1]) == sign_flip_p([1, -1] * 5) == 1.0
    assert 0 < sign_flip_p([1] * 600 + [-1] * 500) < 0.01
    assert sign_flip_p([1] * 5000) == 0.0


def test_a_p_value_counts_signs():
    random = Random(1)
    for _ in range(40):
        differences = [random.randint(-4, 4) for _ in range(random.randint(1, 8))]
        sums = [sum(map(mul, differences, signs)) for signs in product((1, -1), repeat=len(differences))]
        extreme = sum(abs(each) >= abs(sum(differences)) for each in sums)
        assert sign_flip_p(differences) == pytest.approx(extreme / len(sums))


def test_p_values_of_equal_policies_are_below_5_percent_5_times_in_100():
    """16 samples of each of 60 prompts by two equal policies: answers to one prompt are not independent."""
    dice, below = np.random.default_rng(0), {"clustered": 0, "blind": 0}
    for _ in range(600):
        chance = dice.beta(0.3, 0.3, size=(60, 1))
        better = dice.normal(size=(60, 1)) > 0  # one of both, at one prompt as at the other
        one, two = (np.where(better == sign, chance, chance[::-1]) for sign in (True, False))
        first, second = dice.random((60, 16)) < one, dice.random((60, 16)) < two
        differences = second.sum(axis=1) - first.sum(axis=1)
        below["clustered"] += sign_flip_p(differences.tolist()) < 0.05
        below["blind"] += sign_flip_p((second.astype(int) - first).flatten().tolist()) < 0.05
    assert 0.03 <= below["clustered"] / 600 <= 0.07
    assert below["blind"] / 600 > 0.15


def test_few_clusters_make_wide_intervals():
    """Ten problems with 16 answers each know their spread as badly as ten numbers do."""
    totals, sizes = [1, 2, 3, 5, 8, 9, 11, 12, 14, 15], [16] * 10
    n = n_of([float(i < total) for total in totals for i in range(16)], [g for g in range(10) for _ in range(16)])
    low, high = rate_interval_of_totals(totals, sizes)
    assert (high - low) / 2 > 1.1 * (wilson(0.5 * n, n)[1] - 0.5)
    ones = [1.0] * 5 + [0.0] * 5
    assert rate_interval(ones, range(10)) == pytest.approx(wilson(5, 10))


def test_chances_know_no_more_than_the_answers_behind_them():
    """pass@8 of 16 samples is about two answers a problem; a spread of nearly nothing would tell of far more."""
    chances = [1.0] * 19 + [1 - 1 / 12870]
    low, high = rate_interval(chances, range(20), most=40)
    assert high == pytest.approx(1, abs=1e-3) and 0.85 < low < 0.93
    assert rate_interval(chances, range(20), most=10**9)[0] > 0.99
    assert rate_interval([], []) == (0.0, 1.0)


def test_pass_at_k_counts_subsets():
    for n, c, k in [(5, 2, 1), (5, 2, 3), (6, 1, 4), (4, 4, 2), (4, 0, 4), (5, 3, 4)]:
        subsets = list(combinations(range(n), k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(min(s) < c for s in subsets) / len(subsets))


def test_pass_at_k_at_the_edges():
    assert isnan(pass_at_k(0, 0, 1))
    assert isnan(pass_at_k(2, 1, 3))
    assert pass_at_k(100_000, 1, 1) == pytest.approx(1e-5)
    for n, c, k in [(1, 2, 1), (1, -1, 1), (1, 1, 0)]:
        with pytest.raises(ValueError):
            pass_at_k(n, c, k)


def test_percentiles():
    assert percentiles([40, 10, 20, 30], (0, 50, 90, 100)) == {0: 10, 50: 25, 90: pytest.approx(37), 100: 40}
    assert percentiles([7]) == {5: 7, 25: 7, 50: 7, 75: 7, 95: 7}
    assert isnan(percentiles([], [50])[50])


def test_importing_stats_imports_no_scipy():
    code = "import sys, lib.core.stats; sys.exit('scipy' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_adjusted_p_values_by_hand():
    # sorted: .01 * 4, .02 * 3, .04 * 2, .5 * 1; none is below the one before it, and none above 1
    assert holm([0.04, 0.01, 0.5, 0.02]) == pytest.approx([0.08, 0.04, 0.5, 0.06])
    assert holm([0.04, 0.04, 0.9]) == pytest.approx([0.12, 0.12, 0.9])
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == []
