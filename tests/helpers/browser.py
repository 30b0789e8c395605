"""A headless Chromium, driven over a pipe by its own protocol: no driver program, no package, no port.

The protocol is documented at chromedevtools.github.io/devtools-protocol. Debian's package is `chromium`.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next((found for name in NAMES if (found := shutil.which(name))), None)
SECONDS = 30  # the machine may be busy,
SILENCE_SECONDS = 120  # and a browser takes long to start then


# The protocol is read from descriptor 3 and written to 4; either may be in use for the other, so both are moved first.
AS_3_AND_4 = """
import fcntl, os, sys
for number, pipe in enumerate([fcntl.fcntl(int(each), fcntl.F_DUPFD, 20) for each in sys.argv[1:3]], start=3):
    os.dup2(pipe, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page, its problems and its requests."""

    def __init__(self, folder):
        read_here, write_there = os.pipe()
        read_there, write_here = os.pipe()
        options = (
            "--headless --no-sandbox --disable-gpu --remote-debugging-pipe --no-first-run --disable-dev-shm-usage "
            f"--disable-background-networking --user-data-dir={folder} --window-size=1280,900 about:blank"
        )
        start = [sys.executable, "-ISc", AS_3_AND_4, str(read_there), str(write_there)]
        self._process = subprocess.Popen(
            [*start, PROGRAM, *options.split()],
            pass_fds=(read_there, write_there), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_there), os.close(write_there)
        self._read, self._write, self._buffer, self._number, self._session = read_here, write_here, b"", 0, None
        self.problems, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._read), os.close(self._write)

    def call(self, method, **parameters):
        """The result of a command of the protocol."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == number:
                assert "error" not in found, found["error"]
                return found["result"]
            self._note(found)

    def _next(self):
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], SILENCE_SECONDS)[0], "the browser says nothing"
            found = os.read(self._read, 1 << 20)
            assert found, "the browser has ended"
            self._buffer += found
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event):
        kind, of = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.problems.append(str(of["exceptionDetails"]))
        elif kind == "Log.entryAdded":
            self.problems.append(f"{of['entry']['level']}: {of['entry']['text']}")
        elif kind == "Runtime.consoleAPICalled":
            self.problems.append(str(of["args"]))
        elif kind == "Network.requestWillBeSent":
            self.requests.append(of["request"]["url"])

    def open(self, address):
        """Opens an address and waits until it is loaded and its scripts have run; returns the seconds."""
        start = time.monotonic()
        self.call("Page.navigate", url=str(address))
        self.until("document.readyState === 'complete' && typeof Rollouts !== 'undefined'")
        return time.monotonic() - start

    def run(self, script):
        """The value of an expression in the page, a promise's once it is kept."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script):
        """Waits until an expression is true in the page; returns its value."""
        end = time.monotonic() + SECONDS
        known = "found instanceof Node ? true : found"  # a node has no value
        asked = f"(() => {{ try {{ const found = {script}; return {known} }} catch {{ return false }} }})()"
        while not (found := self.run(asked)):
            assert time.monotonic() < end, f"not within {SECONDS} s: {script}"
            time.sleep(0.02)
        return found

    def press(self, *keys):
        """Presses keys one after the other."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def look(self, width=1280, height=900, dark=False, phone=False):
        """Sets the size of the window, and light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
