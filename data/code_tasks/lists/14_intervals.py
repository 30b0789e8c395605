DRAW = lambda rng: ([(a, a + rng.randint(1, 7)) for a in integers(rng, 0, 20, 2, 6)],)
EDGES = [
    ([],),
    ([(2, 6)],),
    ([(1, 9), (2, 3), (4, 5)],),
    ([(5, 6), (1, 2)],),
    ([(1, 8), (2, 3), (5, 9), (8, 9)],),
    ([(0, 10), (2, 3), (12, 14)],),
]

"""`intervals` is a list, in any order, of tuples (start, end) of integers with start < end, each standing for the
numbers from start to end, both included. Define `merge_intervals(intervals)`: the ascending list of tuples that remains
when all intervals that have a number in common, directly or by way of others, are merged into one."""
EXAMPLE = ([(1, 3), (3, 5), (7, 8)],), [(1, 5), (7, 8)]

def merge_intervals(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            # wrong: merged[-1] = (merged[-1][0], end)
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged

"""`intervals` is a list, in any order, of tuples (start, end) of integers with start < end, each standing for a stretch
of time. Define `merge_overlapping(intervals)`: the ascending list of tuples that remains when stretches that share more
than a single moment, directly or by way of others, are merged into one; stretches that only touch stay apart."""
EXAMPLE = ([(1, 4), (3, 5), (5, 8)],), [(1, 5), (5, 8)]

def merge_overlapping(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start < merged[-1][1]:
            # wrong: merged[-1] = (merged[-1][0], end)
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged

"""`intervals` is a list, in any order, of tuples (start, end) of integers with start < end, each standing for a stretch
of a line. Define `covered_length(intervals)`: the total length that at least one of them covers, 0 if there are
none."""
EXAMPLE = ([(1, 4), (3, 5), (7, 8)],), 5

def covered_length(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            # wrong: merged[-1] = (merged[-1][0], end)
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return sum(end - start for start, end in merged)

"""`intervals` is a list, in any order, of tuples (start, end) of integers with start < end, each standing for a stretch
of a line. Define `gaps(intervals)`: the ascending list of the tuples (start, end) of the gaps: stretches of positive
length that none of them covers, between the first start and the last end."""
EXAMPLE = ([(1, 4), (3, 5), (7, 8)],), [(5, 7)]

def gaps(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            # wrong: merged[-1] = (merged[-1][0], end)
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return [(a[1], b[0]) for a, b in zip(merged, merged[1:])]
