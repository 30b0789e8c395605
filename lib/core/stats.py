"""Computes how sure a number is: intervals, a paired test, pass@k. All intervals are two-sided at 95 %.

Answers to the same problem are not independent, so every function that takes `groups` (one hashable id per value, such
as the problem's index) treats a problem as one cluster. scipy is imported where it is used: this module loads at once.
"""

from collections.abc import Hashable, Sequence
from math import comb, fsum, nan, sqrt
from statistics import NormalDist

_Z = NormalDist().inv_cdf(0.975)


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Returns Wilson's score interval of a rate (Wilson 1927). `n` may be an effective sample size; n = 0 gives (0, 1).

    Raises ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"wilson({successes}, {n}): expected 0 <= successes <= n")
    if n == 0:
        return 0.0, 1.0
    rate = successes / n
    scale = 1 + _Z**2 / n
    centre = (rate + _Z**2 / (2 * n)) / scale
    half = _Z / scale * sqrt(rate * (1 - rate) / n + _Z**2 / (4 * n**2))
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))


def mean_interval(values: Sequence[float], groups: Sequence[Hashable] | None = None) -> tuple[float, float]:
    """Returns Student's interval of the mean, robust to clusters; for groups of equal size, that of their means.

    Fewer than two groups say nothing about spread and give (nan, nan). Equal values give an interval of width zero.
    """
    mean, error, clusters = _mean_and_error(values, groups)
    if clusters < 2:
        return nan, nan
    from scipy.special import stdtrit

    half = float(stdtrit(clusters - 1, 0.975)) * error
    return mean - half, mean + half


def paired_delta_interval(
    first: Sequence[float], second: Sequence[float], groups: Sequence[Hashable] | None = None, most: float = 1
) -> tuple[float, float]:
    """Returns the interval of mean(second - first), cut to [-most, most]; clusters as in `mean_interval`.

    Where all differences are equal, others may be as frequent as Wilson's interval of 0 of n reaches.
    """
    differences = [after - before for before, after in zip(first, second, strict=True)]
    low, high = mean_interval(differences, groups)
    if not high - low < 1e-9:  # nan, too, which stays nan below
        return max(low, -most), min(high, most)
    hidden = wilson(0, len(differences) if groups is None else len(set(groups)))[1]
    return low - hidden * (most + low), high + hidden * (most - high)


def rate_interval(values: Sequence[float], groups: Sequence[Hashable], most: int | None = None) -> tuple[float, float]:
    """Returns Wilson's interval of a mean of values in [0, 1]; clusters and `most` as in `rate_interval_of_totals`."""
    return rate_interval_of_totals(*_totals(values, groups), most)


def rate_interval_of_totals(
    totals: Sequence[float], sizes: Sequence[int], most: int | None = None
) -> tuple[float, float]:
    """Returns Wilson's interval of sum(totals) / sum(sizes), both given per cluster; (0, 1) if all sizes are 0.

    Its n is the effective sample size, at most `most`: the number of zeros and ones that the values are means of, by
    default one per value. Few clusters give a poor estimate of their spread, so n shrinks as Student's interval grows
    (Korn and Graubard 1998); clusters of one value each give Wilson's interval itself.
    """
    values = sum(sizes)
    if not values:
        return 0.0, 1.0
    most = most or values
    n = effective_n(totals, sizes, most)
    if len(sizes) > 1:
        from scipy.special import stdtrit

        n *= float(stdtrit(most - 1, 0.975) / stdtrit(len(sizes) - 1, 0.975)) ** 2
    return wilson(fsum(totals) / values * n, n)


def _totals(values: Sequence[float], groups: Sequence[Hashable]) -> tuple[list[float], list[int]]:
    """Returns the sums and the numbers of the values of each group."""
    parts: dict[Hashable, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        parts.setdefault(group, []).append(value)
    return [fsum(part) for part in parts.values()], [len(part) for part in parts.values()]


def effective_n(totals: Sequence[float], sizes: Sequence[int], most: int) -> float:
    """Returns the n at which a rate would vary as much as it does between clusters: n / design effect (Kish 1965).

    It is at most `most`. Without any spread the correlation is unknown: the cautious bound is the number of clusters.
    """
    clusters, values = len(sizes), sum(sizes)
    rate = fsum(totals) / values if values else 0.0
    if clusters < 2 or not 0 < rate < 1:
        return float(clusters)
    squares = fsum((total - rate * size) ** 2 for total, size in zip(totals, sizes, strict=True))
    variance = squares * clusters / (clusters - 1) / values**2
    # for n independent zeros and ones the variance is rate * (1 - rate) / (n - 1)
    return min(most, rate * (1 - rate) / variance + 1) if variance else float(most)


def _mean_and_error(values: Sequence[float], groups: Sequence[Hashable] | None) -> tuple[float, float, int]:
    """Returns the mean, its cluster-robust standard error (nan below two clusters), and the number of clusters."""
    groups = range(len(values)) if groups is None else groups
    if not values:
        return nan, nan, 0
    mean = fsum(values) / len(values)
    residuals: dict[Hashable, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        residuals.setdefault(group, []).append(value - mean)
    clusters = len(residuals)
    if clusters < 2:
        return mean, nan, clusters
    squares = 0.0 if len(set(values)) == 1 else fsum(fsum(rest) ** 2 for rest in residuals.values())
    return mean, sqrt(squares * clusters / (clusters - 1)) / len(values), clusters


def sign_flip_p(differences: Sequence[int]) -> float:
    """Returns the exact two-sided p-value of a sign-flip test: each difference is as likely with the other sign.

    It is 1 if no difference is nonzero. For differences of +1, 0 and -1 this is McNemar's exact test (1947). With
    several answers to a problem, pass the sum of each problem's differences: problems are independent, answers to one
    are not (a clustered test: Durkalski 2003).
    """
    import numpy as np

    sizes = [abs(difference) for difference in differences if difference]
    chance = np.zeros(sum(sizes) + 1)  # probability that the flipped ones sum to 0, 1, ...
    chance[0] = 1.0
    reach = 0
    for size in sizes:
        reach += size
        chance[size : reach + 1] += chance[: reach - size + 1].copy()
        chance[: reach + 1] /= 2
    fewest = (sum(sizes) - abs(sum(differences))) // 2  # the smaller of the positive and the negative sum
    return min(1.0, 2 * float(chance[: fewest + 1].sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values adjusted for being several (Holm 1979): the chance of any false one below a level is at most it.

    The order is that of `p_values`.
    """
    adjusted, highest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def pass_at_k(n: int, c: int, k: int) -> float:
    """Returns the unbiased estimate of pass@k when `c` of `n` samples are correct (Chen et al. 2021, eq. 1).

    pass@k is the chance that at least one of `k` samples is correct; nan, for want of an unbiased estimate, if n < k.
    Raises ValueError unless 0 <= c <= n and k >= 1.
    """
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"pass_at_k({n}, {c}, {k}): expected 0 <= c <= n and k >= 1")
    if n < k:
        return nan
    return (comb(n, k) - comb(n - c, k)) / comb(n, k)


def percentiles(values: Sequence[float], points: Sequence[float] = (5, 25, 50, 75, 95)) -> dict[float, float]:
    """Returns percentiles by linear interpolation, keyed by point (0 to 100); nan if empty. Values must be finite."""
    import numpy as np

    return dict(
        zip(points, np.percentile(values, points).tolist() if len(values) else [nan] * len(points), strict=True)
    )
