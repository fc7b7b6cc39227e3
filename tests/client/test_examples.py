"""The templates in examples/: all are described, and valid."""

import re

from client.serving import Service
from harness.examples import EXAMPLES, example, names


def test_the_readme_describes_each_file() -> None:
    named = set(re.findall(r"`([\w-]+\.yaml)`", (EXAMPLES / "README.md").read_text()))
    assert named == {path.name for path in EXAMPLES.glob("*.yaml")}


def test_all_are_valid_with_their_nested_templates(service: Service) -> None:
    assert len(names()) >= 12
    answers = {
        name: service.call("POST", "/v1/examples/validate?show_nested=true", example(name))
        for name in names()
    }
    assert {name: answer.body for name, answer in answers.items() if answer.status != 200} == {}
