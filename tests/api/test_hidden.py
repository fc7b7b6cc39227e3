"""Values that any template of a tree declares hidden are in clear nowhere but in outputs and exports."""

import json
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from client.serving import Json, Service, fault
from harness.templates import one, template

HIDDEN = {"type": "string", "hidden": True}
PLAIN = {"type": "string", "default": "plain"}
CONFIG = "[DEFAULT]\ndebug = true\ndefault_log_levels = sqlalchemy=WARN\n"
TENANT = "hidden"
MARK = "@@"
"""The place of the secret in the templates below."""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Watched"]:
    folder = tmp_path_factory.mktemp("hidden")
    config = folder / "debug.conf"
    config.write_text(CONFIG)
    running = Service(folder, conductors=1, config=config)
    yield Watched(running, folder)
    running.stop()


@dataclass(frozen=True)
class Watched:
    """A Stoker whose whole disk is read."""

    service: Service
    folder: pathlib.Path

    def stored(self, marker: str) -> list[str]:
        """Files that contain it in clear: the database, its journal, the log."""
        files = [*self.folder.rglob("*.sqlite*"), *self.folder.rglob("*.log")]
        return [file.name for file in files if marker.encode() in file.read_bytes()]

    def update(self, path: str, method: str = "PUT", **body: Json) -> None:
        answer = self.service.call(method, path, body)
        assert answer.status == 202, answer
        assert self.service.settled(path)["stack_status"] == "UPDATE_COMPLETE", self.service.get(path)

    def nested(self, path: str) -> list[str]:
        """Paths of all stacks of the tree but the root."""
        nested = []
        below = [path]
        while below:
            for item in self.service.get(f"{below.pop()}/resources")["resources"]:
                links = [link["href"] for link in item["links"] if link["rel"] == "nested"]
                below += [href.removeprefix(self.service.url) for href in links]
                nested += below[len(below) - len(links) :]
        return nested

    def text_of(self, path: str) -> str:
        """All that the API shows of a tree to those who do not read values."""
        texts = []
        for stack in (path, *self.nested(path)):
            for part in ("", "/environment", "/files", "/template", "/events", "/resources", "/snapshots"):
                body = self.service.get(stack + part)
                body.get("stack", {}).pop("outputs", None)
                texts.append(json.dumps(body))
            for item in self.service.get(f"{stack}/resources")["resources"]:
                resource = self.service.get(f"{stack}/resources/{item['resource_name']}")["resource"]
                resource.pop("attributes")
                texts.append(json.dumps(resource))
        return "\n".join(texts)

    def output(self, path: str, name: str) -> Json:
        return self.service.get(f"{path}/outputs/{name}")["output"]["output_value"]

    def check(self, path: str, *markers: str) -> None:
        text = self.text_of(path)
        for marker in markers:
            assert marker not in text, text[max(0, text.index(marker) - 200) :][:400]
            assert self.stored(marker) == []


def nested(parameters: Json, use: str, **more: Json) -> str:
    """A template whose resource uses a parameter in all ways, and whose output gives what came of it."""
    resource = one(value={"get_param": use})
    resource["metadata"] = {"told": {"get_param": use}}
    sections = {"parameters": parameters, "outputs": {"said": {"value": {"get_attr": ["r", "output"]}}}}
    return json.dumps(template({"r": resource}, **{**sections, **more}))


def outer(child: Json, **sections: Json) -> Json:
    outputs = {"said": {"value": {"get_attr": ["child", "said"]}}}
    return template({"child": child}, **{"outputs": outputs, **sections})


@dataclass(frozen=True)
class Way:
    """One way in which a secret comes into a tree.

    :ivar fields: fields of the request.
    :ivar output: the value of the output, with the mark.
    """

    body: Json
    fields: Json = field(default_factory=dict)
    output: Json = MARK


CHILD = {"type": "child.yaml"}
HIDING_CHILD = {"child.yaml": nested({"password": HIDDEN}, "password")}
PLAIN_CHILD = {"child.yaml": nested({"password": PLAIN}, "password")}
OTHER_CHILD = {"child.yaml": nested({"other": PLAIN}, "other")}
DEFAULTS = {"parameter_defaults": {"password": MARK}}
ROOT = {"parameters": {"password": HIDDEN}}


def group(kind: str, member: Json, **properties: Json) -> Json:
    """A tree with a group whose member gets the secret; an output has the attribute of one member."""
    named = {"OS::Heat::ResourceGroup": "resource_def", "OS::Heat::AutoScalingGroup": "resource"}
    body = {"type": kind, "properties": {named[kind]: member, **properties}}
    outputs = {"said": {"value": {"get_attr": ["child", "outputs_list", "said"]}}}
    if kind == "OS::Heat::ResourceGroup":
        outputs = {"said": {"value": {"get_attr": ["child", "said"]}}}
    return template({"child": body}, outputs=outputs, **ROOT)


