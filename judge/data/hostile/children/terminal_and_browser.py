# expected: wrong exception load_error exited died
import os, pty, webbrowser
broke = False
try:
    if pty.fork()[0] == 0:
        os._exit(0)
    broke = True
except OSError:
    pass
broke = broke or webbrowser.open("http://127.0.0.1:9/")
import antigravity

# include: answer.py
