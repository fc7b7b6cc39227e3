"""Unreadable records of tooz's file driver; test_group has the driver itself."""

import types

import pytest
from stoker.ring.file_records import Unreadable, pass_over_unreadable


def test_who_reads_unreadable_records_warns_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    def load(blob: bytes, schema: str) -> None:
        raise ValueError("no record")

    now = 0.0
    driver = types.SimpleNamespace(_load_and_validate=load)
    pass_over_unreadable(driver, lambda: now)
    warned = []
    for now in (1000.0, 1030.0, 1059.9, 1060.0, 1119.0, 1121.0):
        with pytest.raises(Unreadable, match="no record"):
            driver._load_and_validate(b"blob", "member")
        if caplog.records:
            warned.append(now)
        caplog.clear()
    assert warned == [1000.0, 1060.0, 1121.0]
    with pytest.raises(ValueError, match="no record"):
        driver._load_and_validate(b"blob", "group")
