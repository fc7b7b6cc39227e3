"""Mutations: a document of the corpus, and what a string of bytes does to it.

Hypothesis chooses the bytes, and makes them fewer and smaller where an input breaks the law.
"""

import copy
import json
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

from hypothesis import strategies as st

Json = typing.Any
MOST_BYTES = 40
"""Bytes that choose: some eight edits."""
LONG = "x" * 70_000


def nested(depth: int, *, inside: Json = "x") -> Json:
    """Return a value in that many lists."""
    for _ in range(depth):
        inside = [inside]
    return inside


SCALARS: Sequence[Json] = (
    *(None, True, False, 0, -1, 1, 1.5, 2**31, 2**63, 10**30, 1e300, -0.0),
    *(
        "",
        " ",
        "0",
        "-1",
        "1e9",
        "true",
        "null",
        "x",
        "a,b",
        "\0",
        "\ud7ff",
        "😀" * 40,
        "é%00",
        "../..",
        "%s%n",
    ),
    *(
        "{",
        "[",
        "(a+)+$",
        "2018-08-31",
        "rocky",
        "9999-99-99",
        "OS::Heat::Value",
        "OS::Nova::Server",
        "Mémoire",
    ),
    *(
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "192.0.2.1/33",
        "::/129",
        "\u202e",
        LONG,
        "1:1:1",
        "0x1f",
        "~",
    ),
    *("a.yaml", "$ENV", "%index%", "[a, b]", "{a: b}", "!!python/object:os.system x", "2020-01-01T00:00:00Z"),
)
EXPRESSIONS: Sequence[Json] = (
    {"get_param": "p"},
    {"get_param": ["p", 0, "x"]},
    {"get_param": "OS::stack_id"},
    {"get_param": "AWS::Region"},
    {"get_resource": "r"},
    {"get_attr": ["r", "value"]},
    {"get_attr": ["r", "show", "a", 0]},
    {"get_attr": []},
    {"get_file": "a.yaml"},
    {"str_replace": {"template": "a b", "params": {"a": "b", "b": {"get_param": "p"}}}},
    {"str_replace_strict": {"template": "x", "params": {"y": "z"}}},
    {"str_replace_vstrict": {"template": "x", "params": {"x": ""}}},
    {"str_split": [",", "a,b", 5]},
    {"list_join": [",", ["a", {"get_param": "p"}], [1]]},
    {"list_concat": [["a"], {"get_param": "p"}]},
    {"list_concat_unique": [["a", "a"], None]},
    {"map_merge": [{"a": 1}, None, {"a": {"b": 2}}]},
    {"map_replace": [{"a": 1}, {"keys": {"a": "b"}, "values": {"1": 2}}]},
    {"repeat": {"template": "%a%-%b%", "for_each": {"%a%": [1, 2], "%b%": {"get_param": "p"}}}},
    {"repeat": {"template": {"%a%": "%a%"}, "for_each": {"%a%": {"get_param": "p"}}, "permutations": False}},
    {"digest": ["md5", "x"]},
    {"digest": ["nonsense", "x"]},
    {"resource_facade": "metadata"},
    {"yaql": {"expression": "$.data.a.sum()", "data": {"a": [1, 2]}}},
    {"yaql": {"expression": "1 / 0", "data": {}}},
    {"yaql": {"expression": "$.data.where($ > 1", "data": {"get_param": "p"}}},
    {"equals": [1, {"get_param": "p"}]},
    {"if": ["c", "a", {"get_param": "p"}]},
    {"if": [{"not": True}, "a"]},
    {"not": "c"},
    {"and": ["c", {"equals": ["a", "a"]}]},
    {"or": []},
    {"contains": ["a", ["a", "b"]]},
    {"filter": [["a"], ["a", None]]},
    {"make_url": {"scheme": "http", "host": "h", "port": 80, "query": {"a": "b"}}},
    {"Fn::Select": ["0", ["a"]]},
    {"Fn::Join": ["", ["a", {"Ref": "p"}]]},
    {"Fn::GetAtt": ["r", "value"]},
    {"Fn::If": ["c", "a", "b"]},
    {"Fn::FindInMap": ["m", "a", "b"]},
    {"Fn::Base64": "x"},
    {"Fn::Split": [",", "a,b"]},
    {"Fn::Replace": [{"a": "b"}, "a"]},
    {"Fn::MemberListToMap": ["Name", "Value", [".member.0.Name=a", ".member.0.Value=b"]]},
    {"Fn::ResourceFacade": "DeletionPolicy"},
    {"Ref": "AWS::StackName"},
    nested(20),
    nested(120),
    ["a"] * 3000,
    {f"k{index}": index for index in range(1500)},
)
NAMES: Sequence[str] = (
    *(
        "",
        "x",
        "get_param",
        "Ref",
        "type",
        "properties",
        "resources",
        "depends_on",
        "condition",
        "conditions",
    ),
    *(
        "parameters",
        "default",
        "constraints",
        "allowed_pattern",
        "range",
        "length",
        "allowed_values",
        "modulo",
    ),
    *("custom_constraint", "outputs", "value", "metadata", "update_policy", "deletion_policy", "external_id"),
    *("immutable", "hidden", "label", "parameter_groups", "parameter_defaults", "resource_registry", "hooks"),
    *(
        "restricted_actions",
        "event_sinks",
        "heat_template_version",
        "encrypted_param_names",
        "Fn::If",
        "Mappings",
    ),
    *(
        "parameter_merge_strategies",
        "é",
        "a.b",
        "a/b",
        "\0",
        "OS::*",
        "*",
        "%a%",
        "$fn",
        "args",
        LONG,
        "__class__",
    ),
)


