"""What the site of mkdocs.yml has beside docs/: README, leaderboard, log, contributing; links that lead to pages."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
BESIDE = ("README.md", "LEADERBOARD.md", "LOG.md", "CONTRIBUTING.md")


def on_files(files, config):
    """Adds the pages that lie beside docs/."""
    for name in BESIDE:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Points links to what lies above docs/ at its page here, and leaves out the line of pages: the site has a menu."""
    return re.sub(r"\A(\[README\]|README).*· .*\n", "", markdown).replace("](../", "](")
