"""Constraints on parameters: which fit which type, what satisfies them, and what is said where they fail."""

import pytest
from stoker.template.compile import Identity, Limits, Source, compile_template, describe
from stoker.template.custom_checks import KNOWN
from stoker.template.errors import LimitExceeded, TemplateError

NEW = "2021-04-16"
TYPES = ("string", "number", "comma_delimited_list", "json", "boolean")


def check(kind, constraint, value=None, default=None, **keys):
    body = {"type": kind, "constraints": [constraint], "default": default, **keys}
    template = {"heat_template_version": NEW, "parameters": {"p": body}}
    parameters = {} if value is None else {"p": value}
    identity = Identity("stack", "id", "project")
    return compile_template(
        Source(template, parameters=parameters),
        identity=identity,
        limits=Limits(),
        seal=lambda value: "token",
    ).parameters["p"]


def failure(kind, constraint, value=None, default=None, **keys):
    with pytest.raises(TemplateError) as caught:
        check(kind, constraint, value, default, **keys)
    return str(caught.value)


LENGTH = {"length": {"min": 2, "max": 3}}
RANGE = {"range": {"min": 2, "max": 3.5}}
MODULO = {"modulo": {"step": 3, "offset": 1}}
VALUES = {"allowed_values": ["a", 1, "2", True]}
PATTERN = {"allowed_pattern": "[a-z]+|x1"}


@pytest.mark.parametrize(
    ("kind", "constraint", "good", "bad"),
    [
        ("string", LENGTH, ["ab", "abc"], ["a", "abcd", ""]),
        ("comma_delimited_list", LENGTH, ["a,b", ["a", "b", "c"]], ["a", "a,b,c,d", []]),
        ("json", LENGTH, [{"a": 1, "b": 2}, [1, 2]], [{"a": 1}, "[]"]),
        ("string", {"length": {"min": 1}}, ["a", "a" * 999], [""]),
        ("string", {"length": {"max": 1}}, ["", "a"], ["ab"]),
        ("number", RANGE, [2, "3", 3.5, "3.5"], [1, 1.999, 4, "-3"]),
        ("number", {"range": {"min": "2"}}, [2, 99], [1]),
        ("number", {"range": {"max": -1}}, [-1, -9], [0]),
        ("number", MODULO, [1, 4, "7", -2], [0, 2, 3, 4.5]),
        ("number", {"modulo": {"step": -3, "offset": -1}}, [-1, -4, 2], [1, 0]),
        ("number", {"modulo": {"step": 2, "offset": 0}}, [0, 2, -4], [1, -3]),
        ("string", VALUES, ["a", "1", "2", 1], ["b", "", "A"]),
        ("number", VALUES, [1, "1", 2, 2.0], [3, 0]),
        ("boolean", VALUES, [True, "yes", "on"], []),
        ("boolean", {"allowed_values": [False]}, [False, "no"], [True]),
        ("comma_delimited_list", VALUES, ["a,1", ["2", "a"], ""], ["a,b"]),
        ("string", PATTERN, ["abc", "x1"], ["abc1", "", "Abc", "abc\n"]),
    ],
)
def test_what_satisfies_a_constraint(kind, constraint, good, bad):
    for value in good:
        check(kind, constraint, value)
        check(kind, constraint, default=value)
    for value in bad:
        assert failure(kind, constraint, value).startswith("parameters.p: ")
        assert failure(kind, constraint, default=value).startswith("parameters.p.default: ")


@pytest.mark.parametrize(
    ("kind", "constraint", "value", "words"),
    [
        ("string", LENGTH, "abcd", "length (4) is out of range (min: 2, max: 3)"),
        ("number", RANGE, 9, "9 is out of range (min: 2, max: 3.5)"),
        ("number", MODULO, 9, "9 is not a multiple of 3 with an offset of 1"),
        ("string", VALUES, "z", '"z" is not an allowed value [a, 1, 2, true]'),
        ("comma_delimited_list", VALUES, "a,z", '"z" is not an allowed value [a, 1, 2, true]'),
        ("string", PATTERN, "A", '"A" does not match the pattern "[a-z]+|x1"'),
        ("string", {"custom_constraint": "ip_addr"}, "x", '"x" is not an IP address'),
    ],
)
def test_an_error_of_a_constraint_names_the_remedy(kind, constraint, value, words):
    assert failure(kind, constraint, value) == f"parameters.p: {words}"
    described = {**constraint, "description": "Not like that."}
    assert failure(kind, described, value) == "parameters.p: Not like that."
    hidden = failure(kind, constraint, value, hidden=True)
    assert hidden == f"parameters.p: the value does not satisfy the constraint {next(iter(constraint))}"


