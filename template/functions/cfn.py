"""Functions that only CloudFormation's format has, and the first versions of HOT."""

import json
import math
import re
from collections.abc import Mapping

from ...shapes import Json
from ..errors import TemplateError
from ..language import AWS_DATE, CFN_VERSIONS, CostMeter, Function, ListForm, Version
from ..scalars import written
from ..suggestions import closest

_FIRST = "2013-05-23"
"""The version of HOT that has these functions."""
_SECOND = "2014-10-16"
"""The version of HOT that removed most of them."""
_FOURTH = "2015-10-15"
"""The version of HOT that removed the rest."""

_PARSED = 24
"""Bytes that one character of JSON takes in memory at most: ``[],`` is an empty list."""
_READ = 50
"""Characters of JSON that one step of work reads."""
_LONGEST_NUMBER = 309
"""Characters of a number in JSON, as many as a double may have."""
_MEMBER = re.compile(r"\.member\.([0-9]{1,18})\.([^=]*)=(.*)", re.DOTALL)


def _items(args: Json, count: int, form: str) -> list[Json]:
    if not isinstance(args, list) or len(args) != count:
        raise TemplateError(f"must be of the form {form}")
    return args


def base64(args: Json, version: Version, budget: CostMeter) -> str:
    """Return the text unchanged: as in Heat, user data is not encoded in the template."""
    if not isinstance(args, str):
        raise TemplateError(f"must be a string, not {written(args)}")
    return args


def select(args: Json, version: Version, budget: CostMeter) -> Json:
    """Return an item of ``[index, list]`` or ``[key, map]``, "" where there is none.

    A string in the place of the list or map is read as JSON.
    """
    index, items = _items(args, 2, _SELECT.text)
    if items in (None, ""):
        return ""
    if isinstance(items, str):
        items = _parsed(items, budget)
    if isinstance(items, Mapping):
        if not isinstance(index, str):
            raise TemplateError(f"the key of a map must be a string, not {written(index)}")
        return items.get(index, "")
    if not isinstance(items, list):
        raise TemplateError(f"can only select from a list or a map, not {written(items)}")
    try:
        return items[int(index)]
    except IndexError:
        return ""
    except (TypeError, ValueError, OverflowError):
        raise TemplateError(f"the index of a list must be a whole number, not {written(index)}") from None


def _parsed(text: str, budget: CostMeter) -> Json:
    budget.step(len(text) // _READ)
    budget.take(len(text) * _PARSED)
    try:
        parsed = json.loads(text, parse_constant=_number, parse_int=_number, parse_float=_number)
    except (ValueError, RecursionError):
        raise TemplateError(f"a string to select from must be JSON, not {written(text)}") from None
    budget.take_value(parsed)
    return parsed


def _number(text: str) -> int | float:
    value = float(text)
    if not math.isfinite(value) or len(text) > _LONGEST_NUMBER:
        raise ValueError(text)
    return value if any(char in text for char in ".eE") else int(text)


def member_list_to_map(args: Json, version: Version, budget: CostMeter) -> dict[str, Json]:
    """Make a map of ``[name of keys, name of values, [.member.0.Name=key, .member.0.Value=value, …]]``."""
    keys, values, members = _items(args, 3, _MEMBERS.text)
    if not isinstance(keys, str) or not isinstance(values, str):
        raise TemplateError("the names of keys and values must be strings")
    if not isinstance(members, list):
        raise TemplateError(f"the members must be a list of strings, not {written(members)}")
    budget.step(len(members))
    entries: dict[int, dict[str, str]] = {}
    for item in members:
        if not isinstance(item, str) or "=" not in item:
            raise TemplateError(f'a member must be like ".member.0.{keys}=…", not {written(item)}')
        if match := _MEMBER.match(item):
            entries.setdefault(int(match[1]), {})[match[2]] = match[3]
    pairs = (entries[index] for index in sorted(entries))
    return {pair[keys]: pair[values] for pair in pairs if keys in pair and values in pair}


def find_in_map(args: Json, version: Version, budget: CostMeter) -> Json:
    """Return the value of ``[mapping, top-level key, second-level key]``."""
    value, *keys = _items(args, 3, _FIND.text)
    for key in keys:
        if isinstance(key, Mapping | list | None):
            raise TemplateError(f"a key of a mapping must be a string, not {written(key)}")
        name = key if isinstance(key, str) else json.dumps(key)
        if not isinstance(value, Mapping) or name not in value:
            hint = closest(name, value) if isinstance(value, Mapping) else ""
            raise TemplateError(f'the mapping has no key "{name}"{hint}')
        value = value[name]
    return value


_SELECT = ListForm(2, 2, "[index, list] or [key, map]")
_MEMBERS = ListForm(3, 3, "[name of keys, name of values, [member, …]]")
_FIND = ListForm(3, 3, "[mapping, key, key]")
_IF = ListForm(3, 3, "[condition, value if true, value if false]")

FUNCTIONS = (
    Function(
        "Ref",
        "The value of a parameter, or the reference of another resource.",
        _FIRST,
        until=_SECOND,
        cfn=CFN_VERSIONS,
        cfn_conditions=(AWS_DATE,),
    ),
    Function("Fn::GetAtt", "An attribute of another resource.", None, cfn=CFN_VERSIONS),
    Function(
        "Fn::FindInMap",
        "A value of the section Mappings.",
        None,
        form=_FIND,
        apply=find_in_map,
        cfn=CFN_VERSIONS,
        cfn_conditions=(AWS_DATE,),
    ),
    Function(
        "Fn::Select",
        "One item of a list or a map.",
        _FIRST,
        form=_SELECT,
        apply=select,
        until=_FOURTH,
        cfn=CFN_VERSIONS,
    ),
    Function("Fn::Base64", "The text itself.", _FIRST, apply=base64, until=_SECOND, cfn=CFN_VERSIONS),
    Function(
        "Fn::MemberListToMap",
        "A map made from a list of numbered keys and values.",
        _FIRST,
        form=_MEMBERS,
        apply=member_list_to_map,
        until=_SECOND,
        cfn=CFN_VERSIONS,
    ),
    Function("Fn::GetAZs", "The availability zones of the cloud.", _FIRST, until=_SECOND, cfn=CFN_VERSIONS),
    Function(
        "Fn::ResourceFacade",
        "The parent stack's definition of this stack's resource.",
        _FIRST,
        until=_SECOND,
        cfn=CFN_VERSIONS,
    ),
    Function("Fn::If", "One of two values, chosen by a condition.", None, form=_IF, cfn=(AWS_DATE,)),
    Function("Fn::Not", "The negation of a condition.", None, cfn_conditions=(AWS_DATE,)),
    Function("Fn::And", "True if all of the conditions are true.", None, cfn_conditions=(AWS_DATE,)),
    Function("Fn::Or", "True if one of the conditions is true.", None, cfn_conditions=(AWS_DATE,)),
)
