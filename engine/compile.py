"""Compiling a goal: from a request to a checked template, and to the stored form of both."""

import contextlib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..resources.registry import ResourceRegistry
from ..sealing.sealer import BoundSealer
from ..sealing.stored import StoredLookup
from ..template.budget import Budget, new_budget
from ..template.compile import Identity, Limits, Region, Source, compile_template
from ..template.errors import ErrorList, TemplateError, named_at_once
from ..template.formats import format_of
from ..template.language import CompiledTemplate
from ..template.load import LoadedTemplates, load_template
from ..template.parameters import parameter_strings
from ..template.parsed import ParsedDocuments
from .context import Compiled
from .planning.goal import (
    hiding,
    leaves_open,
    sealed_values,
    stored_environment,
    with_environment,
)
from .planning.group_attributes import refreshed_for, with_requested_attributes
from .planning.nested_check import TemplateTree
from .planning.nested_contents import NestedContents
from .planning.questions import Questions
from .planning.requests import (
    EXISTING,
    Branch,
    Goal,
    NestedChild,
    TypeForbidden,
    TypeUnavailable,
    anything,
)
from .planning.template_check import (
    check_allowed,
    check_available,
    check_config_sizes,
    check_needs_no_cloud,
    check_stack_rules,
    check_storable,
    check_types,
    without_unavailable,
)


class GoalCompiler:
    """Implements context.Compiler.  Thread-safe.

    :param region: the cloud's region; None: Heat's default.
    :param has_cloud: whether this installation has access to a cloud.
    """

    def __init__(
        self,
        registry: ResourceRegistry,
        limits: Limits,
        region: Region | None = None,
        *,
        has_cloud: bool = True,
    ) -> None:
        self._registry = registry.usable
        self._limits = limits
        self._operator = registry.operator
        self._region = region or Region()
        self._has_cloud = has_cloud
        self._parsed = ParsedDocuments()

    def compile(self, goal: Goal, identity: Identity, sealer: BoundSealer, *, tree: bool = True) -> Compiled:
        """Compile a goal and check it against the resource types, within the goal's budget.

        :raises TemplateError: the goal is wrong; up to MOST_ERRORS of its errors are named at once.
        :raises TypeForbidden: the request may not use a type.
        """
        # One budget for the whole tree: what a nested stack takes, the request cannot take again.
        if goal.budget is None:
            with new_budget(self._limits.budget) as budget:
                return self.compile(replace(goal, budget=budget), identity, sealer, tree=tree)
        with named_at_once(TypeForbidden, TypeUnavailable) as errors:
            return self._compile(goal, goal.budget, identity, sealer, errors, tree=tree)

    def _compile(
        self,
        goal: Goal,
        budget: Budget,
        identity: Identity,
        sealer: BoundSealer,
        errors: ErrorList,
        *,
        tree: bool,
    ) -> Compiled:
        # Only what users send is limited in bytes: the template that a type makes grows with its members.
        most = 0 if goal.generated else self._limits.template_bytes
        parsed = self._parsed.of(identity.project_id)
        template = load_template(goal.template, max_bytes=most, parsed=parsed)
        goal, environment = with_environment(goal, budget, template, self._limits, self._operator, tree=tree)
        files = goal.files
        # The operator's templates that the stack uses are stored with it: it does not change with them.
        used = dict[str, str]()
        if self._operator is not None:
            files = self._operator.with_templates(goal.files, used)
        cloud = goal.cloud
        # An admin's token sees the admin's own project, not that of another's stack: the steps find out.
        questions = Questions() if cloud is not None and cloud.project_id == identity.project_id else None
        templates = LoadedTemplates(budget, self._limits.template_bytes, parsed)
        contents = NestedContents(
            self._registry,
            files,
            templates,
            budget,
            {each.type for each in self._registry.implied_dependencies},
        )
        collaborators = (self._registry, self._limits, sealer, questions, self._region, contents)
        compiler = _StackCompiler(goal, budget, identity, *collaborators, self._has_cloud)
        root = Branch(template, goal.parameters, environment, goal.facade, goal.secret, 0, goal.unknown)
        # The root comes first: it says which nested stacks there are, and with which parameters.
        plan = compiler.compile(root, errors)
        children = typing.cast(Mapping[str, NestedChild], {})
        resources = len(plan.resources)
        # Without nested stacks the limit of resources was checked when the root was compiled.
        if tree and any(self._registry.is_nested(definition.type) for definition in plan.resources.values()):
            nested = compiler.tree(files, templates)
            children = nested.check(plan, environment, errors).children
            resources = nested.count
            # A template that only a step will know may hide any name: all defaults it can see are sealed.
            if errors.is_empty and leaves_open(plan, self._registry.is_nested):
                environment = hiding(environment, environment.parameter_defaults.keys())
                plan = compiler.compile(replace(root, environment=environment), errors)
        warnings: Sequence[TemplateError] = ()
        # The cloud is asked once, about all stacks of the tree, so the request waits once.
        if cloud is not None and questions is not None:
            warnings = questions.ask(cloud, errors)
        # Not before: a user gets the errors of all templates at once.
        errors.check()
        hidden = {name for name, parameter in plan.parameters.items() if parameter.hidden}
        # Nested stacks hide what the template hides; the names in `secret` only have hidden values here.
        if not goal.generated and hidden - goal.secret:
            environment = hiding(environment, hidden - goal.secret)
        hidden.update(environment.encrypted_param_names)
        return Compiled(
            identity=identity,
            template=template,
            environment=stored_environment(environment, hidden, sealer.seal),
            files={name: text for name, text in goal.files.items() if name != EXISTING} | used,
            parameters=sealed_values(goal.parameters, hidden, sealer.seal),
            parameter_view={**plan.pseudo, **parameter_strings(plan.parameters)},
            outputs={
                name: {"value": output.value, "description": output.description}
                for name, output in plan.outputs.items()
            },
            plan=plan,
            sealer=sealer,
            resources=resources,
            nested=children,
            event_sinks=environment.queues if environment.event_sinks else (),
            warnings=warnings,
        )


