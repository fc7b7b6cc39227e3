"""Lists of stacks: filters, tags, sorting and paging as Heat has them."""

import dataclasses
import urllib.parse
from collections.abc import Iterator

import pytest
from client.serving import Json, Service, fault
from harness.templates import flat, one, template

TAGS = {"ant": "small,red", "bee": "small", "cat": "red,furry", "dog": None}


@dataclasses.dataclass(frozen=True)
class Zoo:
    """Four stacks of a project, made in this order; "dog" failed, and "eel" is deleted."""

    service: Service
    tenant: str
    paths: dict[str, str]

    def url(self, **query: Json) -> str:
        return f"/v1/{self.tenant}/stacks?{urllib.parse.urlencode(query, doseq=True)}"

    def names(self, **query: Json) -> list[str]:
        return [stack["stack_name"] for stack in self.service.get(self.url(**query))["stacks"]]

    def id(self, name: str) -> str:
        return self.paths[name].rsplit("/", 1)[1]


@pytest.fixture(scope="module")
def zoo(service: Service) -> Iterator[Zoo]:
    paths = {}
    for name, tags in TAGS.items():
        body = template({"r": one(fail=True)}) if name == "dog" else flat(1)
        paths[name] = service.create("zoo", name, body, tags=tags)
    paths["eel"] = service.created("zoo", "eel", flat(1))
    service.call("DELETE", paths["eel"])
    for path in paths.values():
        service.settled(path)
    return Zoo(service, "zoo", paths)


def test_the_newest_comes_first_and_a_listed_stack_has_heats_fields(zoo: Zoo) -> None:
    assert zoo.names() == ["dog", "cat", "bee", "ant"]
    stack = zoo.service.get(zoo.url(name="ant"))["stacks"][0]
    assert set(stack) == {
        "id",
        "links",
        "stack_name",
        "description",
        "stack_status",
        "stack_status_reason",
        "creation_time",
        "updated_time",
        "deletion_time",
        "stack_owner",
        "parent",
        "stack_user_project_id",
        "tags",
    }
    assert stack["links"] == [{"href": zoo.service.url + zoo.paths["ant"], "rel": "self"}]
    assert stack["tags"] == ["small", "red"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"name": "bee"}, ["bee"]),
        ({"name": ["bee", "cat"]}, ["cat", "bee"]),
        ({"stack_name": "bee"}, ["bee"]),
        ({"name": "be"}, []),
        ({"name": ""}, ["dog", "cat", "bee", "ant"]),
        ({"status": "FAILED"}, ["dog"]),
        ({"status": "CREATE_FAILED"}, ["dog"]),
        ({"stack_status": "CREATE_COMPLETE"}, ["cat", "bee", "ant"]),
        ({"status": "DELETE_COMPLETE"}, []),
        ({"status": ["FAILED", "COMPLETE"]}, ["dog", "cat", "bee", "ant"]),
        ({"status": "IN_PROGRESS"}, []),
        ({"status": "CREATE_IN_PROGRESS"}, []),
        ({"status": "NONSENSE"}, []),
        ({"action": "CREATE", "status": "FAILED"}, ["dog"]),
        ({"action": "DELETE"}, []),
        ({"tags": "small"}, ["bee", "ant"]),
        ({"tags": "small,red"}, ["ant"]),
        ({"tags_any": "small,furry"}, ["cat", "bee", "ant"]),
        ({"not_tags": "small,red"}, ["dog", "cat", "bee"]),
        ({"not_tags_any": "small,furry"}, ["dog"]),
        ({"tags": "red", "not_tags_any": "furry"}, ["ant"]),
        ({"owner_id": "nobody"}, []),
        ({"username": "nobody"}, []),
        ({"tenant": "zoo"}, ["dog", "cat", "bee", "ant"]),
        ({"tenant": "another"}, []),
        ({"show_deleted": "True", "name": "eel"}, ["eel"]),
        ({"show_deleted": "True", "action": "DELETE"}, ["eel"]),
        ({"show_nested": "True"}, ["dog", "cat", "bee", "ant"]),
        ({"sort_keys": "name", "sort_dir": "asc"}, ["ant", "bee", "cat", "dog"]),
        ({"sort_keys": "stack_name", "sort_dir": "desc"}, ["dog", "cat", "bee", "ant"]),
        ({"sort_keys": ["status", "name"]}, ["ant", "bee", "cat", "dog"]),
        ({"sort_keys": "creation_time"}, ["ant", "bee", "cat", "dog"]),
        ({"sort_dir": "asc"}, ["ant", "bee", "cat", "dog"]),
        ({"nonsense": "is ignored"}, ["dog", "cat", "bee", "ant"]),
        ({"sort_keys": "colour"}, ["dog", "cat", "bee", "ant"]),
        ({"sort_keys": "colour,name"}, ["ant", "bee", "cat", "dog"]),
        ({"limit": 0}, []),
    ],
)
def test_filters_and_sorting(zoo: Zoo, query: Json, names: list[str]) -> None:
    assert zoo.names(**query) == names


