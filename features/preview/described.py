"""Parameters of a stack and those nested in it, and its environment, as ``POST /validate`` has them; pure."""

from collections.abc import Iterable, Mapping

from ...engine.planning.requests import NestedChild
from ...shapes import Json, JsonMap
from ...template.budget import Budget
from ...template.environment import Environment, as_document
from ...template.language import is_template_name, measure
from ...template.residual import is_deferred


def described_stack(described: JsonMap, environment: Environment, values: JsonMap) -> dict[str, Json]:
    """Return description, parameters and groups of parameters of a stack, with the values that are known.

    As in Heat, hidden values are in clear, because the caller has just sent them.  Clients such as Horizon
    fill a form with them, from which they create the stack.

    :param described: the description of the stack's template, by `template.compile.describe`.
    :param values: values of the parameters; residuals are not shown.
    """
    defaults = environment.defaults
    view = {key: value for key, value in described.items() if key != "ParameterGroups" or value}
    view["Parameters"] = {
        name: {
            **schema,
            **({"Default": defaults[name]} if name in defaults else {}),
            **({"Value": values[name]} if name in values and not is_deferred(values[name]) else {}),
        }
        for name, schema in described["Parameters"].items()
    }
    return view


def nested_parameters(children: Mapping[str, NestedChild], budget: Budget) -> dict[str, Json]:
    """Return nested stacks by the names of their resources, each with those nested in it.

    :raises LimitExceeded: the views of equal stacks, which are repeated, become too large together.
    """
    views = {}
    for name, child in children.items():
        view = described_stack(child.described, child.branch.environment, child.branch.parameters)
        budget.take(measure(view).bytes)
        below = nested_parameters(child.stack.children, budget)
        views[name] = {
            "Type": child.definition.declared_type,
            **view,
            **({"NestedParameters": below} if below else {}),
        }
    return views


def described_environment(environment: Environment, values: JsonMap, types: Iterable[str]) -> dict[str, Json]:
    """Return the environment; as in Heat, a template that is named as a type is a type in it."""
    document = as_document(environment)
    files = {name: name for name in sorted(set(types)) if is_template_name(name)}
    return {
        "parameters": dict(values),
        "parameter_defaults": document["parameter_defaults"],
        "resource_registry": {**files, **document["resource_registry"]},
        "event_sinks": document["event_sinks"],
    }
