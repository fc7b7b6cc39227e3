"""Each wrong, unknown and deprecated option is named with its file and section."""

import pathlib

import pytest
from stoker.cli.commands.base import AdminError
from stoker.cli.commands.config import Problem, in_file, known_options
from stoker.cli.commands.purge import seconds_of

KNOWN = known_options(["password"])
RIGHT = """
[DEFAULT]
transport_url = rabbit://u:p@h/v
debug = true
log-file = /var/log/stoker.log
[database]
connection = postgresql+psycopg://u:p@h/d
[coordination]
heartbeat = 1.5
[keystone_authtoken]
auth_type = password
auth_url = http://k
username = stoker
password = x$y
project_name = service
user_domain_name = Default
memcached_servers = a:1,b:2
[oslo_messaging_notifications]
driver = messagingv2
driver = log
[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 60
[oslo_policy]
policy_file = policy.yaml
[api]
trusted_proxies = 10.0.0.5, 10.1.0.0/24,2001:db8::/48
[secrets]
key = abc
key = def
"""


def problems_of(tmp_path: pathlib.Path, text: str) -> list[Problem]:
    path = tmp_path / "stoker.conf"
    path.write_text(text)
    problems = list(in_file(path, KNOWN))
    assert all(problem.where.startswith(str(path)) for problem in problems)
    return [Problem(p.where.removeprefix(f"{path}: "), p.what, p.serious) for p in problems]


def test_what_is_right_is_not_reported(tmp_path: pathlib.Path) -> None:
    assert problems_of(tmp_path, RIGHT) == []


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        (
            "[conductor]\nthread = 4\n",
            "[conductor] thread",
            'there is no such option; did you mean "threads"?',
        ),
        ("[conductr]\nthreads = 4\n", "[conductr]", 'there is no such section; did you mean "conductor"?'),
        ("[conductor]\nthreads = many\n", "[conductor] threads", "many"),
        ("[conductor]\nthreads = 0\n", "[conductor] threads", "Should be greater than or equal to 1"),
        ("[api]\nauth_strategy = none\nbind_port = 99999\n", "[api] bind_port", "65535"),
        ("[api]\ntrusted_proxies = 10.0.0.5, haproxy\n", "[api] trusted_proxies", "'haproxy' is not an"),
        ("[api]\ntrusted_proxies = 10.0.0.5/24\n", "[api] trusted_proxies", "write 10.0.0.0/24 for the"),
        ("[api]\ntrusted_proxies = ::1 # TLS\n", "[api] trusted_proxies", "a comment needs a line"),
        ("[stacks]\nheld_time = stops\n", "[stacks] held_time", "stands"),
        (
            "[oslo_messaging_rabbit]\nrabbit_qos_prefetch_count = x\n",
            "[oslo_messaging_rabbit] rabbit_qos",
            "x",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: pathlib.Path, text: str, where: str, message: str) -> None:
    [problem] = problems_of(tmp_path, text)
    assert problem.where.startswith(where)
    assert message in problem.what
    assert problem.serious


def test_every_problem_of_a_file_is_reported(tmp_path: pathlib.Path) -> None:
    text = "[conductor]\nthread = 4\nweight = heavy\n[nothing]\na = b\n"
    assert len(problems_of(tmp_path, text)) == 3


def test_an_older_name_is_shown_with_the_new_one(tmp_path: pathlib.Path) -> None:
    [problem] = problems_of(tmp_path, "[keystone_authtoken]\nmemcache_servers = a:1\n")
    assert (problem.what, problem.serious) == (
        "its name is [keystone_authtoken] memcached_servers now",
        False,
    )


def test_a_file_that_is_none_is_reported_with_the_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "stoker.conf"
    path.write_text("no section\n")
    [problem] = in_file(path, KNOWN)
    assert "no section" in problem.what
    [problem] = in_file(tmp_path / "nothing.conf", KNOWN)
    assert "nothing.conf" in problem.where


def test_ages_have_units() -> None:
    assert [seconds_of(text) for text in ("45s", "1.5min", "2h", "30d")] == [45, 90, 7200, 2592000]
    for text in ("30", "-1d", "soon", "1w"):
        with pytest.raises(AdminError, match="is not an age: write a number and a unit"):
            seconds_of(text)
