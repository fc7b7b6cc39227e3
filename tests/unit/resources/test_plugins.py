"""The resource types of the test harness do what the tests of the conductor rely on."""

import time

import pytest
from harness.fake_context import FakeContext, after, run, target_of
from harness.plugins import Blocking, Cooperative, External, Flaky
from stoker.resources.contract.errors import Cancelled, RetryableError


@pytest.fixture
def context():
    return FakeContext()


def test_blocking_blocks_without_asking(context):
    context.cancelled = True
    begin = time.monotonic()
    run(Blocking(), "create", target_of(Blocking(), {"seconds": 0.05}), context)
    assert time.monotonic() - begin >= 0.05
    assert context.paused == []


def test_blocking_blocks_in_the_actions_named_only(context):
    target = target_of(Blocking(), {"seconds": 600, "actions": ["delete"]})
    begin = time.monotonic()
    run(Blocking(), "create", target, context)
    run(Blocking(), "update", target, context)
    assert time.monotonic() - begin < 300


def test_cooperative_works_in_slices_and_ends_when_cancelled(context):
    target = target_of(Cooperative(), {"seconds": 1, "slice": 0.3})
    run(Cooperative(), "create", target, context)
    assert context.paused == pytest.approx([0.3, 0.3, 0.3, 0.1], abs=1e-3)
    context.cancelled = True
    with pytest.raises(Cancelled):
        run(Cooperative(), "create", target, context)


def test_flaky_works_at_last(context, tmp_path):
    target = target_of(Flaky(), {"directory": str(tmp_path), "times": 2, "after": 0.5})
    for count in (1, 2):
        with pytest.raises(RetryableError, match=f"try {count} failed") as caught:
            Flaky().handle_create(target, context)
        assert caught.value.after == 0.5
    created = after(target, Flaky().handle_create(target, context))
    assert Flaky().attribute_values(created) == {"tries": 3}


def test_external_makes_one_file_for_a_key_however_often_it_is_called(context, tmp_path):
    target = target_of(External(), {"directory": str(tmp_path), "poll_secs": 3}, name="web")
    assert External().find_created(target.key, target, context) is None
    External().handle_create(target, context)
    created = run(External(), "create", target, context)
    assert External().find_created(target.key, target, context) == created.physical_id == target.key
    (path,) = tmp_path.iterdir()
    assert path.read_text().split()[1] == "web"
    run(External(), "delete", created, context)
    assert list(tmp_path.iterdir()) == []


def test_external_can_be_changed(context, tmp_path):
    created = run(External(), "create", target_of(External(), {"directory": str(tmp_path)}), context)
    new = target_of(External(), {"directory": str(tmp_path), "value": "new"}, physical_id=created.physical_id)
    run(External(), "update", new, context)
    (path,) = tmp_path.iterdir()
    assert path.read_text().split()[2] == "new"
