import pytest
from stoker.template.budget import Budget, BudgetLimits, charged_at
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.errors import LimitExceeded, TemplateError
from stoker.template.language import MAX_VALUE_DEPTH, measure
from stoker.template.scalars import equality_key
from stoker.template.suggestions import nearest


class Clock:
    """Processor time that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_bytes_are_refused_before_they_are_made():
    budget = Budget(BudgetLimits(bytes=1000))
    budget.take_text(900)
    with pytest.raises(LimitExceeded, match="more than 1000 bytes of values"):
        budget.take_text(100)


def test_a_text_that_is_not_ascii_takes_four_times_as_much():
    budget = Budget(BudgetLimits(bytes=1000))
    budget.take_text(200, is_ascii=False)
    with pytest.raises(LimitExceeded):
        budget.take_text(200, is_ascii=False)


def test_steps_are_counted_exactly():
    budget = Budget(BudgetLimits(steps=5000))
    for _ in range(5000):
        budget.step()
    with pytest.raises(LimitExceeded, match="more than 5000 steps"):
        budget.step()


def test_a_large_step_is_refused_before_it_is_done():
    with pytest.raises(LimitExceeded):
        Budget(BudgetLimits(steps=5000)).step(1_000_000)


def test_the_time_is_looked_at_now_and_then():
    clock = Clock()
    budget = Budget(BudgetLimits(steps=0, seconds=2.0), clock=clock)
    budget.step(100_000)
    clock.now += 2.5
    with pytest.raises(LimitExceeded, match="more than 2 seconds of work"):
        budget.step(10_000)


def test_what_another_process_has_used_counts_too():
    clock = Clock()
    budget = Budget(BudgetLimits(seconds=2.0), clock=clock)
    clock.now += 0.5
    assert budget.seconds_left() == 1.5
    budget.spend(1.0)
    assert budget.seconds_left() == 0.5
    with pytest.raises(LimitExceeded):
        budget.spend(1.0)
    assert budget.seconds_left() == 0.0


def test_zero_means_no_limit():
    clock = Clock()
    budget = Budget(BudgetLimits(bytes=0, steps=0, seconds=0), clock=clock)
    clock.now += 1e6
    budget.take(10**15)
    budget.step(10**15)
    assert budget.seconds_left() == float("inf")


def test_a_value_is_charged_part_by_part_so_that_a_vast_one_is_refused_at_once():
    shared = ["x" * 1000] * 1000
    vast = [shared] * 1_000_000  # a terabyte if it were copied
    budget = Budget(BudgetLimits(bytes=50_000_000, steps=0))
    with pytest.raises(LimitExceeded):
        budget.take_value(vast)
    assert budget.bytes < 120_000_000


def test_a_value_that_is_too_deep_is_refused():
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(LimitExceeded, match=f"deeper than {MAX_VALUE_DEPTH} levels"):
        Budget().take_value(deep)
    level: list[object] = []
    for _ in range(89):
        level = [level]
    Budget().take_value(level, MAX_VALUE_DEPTH - 90)
    with pytest.raises(LimitExceeded):
        Budget().take_value(level, MAX_VALUE_DEPTH - 89)


def test_the_size_is_near_to_what_it_takes_in_memory():
    assert 1_000_000 < measure("x" * 1_000_000).bytes < 1_001_000
    assert 80_000 < measure([1] * 10_000 + []).bytes < 400_000
    assert measure({"a": [{"b": "c"}]}).depth == 3
    assert measure("text").depth == 0


def test_an_error_without_a_path_is_given_one():
    with pytest.raises(LimitExceeded, match="^outer.part: too much$"), charged_at("outer", "part"):
        raise LimitExceeded("too much")
    with pytest.raises(LimitExceeded, match="^inner: too much$"), charged_at("outer"):
        raise LimitExceeded("too much", ["inner"])


def test_no_message_is_longer_than_a_page():
    error = TemplateError("x" * 1_000_000, ["y" * 1_000_000])
    assert len(str(error)) < 5000
    assert len(error.message) == 4000


def compiled(sections, limits=None, **fields):
    template = {"heat_template_version": "2018-08-31", **sections}
    source = Source(template, **fields)
    identity = Identity("stack", "id", "project")
    limited = Limits(budget=limits or BudgetLimits())
    return compile_template(source, identity=identity, limits=limited, seal=str)


def holding(value, count=1):
    body = {"type": "OS::Heat::Value", "properties": {"value": value}}
    return {"resources": {f"r{index}": body for index in range(count)}}


def test_a_template_is_refused_by_its_steps_with_the_path():
    with pytest.raises(LimitExceeded, match=r"^resources\.r\d+.*: the request takes more than 100 steps"):
        compiled(holding([["x"]], 100), BudgetLimits(steps=100))
    assert len(compiled(holding([["x"]], 100), BudgetLimits(steps=3000)).resources) == 100


def test_each_use_of_a_parameter_counts():
    sections = {"parameters": {"p": {"type": "string"}}, **holding({"get_param": "p"}, 10)}
    limits = BudgetLimits(bytes=10_000)
    assert len(compiled(sections, limits, parameters={"p": "x" * 1000}).resources) == 10
    with pytest.raises(LimitExceeded, match=r"^resources\.r9\.properties\.value\.get_param: "):
        compiled(sections, limits, parameters={"p": "x" * 1001})


def test_ten_thousand_flat_resources_need_a_small_part_of_the_budget():
    properties = {
        "type": "string",
        "value": {"str_replace": {"template": "a $n", "params": {"$n": {"get_param": "OS::stack_name"}}}},
        "more": [{"a": 1}, {"b": ["c"]}],
    }
    bodies = {
        f"r{index}": {"type": "x", "properties": properties, "depends_on": [f"r{index - 1}"] if index else []}
        for index in range(10_000)
    }
    budget = Budget()
    compiled({"resources": bodies}, budget=budget)
    assert budget.steps < budget.limits.steps / 4
    assert budget.bytes < budget.limits.bytes / 4


@pytest.mark.parametrize("form", [lambda name: name, lambda name: {"not": name}])
def test_a_chain_of_conditions_may_be_long(form):
    chain = {f"c{index}": form(f"c{index + 1}") for index in range(3000)}
    compiled({"conditions": {**chain, "c3000": True}})
    with pytest.raises(TemplateError, match="depend on each other in a circle: c7 -> c8"):
        compiled({"conditions": {**chain, "c3000": "c7"}})


def test_half_a_surrogate_in_a_url_is_refused_by_name():
    with pytest.raises(TemplateError, match="make_url: a part is not Unicode"):
        compiled(holding({"make_url": {"host": "h", "path": "/\ud800"}}))


def test_the_names_that_are_compared_are_few_and_short():
    names = [f"member_{index:05}" for index in range(20_000)]
    assert nearest("membre_10000", names) in names
    assert nearest("x" * 65, ["x" * 64]) is None
    assert nearest("abc", ["abd", "x" * 100_000]) == "abd"
    assert nearest("something", names) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, 1.0), (1, True), ({"a": [1]}, {"a": [1.0]}), ([], []), (2**70, float(2**70)), (None, None)],
)
def test_values_that_are_equal_have_one_key(first, second):
    assert first == second
    assert equality_key(first) == equality_key(second)


@pytest.mark.parametrize(
    ("first", "second"), [("1", 1), ([], {}), ([["a"]], [["a", "b"]]), ("", None), (0, None), (["map"], {})]
)
def test_values_that_differ_have_other_keys(first, second):
    assert equality_key(first) != equality_key(second)