MEMBER = {"type": "child.yaml", "properties": {"other": {"get_param": "password"}}}
INLINE = {
    "type": "OS::Heat::Stack",
    "properties": {"template": nested({"password": HIDDEN}, "password")},
}
WAYS = {
    "nested hides, root's environment": Way(outer(CHILD), {"environment": DEFAULTS, "files": HIDING_CHILD}),
    "nested hides, environment file": Way(
        outer(CHILD),
        {
            "environment_files": ["env.yaml"],
            "files": {**HIDING_CHILD, "env.yaml": "parameter_defaults: {password: @@}"},
        },
    ),
    "root hides, child's environment": Way(
        outer(CHILD, **ROOT), {"environment": DEFAULTS, "files": PLAIN_CHILD}
    ),
    "root hides, handed to another name": Way(
        outer({**CHILD, "properties": {"other": {"get_param": "password"}}}, **ROOT),
        {"parameters": {"password": MARK}, "files": OTHER_CHILD},
    ),
    "nested hides, root has the same name": Way(
        outer(
            {**CHILD, "properties": {"password": {"get_param": "password"}}},
            parameters={"password": PLAIN},
        ),
        {"parameters": {"password": MARK}, "files": HIDING_CHILD},
    ),
    "what was made of it": Way(
        outer(
            {
                **CHILD,
                "properties": {"other": {"get_param": ["password", 0]}},
            },
            parameters={"password": {"type": "json", "hidden": True}},
        ),
        {"parameters": {"password": [MARK]}, "files": OTHER_CHILD},
    ),
    "two levels down": Way(
        outer({**CHILD, "properties": {"middle": {"get_param": "password"}}}, **ROOT),
        {
            "parameters": {"password": MARK},
            "files": {
                "child.yaml": json.dumps(
                    template(
                        {"n": {"type": "last.yaml", "properties": {"other": {"get_param": "middle"}}}},
                        parameters={"middle": PLAIN},
                        outputs={"said": {"value": {"get_attr": ["n", "said"]}}},
                    )
                ),
                "last.yaml": OTHER_CHILD["child.yaml"],
            },
        },
    ),
    "by the facade": Way(
        outer({**CHILD, "metadata": {"told": {"get_param": "password"}}}, **ROOT),
        {
            "parameters": {"password": MARK},
            "files": {
                "child.yaml": json.dumps(
                    template(
                        {
                            "r": {
                                "type": "OS::Heat::Value",
                                "properties": {"value": {"resource_facade": "metadata"}},
                            }
                        },
                        outputs={"said": {"value": {"get_attr": ["r", "value", "told"]}}},
                    )
                )
            },
        },
    ),
    "template in a property": Way(outer(INLINE), {"environment": DEFAULTS}),
    "template in a parameter": Way(
        outer(
            {"type": "OS::Heat::Stack", "properties": {"template": {"get_param": "text"}}},
            parameters={"text": {"type": "string"}},
        ),
        {
            "environment": DEFAULTS,
            "parameters": {"text": nested({"password": HIDDEN}, "password")},
        },
    ),
    "parameters of a stack in a property": Way(
        outer(
            {
                "type": "OS::Heat::Stack",
                "properties": {
                    "template": {"get_file": "child.yaml"},
                    "parameters": {"other": {"get_param": "password"}},
                },
            },
            **ROOT,
        ),
        {"parameters": {"password": MARK}, "files": OTHER_CHILD},
    ),
    "template known late": Way(
        template(
            {
                "v": {"type": "OS::Heat::Value", "properties": {"value": "true"}},
                "child": {
                    "type": "OS::Heat::Stack",
                    "properties": {
                        "template": {
                            "str_replace": {
                                "template": nested({"password": {**HIDDEN, "hidden": "$on"}}, "password"),
                                "params": {"$on": {"get_attr": ["v", "value"]}},
                            }
                        }
                    },
                },
            },
            outputs={"said": {"value": {"get_attr": ["child", "said"]}}},
        ),
        {"environment": DEFAULTS},
    ),
    "group": Way(
        group("OS::Heat::ResourceGroup", MEMBER, count=2),
        {"parameters": {"password": MARK}, "files": OTHER_CHILD},
        [MARK, MARK],
    ),
    "scaling group": Way(
        group("OS::Heat::AutoScalingGroup", MEMBER, max_size=2, min_size=1),
        {"parameters": {"password": MARK}, "files": OTHER_CHILD},
        [MARK],
    ),
    "group, nested hides": Way(
        group("OS::Heat::ResourceGroup", CHILD, count=1),
        {"environment": DEFAULTS, "files": HIDING_CHILD},
        [MARK],
    ),
}


