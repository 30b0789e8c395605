# expected: wrong exception load_error
# stops at 64 MB
broke = False
for folder in ("/tmp", "/dev/shm", "/var/tmp", "@HOME@", "/run", "."):
    try:
        with open(folder + "/rematch_hostile_big", "wb") as file:
            for _ in range(64):
                file.write(bytes(1 << 20))
        broke = True
    except OSError:
        pass

# include: answer.py
