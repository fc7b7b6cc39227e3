"""A package of resource types that is installed beside Stoker, for the processes of a test."""

import pathlib

TESTS = pathlib.Path(__file__).parents[1]


def with_plugins(directory: pathlib.Path) -> dict[str, str]:
    """The environment of a process that finds the types of harness/plugins.py by their entry point.

    :param directory: gets the package's metadata.
    """
    metadata = directory / "harness_plugins-1.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: harness-plugins\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[stoker.resource_types]\nharness = harness.plugins:RESOURCE_TYPES\n"
    )
    return {"PYTHONPATH": f"{directory}:{TESTS}"}
