"""How many templates of a folder would run, and what the others lack: each is validated, nothing is created.

Usage:
    python benchmarks/coverage.py DIRECTORY…        such as clones of public repositories
    options: -v (a line for each template)   --json FILE   --config FILE (of Stoker, as with environment_dir)

Templates in HOT and in CloudFormation's format are judged by a Stoker that this program starts.  Parameters
without a default get values by their definitions and by the properties that they end up in.  Nothing is asked
of a cloud, so names of images and the like count as right.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import sys
import tempfile
import typing
from collections.abc import Iterator, Mapping, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from client.serving import PATIENT, Service
from harness.cloud.checkout import SUFFIXES, Checkout, Sample, read
from stoker.resources.registry import ResourceRegistry
from stoker.resources.rendering import resource_type_schema

Json = typing.Any
HOT = "heat_template_version"
FORMATS = ("AWSTemplateFormatVersion", "HeatTemplateFormatVersion")
RUNS = "would run"
LACKS = "lacks types"
REFUSED = "refused"
UNREADABLE = "unreadable"
LONGEST_REASON = 110
MISSING = ("is not available for resource type", "could not be found")
"""Words of a message about a type that is missing."""
VALUES: Mapping[str, Json] = {"Number": 1, "CommaDelimitedList": "some", "Json": {}, "Boolean": True}
"""Values for parameters of CloudFormation's format, by their types; all others are texts."""


@dataclasses.dataclass(frozen=True)
class Judged:
    """A template and its result.

    :ivar reason: why it would not run; types that are missing, or Stoker's message.
    """

    name: str
    result: str
    reason: str = ""
    lacks: tuple[str, ...] = ()


class Judge:
    """Validates templates."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = ResourceRegistry.installed()
        self._types = frozenset(self._registry.names())
        offered = service.get("/v1/coverage/resource_types")["resource_types"]
        self._offered = self._types | frozenset(offered)

    def schema(self, name: str) -> Mapping[str, Json]:
        """Return the properties of a type; none for one that Stoker does not have."""
        if name not in self._types:
            return {}
        properties: Mapping[str, Json] = resource_type_schema(name, self._registry.get(name))["properties"]
        return properties

    def judge(self, name: str, types: frozenset[str], body: Json) -> Judged:
        """Return the result of one template."""
        answer = self._service.call("POST", "/v1/coverage/validate", body)
        if answer.status == 200:
            return Judged(name, RUNS)
        text = answer.error["message"] if isinstance(answer.body, dict) else str(answer.body)
        lacks = tuple(sorted(each for each in types - self._offered if each not in self._registry))
        if lacks and any(words in text for words in MISSING):
            return Judged(name, LACKS, ", ".join(lacks), lacks)
        return Judged(name, REFUSED, " ".join(text.split()))


def judged(judge: Judge, folder: pathlib.Path) -> Iterator[Judged]:
    """Yield the results of all templates below a folder."""
    for sample in Checkout(folder, {}, judge.schema).samples("*"):
        if not isinstance(sample, Sample):
            yield Judged(f"{folder.name}/{sample[0]}", UNREADABLE, sample[1])
            continue
        environment = {**sample.environment, "parameters": _chosen(sample)}
        body = {"template": sample.template, "files": sample.files, "environment": environment}
        yield judge.judge(f"{folder.name}/{sample.name}", sample.types, body)
    files = (path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file())
    for path in files:
        name = f"{folder.name}/{path.relative_to(folder)}"
        template = read(path)
        if template is None and any(each in path.read_text(errors="replace") for each in (HOT, *FORMATS)):
            yield Judged(name, UNREADABLE, "it is no YAML")
        elif isinstance(template, dict) and any(each in template for each in FORMATS):
            body = {"template": template, "environment": {"parameters": _values(template)}}
            yield judge.judge(name, _types(template), body)


def _chosen(sample: Sample) -> dict[str, Json]:
    """Return values for the parameters of a template; none where its sections are of a wrong form."""
    try:
        return _json(sample.parameters())
    except Exception:  # noqa: BLE001 - anything may be there; Stoker's refusal says what
        return {}


def _types(template: Mapping[str, Json]) -> frozenset[str]:
    """Return the types of the resources of a template of CloudFormation's format."""
    bodies = [body for _, body in _entries(template, "Resources")]
    return frozenset(str(body["Type"]) for body in bodies if "::" in str(body.get("Type")))


def _values(template: Mapping[str, Json]) -> dict[str, Json]:
    """Return values for the parameters of a template of CloudFormation's format that have no default."""
    values: dict[str, Json] = {}
    for name, definition in _entries(template, "Parameters"):
        if "Default" not in definition:
            allowed = definition.get("AllowedValues")
            value = VALUES.get(str(definition.get("Type")), "Some1text2")
            values[name] = allowed[0] if isinstance(allowed, list) and allowed else value
    return values


def _entries(template: Mapping[str, Json], section: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield names and definitions of a section, without those of a wrong form, which Stoker refuses."""
    entries = template.get(section)
    for name, definition in entries.items() if isinstance(entries, dict) else ():
        if isinstance(definition, dict):
            yield name, definition


def _json(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return values without what JSON does not have, such as dates."""
    return dict(json.loads(json.dumps(values, default=str)))


def report(results: Sequence[Judged]) -> None:
    """Print how many would run, and what the others lack."""
    counts = collections.Counter(each.result for each in results)
    share = 100 * counts[RUNS] / len(results)
    print(f"{len(results)} templates; {counts[RUNS]} would run ({share:.1f} %)")
    if others := [f"{counts[name]} {name}" for name in (LACKS, REFUSED, UNREADABLE) if counts[name]]:
        print(", ".join(others))
    lacks = collections.Counter(name for each in results for name in each.lacks)
    reasons = collections.Counter(
        each.reason[:LONGEST_REASON] for each in results if each.result in (REFUSED, UNREADABLE)
    )
    for title, counter in (("missing types, by templates", lacks), ("reasons, by templates", reasons)):
        if counter:
            print(f"{title}:")
            print("\n".join(f"{count:5} {text}" for text, count in counter.most_common()))


def main() -> int:
    """Judge the templates; the exit code is 2 where there are none."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("-v", action="store_true", dest="verbose", help="print a line for each template")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--config", type=pathlib.Path, metavar="FILE", help="more of Stoker's configuration")
    options = parser.parse_args()
    for folder in options.folders:
        if not folder.is_dir():
            parser.error(f"{folder} is no directory")
    results: list[Judged] = []
    with tempfile.TemporaryDirectory(prefix="stoker-coverage-") as name:
        service = Service(pathlib.Path(name), conductors=1, config=options.config, env=PATIENT)
        try:
            judge = Judge(service)
            for folder in options.folders:
                for each in judged(judge, folder.resolve()):
                    results.append(each)
                    if options.verbose:
                        print(f"{each.name:60} {each.result:12} {each.reason[:300]}", flush=True)
        finally:
            service.stop()
    if not results:
        folders = ", ".join(map(str, options.folders))
        print(f"no templates below {folders}: none has {HOT} or {FORMATS[0]}", file=sys.stderr)
        return 2
    report(results)
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(each) for each in results]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
