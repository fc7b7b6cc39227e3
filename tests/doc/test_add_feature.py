"""The diffs of doc/add_feature.md are applied to a copy of the tree, whose API then shows the feature."""

import re
from collections.abc import Iterator

import pytest
from client.serving import Service
from doc.test_doors import apply, copy
from harness.processes import Process
from harness.sources import ROOT

DIFFS = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "doc" / "add_feature.md").read_text(), re.M | re.S)
TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "OS::Heat::None"}}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of the tree with the feature."""
    tree = copy(tmp_path_factory.mktemp("feature"))
    for diff in DIFFS:
        apply(diff, tree)
    env = {"PYTHONPATH": str(tree.parent)}
    running = Service(tmp_path_factory.mktemp("service"), conductors=1, env=env, kind=Process)
    yield running
    running.stop()


def test_what_the_kernel_knows_of_the_feature_is_its_line_in_the_list() -> None:
    files = re.findall(r"^diff --git a/(\S+)", "".join(DIFFS), re.MULTILINE)
    assert [name for name in files if not name.startswith("features/backlog/")] == ["cli/features.py"]


def test_the_route_answers_and_the_list_has_the_column(service: Service) -> None:
    path = service.created("t", "s", TEMPLATE)
    assert service.get(f"{path}/backlog") == {"backlog": {"open_tasks": 0}}
    [listed] = service.get("/v1/t/stacks")["stacks"]
    assert listed["open_tasks"] == 0
