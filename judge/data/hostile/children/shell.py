# expected: wrong exception load_error exited died
import os, subprocess
broke = os.system("true") == 0
ways = (
    lambda: subprocess.run(["true"], check=True),
    lambda: subprocess.check_output("id", shell=True),
    lambda: os.posix_spawn("/bin/true", ["true"], {}),
    lambda: os.popen("echo 1").read() == "1" + chr(10) or os.stat("/nowhere"),
)
for way in ways:
    try:
        way()
        broke = True
    except (OSError, subprocess.SubprocessError):
        pass

# include: answer.py