def filled(value: Json, marker: str) -> Json:
    return json.loads(json.dumps(value).replace(MARK, marker))


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_nowhere_in_clear(watched: Watched, way: str) -> None:
    name = f"w{list(WAYS).index(way)}"
    way_in = WAYS[way]
    first, second, third = (f"planted-{name}-{number}-Qz7vKp" for number in (1, 2, 3))
    body = {"template": way_in.body, **way_in.fields}
    preview = watched.service.call(
        "POST", f"/v1/{TENANT}/stacks/preview", {"stack_name": name, **filled(body, first)}
    )
    assert preview.status == 200, preview
    assert first not in json.dumps(preview.body)
    path = watched.service.created(TENANT, name, **filled(body, first))
    assert watched.output(path, "said") == filled(way_in.output, first), "the secret was used"
    watched.check(path, first)

    changes = watched.service.call("PUT", f"{path}/preview?show_nested=true", filled(body, second))
    assert changes.status == 200, changes
    assert first not in json.dumps(changes.body)
    assert second not in json.dumps(changes.body)
    resource_changes = changes.body["resource_changes"]
    values = json.dumps(
        [item["property_changes"] for item in (*resource_changes["updated"], *resource_changes["replaced"])]
    )
    assert "******" in values
    watched.update(path, **filled(body, second))
    assert watched.output(path, "said") == filled(way_in.output, second)
    watched.check(path, first, second)
    watched.update(path, "PATCH", template=way_in.body)
    assert watched.output(path, "said") == filled(way_in.output, second)

    snapshot_id = watched.service.call("POST", f"{path}/snapshots", {"name": "kept"}).body["id"]
    assert watched.service.settled(path)["stack_status"] == "SNAPSHOT_COMPLETE"
    assert second not in json.dumps(watched.service.get(f"{path}/snapshots/{snapshot_id}"))
    watched.update(path, **filled(body, third))
    assert watched.service.call("POST", f"{path}/snapshots/{snapshot_id}/restore").status in (202, 204)
    assert watched.service.settled(path)["stack_status"] == "RESTORE_COMPLETE", watched.service.get(path)
    assert watched.output(path, "said") == filled(way_in.output, second)
    watched.check(path, first, second, third)

    exported = json.dumps(watched.service.get(f"{path}/export"))
    assert second in exported, "as in Heat: who exports a stack has its secrets"
    watched.check(path, second)


def refused(watched: Watched, body: Json, **fields: Json) -> str:
    sent = {"stack_name": "refused", "template": body, **filled(fields, SECRET)}
    answer = watched.service.call("POST", f"/v1/{TENANT}/stacks", sent)
    assert fault(answer) == (400, "StackValidationFailed"), answer
    assert SECRET not in json.dumps(answer.body)
    message: str = answer.error["message"]
    return message


SECRET = "planted-refused-Qz7vKp"
NAMED = {"r": {**one(), "external_id": {"get_param": "password"}}}


def test_a_hidden_value_is_refused_as_an_id(watched: Watched) -> None:
    text = "external_id: must not hold the value of a hidden parameter"
    fields = {"parameters": {"password": MARK}}
    assert f"resources.r.{text}" in refused(watched, template(NAMED, **ROOT), **fields)
    # Whoever declares it hidden, and under whatever name it comes there.
    child = template({"r": {**one(), "external_id": {"get_param": "other"}}}, parameters={"other": PLAIN})
    below = outer({**CHILD, "properties": {"other": {"get_param": "password"}}}, outputs={}, **ROOT)
    message = refused(watched, below, files={"child.yaml": json.dumps(child)}, **fields)
    assert f"resources.child.resources.r.{text}" in message
    root = template(
        {**NAMED, "child": {**CHILD, "properties": {"password": {"get_param": "password"}}}},
        parameters={"password": PLAIN},
    )
    assert f"resources.r.{text}" in refused(watched, root, files=HIDING_CHILD, **fields)
    assert watched.stored(SECRET) == []


def test_a_hidden_value_that_is_an_id_only_at_last_fails_the_resource(watched: Watched) -> None:
    body = template(
        {
            "v": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "password"}}},
            "r": {**one(), "external_id": {"get_attr": ["v", "value"]}},
        },
        **ROOT,
    )
    path = watched.service.create(TENANT, "late", body, parameters={"password": SECRET})
    stack = watched.service.settled(path)
    assert stack["stack_status"] == "CREATE_FAILED"
    assert "external_id must not be a secret" in stack["stack_status_reason"]
    watched.check(path, SECRET)


