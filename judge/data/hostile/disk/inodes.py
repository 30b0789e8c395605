# expected: wrong exception load_error
# stops after 2,000
import os
broke = False
for folder in ("/tmp", "/dev/shm", "/var/tmp", "@HOME@"):
    try:
        for number in range(500):
            os.mkdir(f"{folder}/rematch_hostile_{number}")
            broke = True
    except OSError:
        pass

# include: answer.py
