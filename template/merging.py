"""Merging several environment files into one, as the server does for ``environment_files``.

Heat's template guide ("Environment merging") says what the strategies do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..shapes import Json, JsonMap
from .budget import Budget, charged_at
from .conversion import convert
from .environment import parse_environment
from .errors import TemplateError
from .load import load_document
from .parameters import Declaration
from .scalars import written

STRATEGIES = ("overwrite", "merge", "deep_merge")
_SECTION = "parameter_merge_strategies"
_PARAMETERS = ("parameters", "parameter_defaults")
_DEFAULT = "default"


class _Merge:
    """The environment so far, and the strategy of each parameter seen: the first file that has it decides."""

    def __init__(self, declarations: Mapping[str, Declaration], budget: Budget) -> None:
        self.document: dict[str, Json] = {}
        self._budget = budget
        self._declarations = declarations
        self._chosen: dict[str, str] = {}

    def add(self, document: JsonMap, name: str) -> None:
        """Merge a file over the ones before."""
        strategies = _strategies(document, name)
        for section, body in document.items():
            if section == _SECTION or body is None:
                continue
            earlier_value = self.document.get(section)
            # The content of both is copied; strategies may append one to the other.
            self._budget.take_value([earlier_value, body])
            if section in _PARAMETERS:
                self.document[section] = self._parameters(
                    earlier_value or {}, body, strategies, (name, section)
                )
            elif isinstance(body, list):
                self.document[section] = [*(earlier_value or []), *body]
            else:
                self.document[section] = _laid_over(earlier_value or {}, body)

    def _parameters(
        self,
        earlier_value: JsonMap,
        body: JsonMap,
        strategies: Mapping[str, str],
        path: tuple[str, str],
    ) -> dict[str, Json]:
        merged = dict(earlier_value)
        for key, value in body.items():
            name = str(key)
            here = (*path, str(key))
            if value is None:
                continue
            strategy = self._strategy(name, strategies, here)
            old = merged.get(name)
            if old is None or strategy == "overwrite":
                merged[name] = value
            else:
                declared = self._declarations.get(name)
                kind = declared.type if declared is not None else _type_of(value)
                merged[name] = _merged(old, value, kind, here, deep=strategy == "deep_merge")
        return merged

    def _strategy(self, name: str, strategies: Mapping[str, str], path: tuple[str, ...]) -> str:
        earlier_value = self._chosen.get(name)
        chosen = strategies.get(name, earlier_value or strategies.get(_DEFAULT, "overwrite"))
        if earlier_value is not None and chosen != earlier_value:
            raise TemplateError(
                f"the merge strategy {chosen} is in conflict with {earlier_value} of a file before this one",
                path,
            )
        self._chosen[name] = chosen
        return chosen


@dataclass(frozen=True)
class Named:
    """Environment files of a request.

    :ivar files: the texts of all files.
    :ivar names: the names of the environment files, in their order.
    :ivar budget: the budget of the request.
    :ivar base: the name of the file that is an environment which exists already, not one of the client's.
    """

    files: Mapping[str, str]
    names: Sequence[str]
    budget: Budget = field(default_factory=Budget)
    base: str = ""


def merge_environments(
    named: Named, environment: JsonMap | None, declarations: Mapping[str, Declaration]
) -> dict[str, Json]:
    """Merge the named files in their order into one environment document.

    As in Heat the files replace `environment` where any are named, since clients send in it their own
    merge of the files.  It is merged over an environment that exists already.

    :param declarations: the template's parameters: their types say how values are merged.
    :raises TemplateError: a file was not sent, is no environment, or a strategy does not fit.
    """
    if not named.names:
        return dict(environment or {})
    merge = _Merge(declarations, named.budget)
    loaded = dict[str, dict[str, Json]]()
    for name in named.names:
        if name not in named.files:
            raise TemplateError(
                f'the environment file "{name}" is not among the files', ["environment_files"]
            )
        if name not in loaded:
            with charged_at(name):
                loaded[name] = _load(named.files[name], name, named.budget)
        with charged_at(name):
            merge.add(loaded[name], name)
    if environment and all(name == named.base for name in named.names):
        with charged_at("environment"):
            parse_environment(environment, named.budget)
            merge.add(environment, "environment")
    return merge.document


def parameter_names(named: Named, environment: JsonMap) -> set[str]:
    """Return the names of the parameters that have values in an environment or its files.

    :raises TemplateError: a file is no environment.
    """
    documents = [_load(named.files[name], name, named.budget) for name in named.names if name in named.files]
    sections = [document.get("parameters") for document in (environment, *documents)]
    values = [item for section in sections if isinstance(section, Mapping) for item in section.items()]
    return {str(name) for name, value in values if value is not None}


def _load(text: str, name: str, budget: Budget) -> dict[str, Json]:
    if all(not line.strip() or line.lstrip().startswith(("#", "---")) for line in text.splitlines()):
        return {}
    document = load_document(text, f'environment file "{name}"', budget)
    try:
        parse_environment(document, budget)
    except TemplateError as error:
        raise error.moved(lambda path: (name, *path[1:])) from error
    return document


def _strategies(document: JsonMap, name: str) -> Mapping[str, str]:
    declared = document.get(_SECTION) or {}
    for parameter, strategy in declared.items():
        if strategy not in STRATEGIES:
            text = f"must be one of: {', '.join(STRATEGIES)}; not {written(strategy)}"
            raise TemplateError(text, [name, _SECTION, str(parameter)])
    return {str(parameter): strategy for parameter, strategy in declared.items()}


def _type_of(value: object) -> str:
    """Guess the type of a parameter of a nested template, which is not known here."""
    if isinstance(value, Mapping):
        return "json"
    if isinstance(value, list):
        return "comma_delimited_list"
    return "string" if isinstance(value, str) else "number"


def _merged(old: Json, new: Json, kind: str, path: tuple[str, ...], *, deep: bool) -> Json:
    """Merge two values of a parameter.

    :raises TemplateError: the type is one that cannot be merged, or a value is not of it.
    """
    if kind not in ("string", "comma_delimited_list", "json"):
        raise TemplateError(f"a value of type {kind} cannot be merged; its strategy must be overwrite", path)
    if kind == "string" and not (isinstance(old, str) and isinstance(new, str)):
        raise TemplateError("only strings can be merged to a string", path)
    # The error has neither the values, which may be secret, nor a cause.
    earlier_value = _converted(old, kind)
    after = _converted(new, kind)
    if earlier_value is None or after is None:
        raise TemplateError(f"cannot be merged: a value is not a {kind}", path)
    if kind == "comma_delimited_list" and isinstance(old, str) and isinstance(new, str):
        return ",".join(text for text in (old, new) if text)
    if type(earlier_value) is not type(after):
        raise TemplateError("a map and a list cannot be merged", path)
    if isinstance(earlier_value, dict):
        return _appended(earlier_value, after) if deep else {**earlier_value, **_without_nulls(after)}
    return earlier_value + after


def _converted(value: Json, kind: str) -> Json:
    try:
        return convert(value, kind)
    except ValueError:
        return None


def _without_nulls(items: JsonMap) -> dict[str, Json]:
    return {key: value for key, value in items.items() if value is not None}


def _appended(old: JsonMap, new: JsonMap) -> dict[str, Json]:
    """Merge maps at every depth; lists and strings in them are appended, as Heat's deep_merge does."""
    merged = dict(old)
    for key, value in _without_nulls(new).items():
        earlier_value = merged.get(key)
        if isinstance(earlier_value, dict) and isinstance(value, dict):
            merged[key] = _appended(earlier_value, value)
        elif isinstance(earlier_value, list) and isinstance(value, list):
            merged[key] = [*earlier_value, *value]
        elif isinstance(earlier_value, str) and isinstance(value, str):
            merged[key] = earlier_value + value
        else:
            merged[key] = value
    return merged


def _laid_over(old: JsonMap, new: JsonMap) -> dict[str, Json]:
    merged = dict(old)
    for key, value in new.items():
        earlier_value = merged.get(key)
        # A replaced entry moves to the end: a null removes only the mappings before it.
        merged.pop(key, None)
        if isinstance(earlier_value, Mapping) and isinstance(value, Mapping):
            value = _laid_over(earlier_value, value)
        merged[key] = value
    return merged
