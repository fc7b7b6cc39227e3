"""Warnings about a template that is valid; pure."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from ...shapes import Json, JsonMap
from ...template.errors import TemplateError, dotted, not_provided
from ...template.formats import find_version, section_of
from ...template.language import CompiledTemplate, Path, Version
from ...template.load import repeated_keys
from ...template.parameters import find_unfit_defaults
from ...template.residual import ARGS, FN, nodes
from ...template.suggestions import closest, nearest

MOST_WARNINGS = 50
_LONGEST = 500
"""Characters of a warning: users choose the names in it."""
_MOST_COMPARED = 1000
"""Words that are compared with the functions: a large template may have many."""
_ALIKE = 0.85
"""Likeness from which a word is taken for a misspelt function; difflib's, 1.0: the same."""
_OUTPUT_KEYS = ("value", "description", "condition")


def find_warnings(
    template: JsonMap,
    plan: CompiledTemplate,
    unknown: Collection[str] = (),
    nested: Sequence[TemplateError] = (),
) -> list[str]:
    """Return the probable mistakes in a valid template, each with its path; 50 at most.

    :param plan: the compiled template.
    :param unknown: names of parameters that have no values.
    :param nested: problems in nested stacks that need not last.
    """
    version = find_version(template)
    findings = [*map(str, nested), *_unfit(template), *_misspelt(template, version), *_ignored(template)]
    return _bounded(
        [*findings, *_undeclared(template, plan), *_failing(plan, unknown), *_unused(template, plan)]
    )


def find_repeated(texts: Mapping[str, str]) -> list[str]:
    """Return the keys that a map of a YAML document has more than once; 50 at most.

    :param texts: the texts of loaded documents, by their names.
    """
    repeated = (
        f'{name}: the key "{key}" is in its map twice, again in line {line}; the last one counts'
        for name, text in texts.items()
        for key, line in repeated_keys(text)
    )
    return _bounded(list(itertools.islice(repeated, MOST_WARNINGS)))


def _bounded(warnings: Sequence[str]) -> list[str]:
    return [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in warnings[:MOST_WARNINGS]]


def _ignored(template: JsonMap) -> Iterator[str]:
    outputs = section_of(template, "outputs")
    for name, body in outputs.items() if isinstance(outputs, Mapping) else ():
        for key in body:
            if str(key).lower() not in _OUTPUT_KEYS:
                hint = closest(str(key), _OUTPUT_KEYS)
                yield f"{dotted(('outputs', name, str(key)))}: no key of an output, so it has no effect{hint}"


def _misspelt(template: JsonMap, version: Version) -> Iterator[str]:
    guesses: dict[str, str | None] = {}
    for path, value in _parts(template):
        word = _word(value)
        if word and word not in guesses and len(guesses) < _MOST_COMPARED:
            guesses[word] = _guess(word, version.functions)
        if (guess := guesses.get(word)) is not None:
            yield f'{dotted(path)}: "{word}" is not a function, so it is data; did you mean "{guess}"?'


def _word(value: object) -> str:
    """Return the key of a map that could be a function's name; "": there is none.

    Words such as "filters" and "not" could be names of properties, too.
    """
    word = str(next(iter(value))) if isinstance(value, Mapping) and len(value) == 1 else ""
    return word if "_" in word or word.startswith("Fn::") else ""


def _guess(word: str, functions: Collection[str]) -> str | None:
    """Return the function that a word is a misspelling of."""
    return None if word in functions else nearest(word, functions, alike=_ALIKE)


def _failing(plan: CompiledTemplate, unknown: Collection[str]) -> Iterator[str]:
    lacking = {not_provided(name) for name in unknown}
    for name, output in plan.outputs.items():
        reasons = [item[ARGS][0] for item in nodes(output.value) if item[FN] == "error"]
        if reasons and not lacking.intersection(reasons):
            yield f"{dotted(('outputs', name))}: its value cannot be computed: {reasons[0]}"


def _unfit(template: JsonMap) -> Iterator[str]:
    for path, reason in find_unfit_defaults(template):
        yield f"{dotted(path)}: no stack can be created with this template: {reason}"


def _undeclared(template: JsonMap, plan: CompiledTemplate) -> Iterator[str]:
    """Yield the parameters that conditions need and the template lacks; nothing uses these conditions."""
    for path, value in _parts(template, ("conditions",)):
        name = value.get("get_param", value.get("Ref")) if isinstance(value, Mapping) else None
        if isinstance(name, str) and name not in plan.parameters and name not in plan.pseudo:
            yield f'{dotted(path)}: the template has no parameter "{name}"; nothing uses this condition'


def _unused(template: JsonMap, plan: CompiledTemplate) -> Iterator[str]:
    texts = {value for _, value in _parts(template) if isinstance(value, str)}
    texts |= {text.partition(".")[0] for text in texts}  # Old versions have paths such as a.b.
    for name in plan.parameters:
        if name not in texts:
            yield f"{dotted(('parameters', name))}: nothing uses this parameter"


def _parts(
    template: JsonMap, names: Sequence[str] = ("conditions", "resources", "outputs")
) -> Iterator[tuple[Path, Json]]:
    """Yield everything in some sections, by default in those that use parameters, with its path."""
    todo: list[tuple[Path, Json]] = [((name,), section_of(template, name)) for name in reversed(names)]
    while todo:
        path, value = todo.pop()
        yield path, value
        if isinstance(value, Mapping):
            todo.extend(((*path, str(key)), item) for key, item in reversed(list(value.items())))
        elif isinstance(value, list):
            todo.extend(((*path, index), item) for index, item in reversed(list(enumerate(value))))
