"""The templates in examples/ as clients send them, with the environments and files that belong to them."""

import pathlib
import typing

from heatclient.common import template_utils

Json = typing.Any
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
ENVIRONMENTS = {
    "blue_green": "blue_green-environment.yaml",
    "breakpoints": "breakpoints-environment.yaml",
    "drift": "drift-environment.yaml",
    "nested_library": "nested_library-environment.yaml",
}
"""The environment of each template that has one."""
HIDDEN: dict[str, Json] = {"secrets": {"token": "a token"}}
"""The values of parameters without a default, by template."""


def example(name: str, **parameters: Json) -> dict[str, Json]:
    """The body of a request that creates a stack of an example, without the stack's name."""
    files, template = template_utils.process_template_path(str(EXAMPLES / f"{name}.yaml"))
    environment: Json = {}
    if name in ENVIRONMENTS:
        path = str(EXAMPLES / ENVIRONMENTS[name])
        more, environment = template_utils.process_environment_and_files(path)
        files |= more
    values = {**HIDDEN.get(name, {}), **parameters}
    return {"template": template, "files": files, "environment": environment, "parameters": values}


def names() -> list[str]:
    """The names of the templates that a user creates: neither nested ones nor environments."""
    texts = {path.name: path.read_text() for path in EXAMPLES.glob("*.yaml")}
    named = {name for name in texts for text in texts.values() if f": {name}" in text}
    templates = [name for name, text in texts.items() if "emplate" in text.splitlines()[0]]
    return sorted(name.removesuffix(".yaml") for name in templates if name not in named)
