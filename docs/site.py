"""Adds README, leaderboard, log, contributing and notebook to the site of mkdocs.yml, and corrects their links."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
OUTSIDE = ("README.md", "LEADERBOARD.md", "SELF_CORRECTION.md", "LOG.md", "CONTRIBUTING.md", "notebooks/rematch.ipynb")


def on_files(files, config):
    """Adds the pages that lie next to docs/."""
    for name in OUTSIDE:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Points links to what lies above docs/ at its page here; of links to code, which has none, the text stays."""
    to_code = rf"\[([^\]]*)\]\(\.\./(?!{'|'.join(map(re.escape, OUTSIDE))})[^)]*\)"
    return re.sub(to_code, r"\1", markdown).replace("](../", "](")
