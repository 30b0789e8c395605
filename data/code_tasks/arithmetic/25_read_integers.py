DRAW = lambda rng: lines(*integers(rng, 1, 99, 2, 7)) + "0\n" + rng.choice(["", "5\n"])

"""Write a program that reads integers, one a line, until a line that holds only `0` (always present, not itself part of
the data; what follows it is ignored), and prints their number, their sum and the largest one, separated by spaces (0 0
0 if there are none); all integers are positive."""
EXAMPLE = "3\n8\n0\n9\n", "2 11 8"
EDGES = ["0\n", "7\n0\n", "5\n2\n0\n"]

numbers = []
while (line := input()) != "0":
    numbers.append(int(line))
# wrong: print(len(numbers), sum(numbers), numbers[-1] if numbers else 0)
print(len(numbers), sum(numbers), max(numbers, default=0))

"""Write a program that reads integers, one a line, until a line that holds only `end` (always present, not itself part
of the data; what follows it is ignored), and prints their mean with exactly two decimals, or `none` if there are no
integers; the number of integers is 1, 2, 4 or 5."""
EXAMPLE = "3\n8\nend\n", "5.50"
EDGES = ["end\n", "-1\n-2\nend\n7\n"]
DRAW = lambda rng: lines(*rng.sample(range(-50, 99), rng.choice([1, 2, 4, 5])), "end")

numbers = []
while (line := input()) != "end":
    numbers.append(int(line))
# wrong: print(sum(numbers) // max(len(numbers), 1))
print(f"{sum(numbers) / len(numbers):.2f}" if numbers else "none")

"""Write a program that reads integers, one a line, until a line that holds only `-1` (always present, not itself part
of the data; what follows it is ignored), and prints them from largest to smallest on one line, separated by spaces,
equal ones repeated, or `empty` if there are none; all integers are non-negative."""
EXAMPLE = "3\n8\n5\n-1\n", "8 5 3"
EDGES = ["-1\n", "2\n2\n-1\n4\n"]
DRAW = lambda rng: lines(*integers(rng, 0, 9, 2, 7), -1)

numbers = []
while (line := input()) != "-1":
    numbers.append(int(line))
# wrong: print(*sorted(set(numbers), reverse=True) or ["empty"])
print(*sorted(numbers, reverse=True) or ["empty"])