@dataclass(frozen=True)
class _StackCompiler:
    """Compiles a stack, and each of those nested in it, with the same collaborators."""

    goal: Goal
    budget: Budget
    identity: Identity
    registry: ResourceRegistry
    limits: Limits
    sealer: BoundSealer
    questions: Questions | None
    region: Region
    contents: NestedContents
    has_cloud: bool

    def compile(self, branch: Branch, errors: ErrorList) -> CompiledTemplate:
        """Compile and check one stack, without those nested in it.

        :param errors: gets its errors; the returned plan is then the part of the stack that has none.
        """
        with errors.within(format_of(branch.template).native_path) as inside:
            source = Source(
                branch.template,
                branch.environment,
                self.goal.files,
                branch.parameters,
                branch.facade,
                secret=branch.secret,
                budget=self.budget,
                unknown=branch.unknown,
                is_draft=self.goal.purpose.is_draft,
                region=self.region,
            )
            plan = compile_template(
                source, identity=self.identity, limits=self.limits, seal=self.sealer.seal, errors=inside
            )
            # Before the rules of types: no error tells users anything about a type that they may not use.
            check_allowed(plan, self.goal.may_use)
            has_service = anything if self.goal.cloud is None else self.goal.cloud.has_service
            if self.goal.purpose.without_unavailable:
                plan = without_unavailable(plan, self.registry, has_service)
            if self.goal.cloud is not None:
                check_available(plan, self.registry, has_service)
            secrets = StoredLookup(self.sealer.open)
            plan = check_types(plan, self.registry, secrets, self.budget, inside)
            if not (self.has_cloud or self.goal.purpose.may_need_cloud):
                check_needs_no_cloud(plan, self.registry)
            if self.questions is not None:
                self.questions.collect(plan, self.registry)
            check_storable(plan, inside)
            # The rules below compare resources with each other; those with errors are not in the plan.
            if not inside.is_empty:
                return plan
            types = {name: self.registry.get(definition.type) for name, definition in plan.resources.items()}
            check_config_sizes(plan, types, self.limits.config_bytes, inside)
            # Others may add to what a nested stack makes: the stack around it, for one.
            is_new = self.goal.purpose.is_new and branch.depth == 0
            check_stack_rules(plan, types, inside, is_new=is_new)
            if any(self.registry.is_nested(definition.type) for definition in plan.resources.values()):
                plan = with_requested_attributes(plan, types)
            if plan.outputs:
                plan = replace(plan, refreshed=refreshed_for(plan.outputs.values(), types))
            if len(types) < 2:  # One alone depends on nothing.
                return plan
            return self.contents.ordered(plan, types, branch.environment)

    def tree(self, files: Mapping[str, str], templates: LoadedTemplates) -> TemplateTree:
        """Return the check of the stacks nested in a stack, which this compiles, too.

        :param files: the goal's files, with the operator's templates.
        """
        return TemplateTree(
            self.registry,
            self.limits,
            files,
            self.compile,
            StoredLookup(self.sealer.open),
            self.budget,
            load=templates.load,
            keeps=self.goal.purpose.keeps_nested,
            all_members=self.goal.purpose.all_members,
            is_draft=self.goal.purpose.is_draft,
            stored_data=self.goal.stored_data,
            entering=contextlib.nullcontext if self.questions is None else self.questions.below,
        )
