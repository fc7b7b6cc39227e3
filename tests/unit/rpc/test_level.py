"""Messages are no newer than all members understand, unless the operator says so."""

import pytest
from harness.next_messages import speak_next
from oslo_upgradecheck.upgradecheck import Code
from stoker.cli.programs.status import judged
from stoker.db.errors import Unavailable
from stoker.rpc.contract import LOWEST, VERSION, VERSIONS, parsed, understood
from stoker.rpc.level import HOLDS, Level


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> None:
    speak_next(monkeypatch)


class Conductors:
    """Conductors with their levels, and the number of reads."""

    def __init__(self, *spoken: str) -> None:
        self.spoken = spoken
        self.away = False
        self.reads = 0
        self.now = 0.0

    def __call__(self) -> tuple[str, ...]:
        self.reads += 1
        if self.away:
            raise Unavailable("it is away")
        return self.spoken

    def level(self, pin: str = "auto") -> Level:
        return Level(self, pin=lambda: pin, clock=lambda: self.now)


def test_the_versions_are_in_order_and_all_of_one_major_version() -> None:
    assert sorted(VERSIONS, key=parsed) == [*VERSIONS]
    assert ([*VERSIONS][0], [*VERSIONS][-1]) == (LOWEST, VERSION)
    assert {parsed(version)[0] for version in VERSIONS} == {1}


@pytest.mark.usefixtures("next_release")
@pytest.mark.parametrize(
    ("spoken", "version"),
    [
        (["1.1"], "1.1"),
        (["1.1", "1.0", "1.1"], "1.0"),
        (["1.1", "1.9"], "1.1"),
        (["1.10"], "1.1"),
        (["2.3"], "1.0"),
        ([], "1.0"),
        (["1.1", ""], "1.0"),
        (["1.1", "0.9"], "1.0"),
        (["1.1", "nonsense"], "1.0"),
    ],
)
def test_the_highest_version_is_found_that_all_understand(spoken: list[str], version: str) -> None:
    assert understood(spoken) == version
    assert Conductors(*spoken).level().version() == version


@pytest.mark.usefixtures("next_release")
def test_the_conductors_are_looked_at_only_when_it_matters_and_not_again_for_a_while() -> None:
    conductors = Conductors("1.1")
    level = conductors.level()
    assert conductors.reads == 0
    assert level.allows("1.1")
    conductors.spoken = ("1.0",)
    conductors.now = HOLDS - 0.1
    assert (level.version(), conductors.reads) == ("1.1", 1)
    conductors.now = HOLDS
    assert (level.version(), conductors.reads) == ("1.0", 2)
    assert level.allows("1.0")
    assert not level.allows("1.1")


@pytest.mark.usefixtures("next_release")
def test_a_change_of_the_ring_makes_the_next_message_look_again() -> None:
    conductors = Conductors("1.0")
    level = conductors.level()
    assert level.version() == "1.0"
    conductors.spoken = ("1.1",)
    level.reset()
    assert conductors.reads == 1
    assert (level.version(), conductors.reads) == ("1.1", 2)


@pytest.mark.usefixtures("next_release")
def test_while_the_database_is_unavailable_it_stays_as_it_was() -> None:
    conductors = Conductors("1.1")
    level = conductors.level()
    assert level.version() == "1.1"
    conductors.away = True
    level.reset()
    assert level.version() == "1.1"
    fresh = conductors.level()
    assert fresh.version() == LOWEST


@pytest.mark.usefixtures("next_release")
def test_a_pin_holds_whoever_is_there_and_asks_nobody() -> None:
    conductors = Conductors("1.1")
    assert conductors.level(pin="1.0").version() == "1.0"
    conductors.spoken = ("1.0",)
    assert conductors.level(pin="1.1").allows("1.1")
    assert conductors.reads == 0


@pytest.mark.usefixtures("next_release")
def test_a_pin_can_be_taken_away_at_run_time() -> None:
    pins = ["1.0"]
    conductors = Conductors("1.1")
    level = Level(conductors, pin=lambda: pins[-1], clock=lambda: 0.0)
    assert not level.allows("1.1")
    pins.append("auto")
    assert level.allows("1.1")


@pytest.mark.usefixtures("next_release")
@pytest.mark.parametrize(
    ("spoken", "pin", "code", "text"),
    [
        ({"a": "1.1"}, "auto", Code.SUCCESS, None),
        ({}, "1.0", Code.SUCCESS, None),
        ({"a": "1.0", "b": "1.1"}, "auto", Code.WARNING, "RPC 1.1, a speaks 1.0: they work together"),
        ({"a": "1.0", "b": "1.1"}, "1.0", Code.WARNING, "a speaks 1.0: they work together"),
        ({"a": "1.0", "b": "1.1"}, "1.1", Code.FAILURE, "conductor = 1.1, but a speaks 1.0: they refuse"),
        (
            {"a": "1.1"},
            "1.0",
            Code.WARNING,
            "conductor = 1.0 is still set, although all running services speak",
        ),
        ({"a": "1.1"}, "1.1", Code.WARNING, "conductor = 1.1 is still set"),
        ({"a": "2.0"}, "auto", Code.FAILURE, "this release speaks RPC 1.1, a speaks 2.0: stop them first"),
        ({"a": ""}, "auto", Code.FAILURE, "a speaks none: stop them first"),
    ],
)
def test_the_upgrade_check_says_what_is_mixed_and_what_is_left(
    spoken: dict[str, str], pin: str, code: Code, text: str | None
) -> None:
    result = judged(spoken, pin=pin)
    assert result.code == code
    assert text is None or text in str(result.details)
