"""Draws what a run's page shows first, in headless Chromium, for the README.

make demo && .venv/bin/python docs/picture.py outputs/tiny-sums docs/page.png
"""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.browser import PROGRAM, Browser


def main() -> int:
    """Writes the picture that the command line asks for."""
    if len(sys.argv) != 3 or PROGRAM is None:
        print(__doc__ if PROGRAM else "no Chromium here: install Debian's package chromium")
        return 2
    run, picture = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        subprocess.run([sys.executable, ROOT / "report.py", run, "--out", page], check=True)
        browser = Browser(folder)
        try:
            browser.look()
            browser.call("Emulation.setScrollbarsHidden", hidden=True)
            browser.open(page.as_uri())
            drawn = browser.call("Page.captureScreenshot", format="png")
        finally:
            browser.close()
    picture.write_bytes(base64.b64decode(drawn["data"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
