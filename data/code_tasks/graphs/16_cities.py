DRAW = lambda rng: (lambda n, edges: lines((n, len(edges)), *((a + 1, b + 1) for a, b in edges)))(*graph(rng))
EDGES = ["1 0\n", "4 3\n2 1\n3 2\n4 3\n"]

"""The first line of the input has two integers n (at least 1) and m (at least 0), separated by a space; m lines follow,
each with two different numbers from 1 to n, separated by a space: a road between these two cities, usable in both
directions. No road stands there twice. Write a program that prints the number of cities that can be reached from city
1, city 1 included."""
EXAMPLE = "3 1\n1 2\n", "2"

n, m = map(int, input().split())
near = {city: set() for city in range(1, n + 1)}
for _ in range(m):
    a, b = map(int, input().split())
    near[a].add(b)
    near[b].add(a)
steps = {1: 0}
queue = [1]
for city in queue:
    for other in sorted(near[city]):
        if other not in steps:
            steps[other] = steps[city] + 1
            queue.append(other)
# wrong: print(len(steps) - 1 or 1)
print(len(steps))

"""The first line of the input has two integers n (at least 1) and m (at least 0), separated by a space; m lines follow,
each with two different numbers from 1 to n, separated by a space: a road between these two cities, usable in both
directions. No road stands there twice. Write a program that prints one line with the least numbers of roads on the way
from city 1 to the cities 1 to n, -1 for those that cannot be reached, separated by spaces."""
EXAMPLE = "3 1\n1 2\n", "0 1 -1"

n, m = map(int, input().split())
near = {city: set() for city in range(1, n + 1)}
for _ in range(m):
    a, b = map(int, input().split())
    near[a].add(b)
    near[b].add(a)
steps = {1: 0}
queue = [1]
for city in queue:
    for other in sorted(near[city]):
        if other not in steps:
            steps[other] = steps[city] + 1
            queue.append(other)
# wrong: print(*(steps.get(city, 0) for city in near))
print(*(steps.get(city, -1) for city in near))

"""The first line of the input has two integers n (at least 1) and m (at least 0), separated by a space; m lines follow,
each with two different numbers from 1 to n, separated by a space: a road between these two cities, usable in both
directions. No road stands there twice. Write a program that prints for each of the cities 1 to n a line with its
number, a colon and, each after a space, the cities to which it has a road in ascending order, or a single - after the
space if it has none."""
EXAMPLE = "3 1\n1 2\n", "1: 2\n2: 1\n3: -"

n, m = map(int, input().split())
near = {city: set() for city in range(1, n + 1)}
for _ in range(m):
    a, b = map(int, input().split())
    near[a].add(b)
    near[b].add(a)
steps = {1: 0}
queue = [1]
for city in queue:
    for other in sorted(near[city]):
        if other not in steps:
            steps[other] = steps[city] + 1
            queue.append(other)
for city, others in near.items():
    # wrong: print(f"{city}:", *sorted(others))
    print(f"{city}:", *(sorted(others) or ["-"]))

"""The first line of the input has two integers n (at least 1) and m (at least 0), separated by a space; m lines follow,
each with two different numbers from 1 to n, separated by a space: a road between these two cities, usable in both
directions. No road stands there twice. Write a program that prints the least number of roads on the way from city 1 to
city n (0 if n is 1), or IMPOSSIBLE if there is no way."""
EXAMPLE = "3 1\n1 2\n", "IMPOSSIBLE"
EDGES = ["2 1\n2 1\n"]

n, m = map(int, input().split())
near = {city: set() for city in range(1, n + 1)}
for _ in range(m):
    a, b = map(int, input().split())
    near[a].add(b)
    near[b].add(a)
steps = {1: 0}
queue = [1]
for city in queue:
    for other in sorted(near[city]):
        if other not in steps:
            steps[other] = steps[city] + 1
            queue.append(other)
# wrong: print(steps.get(n, 0))
print(steps.get(n, "IMPOSSIBLE"))
