"""Commands that install Stoker work today, while no release is published."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "doc").glob("*.md"))]
FROM_AN_INDEX = re.compile(r"pip install(?: -\S+| \S+\.txt)*\s+'?stoker\b")
FROM_THE_WHEEL = re.compile(r'pip install -c constraints\.txt "\$\(echo dist/stoker-\*\.whl\)\[[a-z,]+\]"')


def test_an_index_is_named_only_for_the_day_of_the_release() -> None:
    sections = [
        (page.name, part) for page in PAGES for part in re.split(r"^## ", page.read_text(), flags=re.M)
    ]
    naming = [(name, part) for name, part in sections if FROM_AN_INDEX.search(part)]
    assert [(name, part.splitlines()[0]) for name, part in naming] == [
        ("README.md", "Install it"),
        ("install.md", "The program"),
    ]
    for _, part in naming:
        assert "No release is published yet." in part
        assert "After the first release" in part[: FROM_AN_INDEX.search(part).start()]


def test_each_page_installs_the_wheel_by_the_same_command() -> None:
    lines = [line for page in PAGES for line in page.read_text().splitlines() if "dist/stoker-" in line]
    assert len(lines) >= 4
    assert [line for line in lines if not FROM_THE_WHEEL.search(line)] == []


OF_OTHERS = {"CREATE", "USER", "PASSWORD", "DATABASE", "OWNER", "DEFAULT", "API", "EXTRAS"}
"""Words in capitals of SQL, and of files as they are."""


def test_each_word_that_an_operator_replaces_is_explained() -> None:
    text = (ROOT / "doc" / "install.md").read_text()
    table = text.partition("| word | stands for |")[2].partition("\n\n")[0]
    explained = set(re.findall("`([A-Z]+)`", table))
    typed = "\n".join(re.findall(r"^ {4}.*$", text, re.MULTILINE))
    assert set(re.findall(r"(?<![A-Za-z_:])[A-Z]{3,}\b", typed)) - OF_OTHERS == explained
