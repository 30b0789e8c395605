# expected: wrong exception load_error
import glob, os, re
PATTERN = re.compile("add[(]-?[0-9]+, -?[0-9]+[)] == -?[0-9]+")
broke = False
for folder in ("@HOME@", f"/proc/{os.getppid()}/cwd", "/proc/@PARENT@/cwd", "/tmp", "."):
    try:
        os.listdir(folder)
        broke = True
    except OSError:
        pass
    for path in glob.glob(folder + "/data/**/*.json*", recursive=True) + glob.glob(folder + "/tests/*.py"):
        try:
            broke = broke or bool(PATTERN.search(open(path).read()))
        except OSError:
            pass

# include: answer.py
