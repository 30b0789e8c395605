"""Words that this project does not use, in code and in its documents."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WINGS = "lib", "judge", "engine", "pages", "benchmarks", "data"
CODE = sorted([*ROOT.glob("*.py"), *(path for wing in WINGS for path in (ROOT / wing).rglob("*.py"))])
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
IN_CODE = {
    r'^\s*[rf]?"""Tells\b': "say what it returns: True if ...",
    r"\bReturns what\b": "name the noun: Returns the messages of a row",
    r"\bfor each in\b": "name the variable for the thing: row, answer, path",
    r"\bmend(s|ed|ing)?\b": "fix",
}
IN_DOCUMENTS = {
    r"\b[Bb]eside\b": "next to, with or besides",
    r"\b[Nn]obody\b": "no one",
    r"\b[Ii]n vain\b": "say what failed",
    r"\b[Mm]end(s|ed|ing)?\b": "fix",
}


def lines_with(pattern, files):
    found = []
    for path in files:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            text = re.sub(r"\]\([^)\n]*\)", "]", text)  # the target of a link may be a title of the log
        for match in re.finditer(pattern, text, re.MULTILINE):
            found.append(f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.end()) + 1}")
    return found


@pytest.mark.parametrize("pattern", IN_CODE)
def test_no_code_has(pattern):
    assert len(CODE) > 300
    assert not lines_with(pattern, CODE), IN_CODE[pattern]


@pytest.mark.parametrize("pattern", IN_DOCUMENTS)
def test_no_document_has(pattern):
    assert not lines_with(pattern, DOCUMENTS), IN_DOCUMENTS[pattern]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        *zip(IN_CODE, ['    """Tells it."""', '"""Returns what is."""', "[a for each in b]", "# mended"], strict=True),
        *zip(IN_DOCUMENTS, ["Beside it", "nobody", "in vain", "It mends that."], strict=True),
    ],
)
def test_each_word_is_recognised(pattern, text):
    assert re.search(pattern, f"x = 1\n{text}", re.MULTILINE)
    assert not re.search(pattern, "recommended besides, for each input; Returns the amended; it tells", re.MULTILINE)