def test_a_stack_is_filtered_by_its_id(zoo: Zoo) -> None:
    assert zoo.names(id=zoo.id("cat")) == ["cat"]


@pytest.mark.parametrize("order", [{}, {"sort_keys": "name"}, {"sort_keys": "updated_time"}])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_following_the_links_shows_each_stack_once(zoo: Zoo, size: int, order: Json) -> None:
    names = []
    url = zoo.url(limit=size, **order)
    for _ in range(10):
        page = zoo.service.get(url)
        names += [stack["stack_name"] for stack in page["stacks"]]
        if "links" not in page:
            break
        (link,) = page["links"]
        assert link["rel"] == "next"
        assert f"limit={size}" in link["href"]
        url = link["href"]
    assert names == zoo.names(**order)


def test_a_marker_may_be_deleted_meanwhile(zoo: Zoo) -> None:
    assert zoo.names(marker=zoo.id("eel")) == ["dog", "cat", "bee", "ant"]
    assert zoo.names(marker=zoo.id("bee")) == ["ant"]


def test_a_marker_of_another_project_is_none(zoo: Zoo, tenant: str) -> None:
    answer = zoo.service.call("GET", f"/v1/{tenant}/stacks?marker={zoo.id('bee')}")
    assert fault(answer) == (400, "HTTPBadRequest")
    assert zoo.id("bee") in answer.error["message"]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, 4),
        ({"limit": 1}, 4),
        ({"tags": "small"}, 2),
        ({"show_deleted": "true"}, 5),
        ({"name": "none"}, 0),
    ],
)
def test_the_count_is_of_all_that_fit_whatever_the_page(zoo: Zoo, query: Json, count: int) -> None:
    assert zoo.service.get(zoo.url(with_count="True", **query))["count"] == count
    assert "count" not in zoo.service.get(zoo.url(**query))


def test_however_often_a_key_is_named_it_sorts_once(zoo: Zoo) -> None:
    often = ",".join(["status", "name"] * 250)
    for order in ("asc", "desc"):
        assert zoo.names(sort_keys=often, sort_dir=order) == zoo.names(
            sort_keys="status,name", sort_dir=order
        )
    first = zoo.id(zoo.names(sort_keys="status,name")[0])
    assert zoo.names(sort_keys=often, marker=first) == zoo.names(sort_keys="status,name", marker=first)


@pytest.mark.parametrize("name", ["tags", "tags_any", "not_tags", "not_tags_any", "sort_keys"])
def test_the_values_of_a_parameter_are_limited(zoo: Zoo, name: str) -> None:
    tags = ",".join(f"t{number}" for number in range(500))
    if name != "sort_keys":
        zoo.names(**{name: tags})
    answer = zoo.service.call("GET", zoo.url(**{name: f"{tags},small"}))
    assert fault(answer) == (400, "HTTPBadRequest")
    assert answer.error["message"] == f'"{name}" has 501 values, above the limit of 500'


def test_repeated_values_of_filters_are_limited(zoo: Zoo) -> None:
    answer = zoo.service.call("GET", zoo.url(name=["a"] * 501))
    assert fault(answer) == (400, "HTTPBadRequest")
    assert '"name"' in answer.error["message"]


def test_nobody_lists_the_stacks_of_all_projects(zoo: Zoo) -> None:
    answer = zoo.service.call("GET", zoo.url(global_tenant="True"))
    assert fault(answer) == (403, "Forbidden")
    assert zoo.names(global_tenant="False") == ["dog", "cat", "bee", "ant"]


def test_the_detailed_list_also_has_the_parameters(zoo: Zoo) -> None:
    stacks = zoo.service.get(f"/v1/{zoo.tenant}/stacks/detail?name=ant")["stacks"]
    assert [stack["stack_name"] for stack in stacks] == ["ant"]
    assert stacks[0]["parameters"]["OS::stack_id"] == zoo.id("ant")
    assert "outputs" not in stacks[0]


def test_a_project_without_stacks_has_an_empty_list(service: Service, tenant: str) -> None:
    assert service.get(f"/v1/{tenant}/stacks?with_count=true&limit=5") == {"stacks": [], "count": 0}
