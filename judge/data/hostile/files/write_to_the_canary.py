# expected: wrong exception load_error
broke = False
for mode in ("a", "r+", "w"):
    try:
        with open("@CANARY@", mode) as file:
            file.write("changed")
        broke = True
    except OSError:
        pass

# include: answer.py
