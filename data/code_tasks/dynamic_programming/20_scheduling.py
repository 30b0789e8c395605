import operator
from itertools import combinations

DRAW = lambda rng: ([(a, a + rng.randint(1, 5), rng.randint(1, 9)) for a in integers(rng, 0, 9, 2, 6)],)
EDGES = [([],), ([(0, 5, 4)],), ([(0, 9, 5), (1, 2, 3), (4, 5, 3)],)]

def choices(jobs, compare):
    sets = [c for size in range(len(jobs) + 1) for c in combinations(jobs, size)]
    return [c for c in sets if all(compare(a[1], b[0]) or compare(b[1], a[0]) for a, b in combinations(c, 2))]

"""`jobs` is a list of tuples (start, end, pay) of integers with start < end and positive pay. Two jobs can both be done
if one ends before the other starts or exactly when it starts. Define `best_pay(jobs)`: the greatest total pay of jobs
of which every two can be done, 0 for no jobs."""
EXAMPLE = ([(1, 3, 5), (3, 4, 2), (2, 6, 6)],), 7
EDGES = [([(0, 1, 3), (1, 2, 3)],)]
ORACLE = lambda jobs: max(sum(pay for _, _, pay in jobs) for jobs in choices(jobs, operator.le))

def best_pay(jobs):
    ordered = sorted(jobs, key=lambda job: job[1])
    best = [0]
    for start, _, pay in ordered:
        # wrong: earlier = max(count for count in range(len(best)) if count == 0 or ordered[count - 1][1] < start)
        earlier = max(count for count in range(len(best)) if count == 0 or ordered[count - 1][1] <= start)
        best.append(max(best[-1], best[earlier] + pay))
    return best[-1]

"""`jobs` is a list of tuples (start, end, pay) of integers with start < end and positive pay. Two jobs can both be done
if one ends strictly before the other starts. Define `best_pay_with_break(jobs)`: the greatest total pay of jobs of
which every two can be done, 0 for no jobs."""
EXAMPLE = ([(1, 3, 5), (3, 4, 2), (2, 6, 6)],), 6
EDGES = [([(0, 1, 3), (1, 2, 3)],)]
ORACLE = lambda jobs: max(sum(pay for _, _, pay in jobs) for jobs in choices(jobs, operator.lt))

def best_pay_with_break(jobs):
    ordered = sorted(jobs, key=lambda job: job[1])
    best = [0]
    for start, _, pay in ordered:
        # wrong: earlier = max(count for count in range(len(best)) if count == 0 or ordered[count - 1][1] <= start)
        earlier = max(count for count in range(len(best)) if count == 0 or ordered[count - 1][1] < start)
        best.append(max(best[-1], best[earlier] + pay))
    return best[-1]

"""`jobs` is a list of tuples (start, end, pay) of integers with start < end and positive pay. Two jobs can both be done
if one ends before the other starts or exactly when it starts. Define `most_jobs(jobs)`: the greatest number of jobs of
which every two can be done, whatever they pay, 0 for no jobs."""
EXAMPLE = ([(1, 3, 5), (3, 4, 2), (2, 6, 9)],), 2
EDGES = [([(0, 1, 3), (1, 2, 3)],)]
ORACLE = lambda jobs: max(map(len, choices(jobs, operator.le)))

def most_jobs(jobs):
    ordered = sorted(jobs, key=lambda job: job[1])
    best = [0]
    for start, _, pay in ordered:
        # wrong: earlier = max(count for count in range(len(best)) if count == 0 or ordered[count - 1][1] < start)
        earlier = max(count for count in range(len(best)) if count == 0 or ordered[count - 1][1] <= start)
        best.append(max(best[-1], best[earlier] + 1))
    return best[-1]
