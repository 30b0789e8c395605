DRAW = lambda rng: (lambda rows: lines(len(rows), *rows))(
    [(rng.randint(-9, 20), rng.choice("+-*"), rng.randint(-9, 20)) for _ in range(rng.randint(1, 4))]
)

"""The first line of the input is a positive integer n, followed by n lines, each with two integers with one of the
signs + - * between them, separated by spaces. Write a program that prints one line for each of them: the value."""
EXAMPLE = "2\n3 + 4\n5 - 8\n", "7\n-3"
EDGES = ["1\n-2 * -3\n"]

for _ in range(int(input())):
    left, sign, right = input().split()
    a, b = int(left), int(right)
    # wrong: print({"+": a + b, "-": abs(a - b), "*": a * b}[sign])
    print({"+": a + b, "-": a - b, "*": a * b}[sign])

"""The first line of the input is a positive integer n, followed by n lines, each with two integers with one of the
signs / and % between them, separated by spaces. Write a program that prints one line for each of them: for / the
quotient rounded down, for % the remainder of that division (which has the sign of the right integer), and `error` if
the right integer is 0."""
EXAMPLE = "2\n7 / 2\n5 % 0\n", "3\nerror"
EDGES = ["1\n-7 / 2\n", "2\n-7 % 3\n7 % -3\n"]
DRAW = lambda rng: (lambda rows: lines(len(rows), *rows))(
    [(rng.randint(-20, 20), rng.choice("/%"), rng.randint(-4, 5)) for _ in range(rng.randint(2, 5))]
)

for _ in range(int(input())):
    left, sign, right = input().split()
    a, b = int(left), int(right)
    # wrong: print("error" if b == 0 else int(a / b) if sign == "/" else abs(a) % abs(b))
    print("error" if b == 0 else a // b if sign == "/" else a % b)

"""The first line of the input is a positive integer n, followed by n lines, each with two integers with one of the
signs < > = between them, separated by spaces. Write a program that prints one line for each of them: `yes` if the
statement is true, else `no`."""
EXAMPLE = "2\n3 < 4\n5 = 8\n", "yes\nno"
EDGES = ["1\n-2 > -3\n", "3\n4 < 4\n4 = 4\n4 > 4\n"]
DRAW = lambda rng: (lambda rows: lines(len(rows), *rows))(
    [(rng.randint(-3, 3), rng.choice("<>="), rng.randint(-3, 3)) for _ in range(rng.randint(2, 5))]
)

for _ in range(int(input())):
    left, sign, right = input().split()
    a, b = int(left), int(right)
    # wrong: print("yes" if {"<": a <= b, ">": a >= b, "=": a == b}[sign] else "no")
    print("yes" if {"<": a < b, ">": a > b, "=": a == b}[sign] else "no")
