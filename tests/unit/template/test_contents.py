"""Contents of files, compared without their names."""

import pytest
from stoker.template.contents import same_content

BOX = '{"resources": {"a": {"type": "%s/inner.yaml", "properties": {"x": {"get_file": "%s/run.sh"}}}}}'


def checkout(folder: str, script: str = "echo") -> dict[str, str]:
    """The files of a client that writes absolute names into templates."""
    box = BOX % (folder, folder)
    return {f"{folder}/box.yaml": box, f"{folder}/inner.yaml": "outputs: {}", f"{folder}/run.sh": script}


@pytest.mark.parametrize(
    ("other", "name", "expected"),
    [
        (checkout("file:///b"), "file:///b/box.yaml", True),
        (checkout("file:///b", script="rm"), "file:///b/box.yaml", False),
        (checkout("file:///b"), "file:///b/inner.yaml", False),
        (checkout("file:///b"), "file:///a/box.yaml", False),
    ],
)
def test_files_that_moved_are_the_same(other: dict[str, str], name: str, *, expected: bool) -> None:
    assert same_content("file:///a/box.yaml", checkout("file:///a"), name, other) is expected


def test_files_that_name_each_other_are_compared() -> None:
    first = {"a.yaml": "type: b.yaml", "b.yaml": "type: a.yaml"}
    second = {"c.yaml": "type: d.yaml", "d.yaml": "type: c.yaml"}
    assert same_content("a.yaml", first, "c.yaml", second)
    chain = {f"{index}.yaml": f"type: {index + 1}.yaml" for index in range(5000)}
    assert same_content("0.yaml", chain, "0.yaml", chain)
