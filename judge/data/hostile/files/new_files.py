# expected: wrong exception load_error
import os, tempfile
broke = False
ways = [tempfile.TemporaryFile, lambda: tempfile.mkdtemp(prefix="rematch_hostile")]
for folder in ("@HOME@", "/tmp", "/dev/shm", "/var/tmp", "/", "."):
    ways += [
        lambda folder=folder: open(folder + "/rematch_hostile", "w").close(),
        lambda folder=folder: os.mkdir(folder + "/rematch_hostile_folder"),
        lambda folder=folder: os.mkfifo(folder + "/rematch_hostile_fifo"),
        lambda folder=folder: os.open(folder, os.O_RDWR | os.O_TMPFILE),
    ]
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass

# include: answer.py
