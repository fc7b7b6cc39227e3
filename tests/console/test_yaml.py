"""Templates that the console writes as YAML mean the same as their JSON."""

import json
import pathlib
import random
import subprocess
import typing

import yaml
from harness.server import find_program

Json = typing.Any
MODULE = pathlib.Path(__file__).parents[2] / "console" / "page" / "yaml.js"
PROGRAM = """
const { yamlOf } = await import(process.argv[1]);
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const values = JSON.parse(Buffer.concat(chunks).toString());
process.stdout.write(JSON.stringify(values.map((value) => yamlOf(value))));
"""
TEXTS = (
    *("", " ", "a", "yes", "No", "null", "~", "1", "1e3", "0x1f", "1:30", "2021-04-16", ".inf", "-", "- a"),
    *(
        "a: b",
        "a:",
        ":a",
        "a #b",
        "#a",
        "a b",
        "a  b",
        " a",
        "a ",
        "OS::Nova::Server",
        "{a}",
        "[a]",
        "%index%",
    ),
    *("a\nb", "a\nb\n", "a\nb\n\n", "a\n\n b", "\na", " a\nb", "a\tb", "a\r\nb", "\n", "a\u2028b", "\u007f"),
    *(
        "#!/bin/sh\necho 'x: y'\n",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        '"',
        "'",
        "\\",
        "ä",
        "\U0001f525",
        "\ufeffa",
        "=",
    ),
)


def written(values: list[Json]) -> list[str]:
    node = find_program("node", "nodejs")
    done = subprocess.run(
        [node, "--input-type=module", "-e", PROGRAM, MODULE.as_uri()],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    texts: list[str] = json.loads(done.stdout)
    return texts


def some_value(dice: random.Random, depth: int = 0) -> Json:
    kind = dice.randrange(6 if depth < 4 else 4)
    if kind < 2:
        return dice.choice(TEXTS)
    if kind == 2:
        return dice.choice([0, -7, 1.5, 1e21, 1e-7, 10**15])
    if kind == 3:
        return dice.choice([None, True, False, [], {}])
    if kind == 4:
        return [some_value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return {dice.choice(TEXTS): some_value(dice, depth + 1) for _ in range(dice.randrange(4))}


def test_yaml_means_the_same_as_the_json() -> None:
    dice = random.Random(52)
    values = [{"text": text, text: [text]} for text in TEXTS]
    values += [{"a": some_value(dice), "b": some_value(dice)} for _ in range(300)]
    for value, text in zip(values, written(values), strict=True):
        assert yaml.safe_load(text) == value, text


def test_a_template_reads_as_people_write_it() -> None:
    template = {
        "outputs": {"address": {"value": {"get_attr": ["web", "first_address"]}}},
        "resources": {
            "web": {
                "type": "OS::Nova::Server",
                "properties": {
                    "user_data": "#!/bin/sh\necho hello\n",
                    "networks": [{"network": "net", "port": None}],
                },
            }
        },
        "heat_template_version": "2021-04-16",
    }
    assert written([template]) == [
        """\
heat_template_version: "2021-04-16"
resources:
  web:
    type: OS::Nova::Server
    properties:
      user_data: |
        #!/bin/sh
        echo hello
      networks:
        - network: net
          port: null
outputs:
  address:
    value:
      get_attr:
        - web
        - first_address
"""
    ]