def test_all_constraints_must_hold():
    body = {
        "type": "string",
        "constraints": [{"length": {"min": 2}}, PATTERN, {"allowed_values": ["ab", "A"]}],
    }
    template = {"heat_template_version": NEW, "parameters": {"p": body}}

    def compiled(value):
        source = Source(template, parameters={"p": value})
        return compile_template(source, identity=Identity("s", "i", "p"), limits=Limits(), seal=str)

    compiled("ab")
    for value in ("a", "AB", "abc"):
        with pytest.raises(TemplateError):
            compiled(value)


FITS = {
    "length": (LENGTH, {"string", "comma_delimited_list", "json"}),
    "range": (RANGE, {"number"}),
    "modulo": (MODULO, {"number"}),
    "allowed_values": (VALUES, {"string", "number", "comma_delimited_list", "boolean"}),
    "allowed_pattern": (PATTERN, {"string"}),
    "custom_constraint": (
        {"custom_constraint": "nova.flavor"},
        {"string", "number", "comma_delimited_list", "boolean"},
    ),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("kind", TYPES)
def test_which_constraint_fits_which_type_is_as_in_heat(name, kind):
    constraint, kinds = FITS[name]
    template = {
        "heat_template_version": NEW,
        "parameters": {"p": {"type": kind, "constraints": [constraint]}},
    }
    if kind in kinds:
        assert describe(template)
    else:
        with pytest.raises(TemplateError) as caught:
            describe(template)
        assert str(caught.value) == f"parameters.p.constraints.0: {name} does not fit a value of type {kind}"


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ("length", ": a constraint must be a map with one of: length, range, modulo, allowed_values"),
        ({}, ": a constraint must have exactly one of: length, range,"),
        ({"description": "x"}, ": a constraint must have exactly one of: length, range,"),
        ({"lenght": {"min": 1}}, ": a constraint must have exactly one of: length, range"),
        ({**LENGTH, **PATTERN}, ": a constraint must have exactly one of: length, range"),
        ({"length": 3}, ".length: must be a map with keys of: min, max"),
        ({"length": {}}, ".length: must be a map with keys of: min, max"),
        ({"length": {"mni": 3}}, ".length: must be a map with keys of: min, max"),
        ({"length": {"min": None}}, ".length: needs a min, a max, or both"),
        ({"length": {"min": 1.5}}, ".length.min: must be a whole number, not 1.5"),
        ({"length": {"max": "x"}}, '.length.max: must be a number, not "x"'),
        ({"length": {"min": 3, "max": 2}}, ".length: min (3) is above max (2)"),
        ({"allowed_values": "a"}, ".allowed_values: must be a list that is not empty"),
        ({"allowed_values": []}, ".allowed_values: must be a list that is not empty"),
        ({"allowed_pattern": 1}, ".allowed_pattern: must be a regular expression, not 1"),
        ({"allowed_pattern": "("}, '.allowed_pattern: "(" is not a regular expression: '),
        ({"custom_constraint": ""}, '.custom_constraint: must be the name of a constraint, not ""'),
        (
            {"custom_constraint": "nova.flavour"},
            '.custom_constraint: there is no constraint "nova.flavour"; there are: nova.flavor',
        ),
    ],
)
def test_a_wrong_constraint_is_refused_with_its_path(constraint, words):
    assert failure("string", constraint, "ab").startswith(f"parameters.p.constraints.0{words}")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"step": 2}, ": must have a step and an offset"),
        ({"step": 0, "offset": 0}, ": step must not be 0, and offset must be smaller than step"),
        ({"step": 2, "offset": 2}, ": step must not be 0, and offset must be smaller than step"),
        ({"step": 3, "offset": -1}, ": step and offset must both be positive or both negative"),
        ({"step": 2.5, "offset": 0}, ".step: must be a whole number, not 2.5"),
    ],
)
def test_a_wrong_modulo_is_refused(body, words):
    assert failure("number", {"modulo": body}, 1).startswith(f"parameters.p.constraints.0.modulo{words}")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("ip_addr", ["10.0.0.1", "::1", "2001:db8::1"], ["10.0.0", "10.0.0.256", "10.0.0.0/8", "x"]),
        (
            "net_cidr",
            ["10.0.0.0/8", "10.0.0.1/24", "::/0"],
            ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0"],
        ),
        ("ip_or_cidr", ["10.0.0.1", "10.0.0.0/8", "::1/64"], ["10.0.0.0/", "x"]),
        ("mac_addr", ["00:11:22:33:44:55", "00-11-22-33-44-FF"], ["00:11:22:33:44", "00:11:22:33:44:gg"]),
        ("dns_name", ["example.com", "example.com.", "a-b"], ["-a.com", "a..b", "a" * 64]),
        ("rel_dns_name", ["host", "host.sub"], ["host."]),
        ("dns_domain", ["example.com."], ["example.com"]),
        ("iso_8601", ["2015-01-01", "2015-01-01T10:00:00+02:00"], ["yesterday", "2015-13-01"]),
        ("json_string", ['{"a": 1}', "[]"], ["{", "a"]),
        ("timezone", ["", "UTC", "Europe/Paris"], ["Europe", "Europe/Atlantis", "/etc/passwd", "../UTC"]),
        (
            "cron_expression",
            [
                *("", "* * * * *", "*/5 0-6 1,15 * mon-fri", "0 0 L * ?", "0 0 * jan-mar 7", "@daily"),
                *("0 0 * * mon#1", "0 0 * * l5", "0 0 1 1 * 30", "0 0 1 1 * 0 2030"),
            ],
            [
                *("* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "@soon"),
                *("*/0 * * * *", "a * * * *", "1-2-3 * * * *", ", * * * *", "* * * * * 60", "* * * * mon#6"),
            ],
        ),
        ("expiration", ["", "2001-01-01", "2099-01-01T00:00:00Z"], ["soon", "2099-13-01"]),
    ],
)
def test_constraints_that_need_no_cloud_are_checked(name, good, bad):
    for value in good:
        check("string", {"custom_constraint": name}, value)
    for value in bad:
        assert value in failure("string", {"custom_constraint": name}, value)


