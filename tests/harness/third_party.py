"""A package of resource types that is installed beside Stoker, for the processes of a test."""

import os
import pathlib

TESTS = pathlib.Path(__file__).parents[1]


def with_plugins(directory: pathlib.Path, module: str = "harness.plugins") -> dict[str, str]:
    """The environment of a process that finds the types of a module by their entry point.

    :param directory: gets the package's metadata.
    """
    metadata = directory / "harness_plugins-1.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: harness-plugins\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        f"[stoker.resource_types]\nharness = {module}:RESOURCE_TYPES\n"
    )
    # Where the tests are run of a copy that is not the installed one.
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(directory), str(TESTS), *([inherited] if inherited else [])])}