class Choices:
    """Reads numbers from a string of bytes; after its end all are 0."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def more(self) -> bool:
        """Return whether there are bytes left."""
        return self._at < len(self._data)

    def below(self, count: int) -> int:
        """Return a number from 0 to below the count."""
        size = 1 if count <= 256 else 2
        number = int.from_bytes(self._data[self._at : self._at + size].ljust(size, b"\0"))
        self._at += size
        return number % count

    def one(self, values: Sequence[Json]) -> Json:
        """Return one of the values."""
        return values[self.below(len(values))]


class Mutations:
    """Strategies of mutated documents.

    :param corpus: the documents, as JSON.
    :param donors: the values that documents get; None: those of the corpus.
    """

    def __init__(self, corpus: Sequence[Json], donors: Sequence[str] | None = None) -> None:
        self._texts = [json.dumps(document) for document in corpus]
        self._donors = donors_of(corpus) if donors is None else donors

    def inputs(self) -> st.SearchStrategy[Json]:
        """Return mutated documents."""
        return st.binary(min_size=2, max_size=MOST_BYTES).map(self.of_bytes)

    def of_bytes(self, data: bytes) -> Json:
        """Return the document that some bytes choose and edit."""
        choices = Choices(data)
        document = json.loads(choices.one(self._texts))
        self.edit(document, choices)
        return document

    def edit(self, document: Json, choices: Choices) -> None:
        """Edit a document as long as there are bytes."""
        while choices.more:
            # What is outermost is left as it is, where there is more: all else would be refused with it.
            nodes = list(places(document))
            nodes = [node for node in nodes if node[0] is not document] or nodes
            if not nodes:
                return
            container, key = choices.one(nodes)
            edit = choices.one(EDITS)
            edit(self, container, key, choices)

    def value(self, choices: Choices) -> Json:
        """Return a value: a scalar, an expression, or a part of some document of the corpus."""
        kind = choices.below(4)
        if kind == 0:
            return copy.deepcopy(choices.one(EXPRESSIONS))
        return json.loads(choices.one(self._donors)) if kind == 1 else choices.one(SCALARS)

    def replace(self, container: Json, key: Json, choices: Choices) -> None:
        """Replace a value."""
        container[key] = self.value(choices)

    def remove(self, container: Json, key: Json, choices: Choices) -> None:
        """Remove an entry."""
        del container[key]

    def add(self, container: Json, key: Json, choices: Choices) -> None:
        """Add an entry next to another."""
        if isinstance(container, list):
            container.insert(key, self.value(choices))
        else:
            container[choices.one(NAMES)] = self.value(choices)

    def rename(self, container: Json, key: Json, choices: Choices) -> None:
        """Give an entry another name, or a copy of it."""
        if isinstance(container, list):
            container.append(container[key])
        else:
            container[choices.one(NAMES)] = container.pop(key)

    def wrap(self, container: Json, key: Json, choices: Choices) -> None:
        """Put a value into a map or a list."""
        value = container[key]
        container[key] = [value] if choices.below(2) else {choices.one(NAMES): value}

    def cut(self, container: Json, key: Json, choices: Choices) -> None:
        """Change a text in its middle."""
        value = container[key]
        if not isinstance(value, str):
            self.replace(container, key, choices)
            return
        at = choices.below(len(value) + 1)
        splinter = str(choices.one(SPLINTERS))
        container[key] = value[:at] + splinter + value[at + choices.below(4) :]


def donors_of(corpus: Sequence[Json]) -> Sequence[str]:
    """Return all parts of documents, as texts."""
    return [json.dumps(container[key]) for document in corpus for container, key in places(document)]


SPLINTERS = (
    *(
        "",
        "\n",
        " ",
        "\t",
        ":",
        ": ",
        "- ",
        "&a ",
        "*a",
        "<<: *a",
        "{",
        "}",
        "[",
        "]",
        "!",
        "!!binary ",
        "%",
        "#",
    ),
    *(
        "'",
        '"',
        "|",
        ">",
        "?",
        "\0",
        "\\",
        "$",
        "---\n",
        "...\n",
        "%TAG ! x\n",
        "é",
        "\ud7ff",
        "0",
        ",",
        "@",
        "`",
    ),
)
Edit = Callable[[Mutations, Json, Json, Choices], None]
EDITS: Sequence[Edit] = (
    *(Mutations.replace, Mutations.replace, Mutations.replace, Mutations.remove),
    *(Mutations.add, Mutations.rename, Mutations.wrap, Mutations.cut),
)


def places(document: Json) -> Iterator[tuple[Json, Json]]:
    """Yield each container of a document with each of its keys; outer ones come first."""
    level = [document]
    while level:
        inner = []
        for container in level:
            if isinstance(container, Mapping | list):
                keys = list(container) if isinstance(container, Mapping) else range(len(container))
                for key in keys[:200]:
                    yield container, key
                    inner.append(container[key])
        level = inner
