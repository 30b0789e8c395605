DRAW = lambda rng: (
    lambda numbers: lines(
        numbers,
        3,
        *(sorted((rng.randint(1, len(numbers) - 1), rng.randint(1, len(numbers) - 1))) for _ in range(3)),
    )
)(integers(rng, -9, 20, 3, 8))

"""The first line of the input has integers separated by spaces (at least one), the second a positive integer q,
followed by q lines, each with two positions a and b, separated by a space. Positions are counted from 1, and a <= b.
Write a program that prints for each of the q lines the sum of the numbers from position a to position b, both
included."""
EXAMPLE = "4 5 6\n2\n1 2\n3 3\n", "9\n6"
EDGES = ["7\n1\n1 1\n"]

numbers = list(map(int, input().split()))
for _ in range(int(input())):
    a, b = map(int, input().split())
    # wrong: print(sum(numbers[a:b]))
    print(sum(numbers[a - 1 : b]))

"""The first line of the input has integers separated by spaces (at least one), the second a positive integer q,
followed by q lines, each with two positions a and b, separated by a space. Positions are counted from 0, and a <= b.
Write a program that prints for each of the q lines the least of the numbers from position a to position b, both
included."""
EXAMPLE = "4 5 6\n2\n0 1\n2 2\n", "4\n6"
EDGES = ["7\n1\n0 0\n"]

numbers = list(map(int, input().split()))
for _ in range(int(input())):
    a, b = map(int, input().split())
    # wrong: print(min(numbers[a:b] or [numbers[a]]))
    print(min(numbers[a : b + 1]))

"""The first line of the input has integers separated by spaces (at least one), the second a positive integer q,
followed by q lines, each with two positions a and b, separated by a space. Positions are counted from 1, and a <= b.
Write a program that prints for each of the q lines a line with the numbers in reverse order, separated by spaces, from
position a to position b, both included."""
EXAMPLE = "4 5 6\n2\n1 2\n3 3\n", "5 4\n6"
EDGES = ["7\n1\n1 1\n"]

numbers = list(map(int, input().split()))
for _ in range(int(input())):
    a, b = map(int, input().split())
    # wrong: print(*numbers[a - 1 : b])
    print(*numbers[a - 1 : b][::-1])