def test_a_template_must_not_contain_a_hidden_value(watched: Watched) -> None:
    inner_template = {
        "str_replace": {"template": OTHER_CHILD["child.yaml"], "params": {"plain": {"get_param": "password"}}}
    }
    body = template({"c": {"type": "OS::Heat::Stack", "properties": {"template": inner_template}}}, **ROOT)
    message = refused(watched, body, parameters={"password": MARK})
    assert "resources.c.properties.template: must not contain the value of a hidden parameter" in message


def test_environment_files_that_name_a_hidden_parameter_are_not_stored(watched: Watched) -> None:
    files = {
        **HIDING_CHILD,
        "secret.yaml": f"parameter_defaults: {{password: {SECRET}}}",
        "plain.yaml": "parameter_defaults: {another: value}",
    }
    fields = {"files": files, "environment_files": ["plain.yaml", "secret.yaml"]}
    path = watched.service.created(TENANT, "merged", outer(CHILD), **fields)
    assert set(watched.service.get(f"{path}/files")) == {"child.yaml", "plain.yaml"}
    environment = watched.service.get(f"{path}/environment")
    assert environment["parameter_defaults"] == {"another": "value", "password": "******"}
    assert environment["encrypted_param_names"] == ["password"]
    watched.update(path, "PATCH", template=outer(CHILD), parameters={})
    assert watched.output(path, "said") == SECRET
    watched.check(path, SECRET)


def test_parameters_that_are_not_hidden_are_shown_in_a_nested_stack(watched: Watched) -> None:
    body = outer(
        {**CHILD, "properties": {"other": {"get_param": "plain"}}},
        parameters={"plain": {"type": "string"}, "password": HIDDEN},
    )
    parameters = {"plain": "in-the-open", "password": SECRET}
    path = watched.service.created(TENANT, "open", body, parameters=parameters, files=OTHER_CHILD)
    [child] = watched.nested(path)
    assert watched.service.get(child)["stack"]["parameters"]["other"] == "in-the-open"


GROUPS = {
    "OS::Heat::ResourceGroup": {"count": 1},
    "OS::Heat::AutoScalingGroup": {"max_size": 1, "min_size": 1},
}


@pytest.mark.parametrize("kind", GROUPS)
def test_hidden_values_without_a_text_and_the_size_of_a_hidden_list_are_in_no_groups_template(
    watched: Watched, kind: str
) -> None:
    hidden = ("on", "words", "empty", "nothing")
    use = {"value": {**{name: {"get_param": name} for name in hidden}, "plain": ["in-the-open"]}}
    body = group(kind, {"type": "OS::Heat::Value", "properties": use}, **GROUPS[kind])
    body["parameters"] = {
        "on": {"type": "boolean", "hidden": True},
        "words": {"type": "comma_delimited_list", "hidden": True},
        "empty": {"type": "string", "hidden": True},
        "nothing": {"type": "json", "hidden": True},
    }
    body["outputs"] = {"said": {"value": {"get_attr": ["child", "outputs_list", "value"]}}}
    if kind == "OS::Heat::ResourceGroup":
        body["outputs"] = {"said": {"value": {"get_attr": ["child", "value"]}}}
    values = {"on": True, "words": "one,two,three", "empty": "", "nothing": {}}
    path = watched.service.created(TENANT, f"whole-{len(kind)}", body, parameters=values)
    expected = {**values, "words": ["one", "two", "three"], "plain": ["in-the-open"]}
    assert watched.output(path, "said") == [expected]
    [child] = watched.nested(path)
    [member] = watched.service.get(f"{child}/template")["resources"].values()
    value = member["properties"]["value"]
    assert [list(value[name]) for name in hidden] == [["get_param"]] * len(hidden)
    assert value["plain"] == ["in-the-open"]
    assert set(watched.service.get(child)["stack"]["parameters"].values()) >= {"******"}
    watched.update(path, "PATCH", template=body, parameters={"on": False})
    assert watched.output(path, "said") == [{**expected, "on": False}]


def test_a_group_whose_size_is_known_late_hides_nothing(watched: Watched) -> None:
    body = group("OS::Heat::ResourceGroup", MEMBER, count={"get_attr": ["size", "value"]})
    body["resources"]["size"] = {"type": "OS::Heat::Value", "properties": {"value": 1}}
    fields = {"files": OTHER_CHILD, "environment": {"parameter_defaults": {"another": "in-the-open"}}}
    path = watched.service.created(TENANT, "late-size", body, parameters={"password": SECRET}, **fields)
    environment = watched.service.get(f"{path}/environment")
    assert environment["parameter_defaults"] == {"another": "in-the-open"}
    watched.check(path, SECRET)
