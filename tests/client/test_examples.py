"""The templates in examples/: all are described, and valid."""

import pathlib
import re

from client.serving import Service
from harness.examples import EXAMPLES, example, names

IMAGES = pathlib.Path(__file__).parents[2] / "doc" / "images" / "examples"
MOST_BYTES = 60_000
"""The most bytes of a picture."""


def test_the_readme_describes_each_file() -> None:
    named = set(re.findall(r"`([\w-]+\.yaml)`", (EXAMPLES / "README.md").read_text()))
    assert named == {path.name for path in EXAMPLES.glob("*.yaml")}


def test_each_has_small_pictures_in_both_schemes_which_the_readme_shows() -> None:
    readme = EXAMPLES / "README.md"
    paths = [EXAMPLES / path for path in re.findall(r"!\[[^]]+\]\(([^)]+)\)", readme.read_text())]
    assert sorted(path.stem for path in paths) == names()
    light = {path.resolve() for path in paths}
    pictures = {*light, *(path.with_stem(f"{path.stem}-dark") for path in light)}
    assert pictures == set(IMAGES.glob("*"))
    assert [path.name for path in pictures if path.read_bytes()[8:12] != b"WEBP"] == []
    assert [path.name for path in pictures if path.stat().st_size > MOST_BYTES] == []


def test_all_are_valid_with_their_nested_templates(service: Service) -> None:
    assert len(names()) >= 12
    answers = {
        name: service.call("POST", "/v1/examples/validate?show_nested=true", example(name))
        for name in names()
    }
    assert {name: answer.body for name, answer in answers.items() if answer.status != 200} == {}