@pytest.mark.parametrize("name", ["nova.flavor", "glance.image", "neutron.network", "zaqar.queue"])
def test_what_only_the_cloud_knows_is_left_to_it(name):
    assert name in KNOWN
    assert check("string", {"custom_constraint": name}, "anything").value == "anything"


def test_a_default_need_not_satisfy_a_custom_constraint_until_it_is_used():
    constraint = {"custom_constraint": "ip_addr"}
    assert check("string", constraint, "10.0.0.1", default="").value == "10.0.0.1"
    assert failure("string", constraint, default="") == 'parameters.p.default: "" is not an IP address'


def test_items_of_a_list_are_checked_one_by_one():
    constraint = {"custom_constraint": "ip_addr"}
    check("comma_delimited_list", constraint, "10.0.0.1,10.0.0.2")
    assert "10.0.0.x" in failure("comma_delimited_list", constraint, "10.0.0.1,10.0.0.x")


ENDLESS = {"allowed_pattern": "(a+)+"}
POISON = "a" * 60 + "!"


@pytest.mark.parametrize(
    ("where", "options"),
    [("parameters.p", {"value": POISON}), ("parameters.p.default", {"default": POISON})],
)
def test_a_pattern_that_takes_too_long_is_refused_with_its_path(where, options):
    with pytest.raises(LimitExceeded) as caught:
        check("string", ENDLESS, **options)
    assert str(caught.value) == (
        f'{where}: the regular expression "(a+)+" cannot be tried on the value: it took more than 1 s'
    )


def test_a_hidden_value_is_not_in_the_error_of_a_pattern_that_takes_too_long():
    with pytest.raises(LimitExceeded) as caught:
        check("string", ENDLESS, POISON, hidden=True)
    error = caught.value
    while error is not None:
        assert POISON not in repr(error)
        error = error.__cause__ or error.__context__


def test_a_pattern_may_look_ahead_and_refer_back_as_in_heat():
    pattern = {"allowed_pattern": r"(?=.*[A-Z])(?=.*\d).{8,}"}
    check("string", pattern, "Password1")
    assert "does not match" in failure("string", pattern, "password1")
    check("string", {"allowed_pattern": r"(.)\1"}, "aa")
