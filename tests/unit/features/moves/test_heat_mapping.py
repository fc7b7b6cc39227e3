"""The mapping between Heat's rows and Stoker's: one table for both directions."""

import dataclasses

import pytest
from stoker.db.rows import Event, Resource, Snapshot, Stack
from stoker.db.software import StoredConfig, StoredDeployment
from stoker.features.moves.heat.rows import (
    HeatConfig,
    HeatDeployment,
    HeatEvent,
    HeatResource,
    HeatSnapshot,
    HeatStack,
)
from stoker.features.moves.mapping import columns, data

KINDS = {
    "stack": (columns.STACK, HeatStack, Stack),
    "resource": (columns.RESOURCE, HeatResource, Resource),
    "event": (columns.EVENT, HeatEvent, Event),
    "snapshot": (columns.SNAPSHOT, HeatSnapshot, Snapshot),
    "config": (columns.CONFIG, HeatConfig, StoredConfig),
    "deployment": (columns.DEPLOYMENT, HeatDeployment, StoredDeployment),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_common_column_is_one_of_both_rows_and_none_that_has_its_name_is_forgotten(kind: str) -> None:
    table, of_heat, of_stoker = KINDS[kind]
    heat, stoker = ({field.name for field in dataclasses.fields(row)} for row in (of_heat, of_stoker))
    assert table.pairs.keys() <= heat
    assert set(table.pairs.values()) <= stoker
    assert len(set(table.pairs.values())) == len(table.pairs)
    assert (heat & stoker) - table.pairs.keys() == MADE_OTHERWISE[kind]


MADE_OTHERWISE = {
    "stack": {"id", "name", "traversal", "tags", "template_id"},
    "resource": {
        *("id", "stack_id", "physical_id", "metadata", "properties", "attributes", "data", "requires"),
        *("replaces", "replaced_by"),
    },
    "event": {"stack_id"},
    "snapshot": {"id", "stack_id", "action"},
    "config": {"id"},
    "deployment": {"id", "config_id", "input_values", "output_values"},
}
"""Columns of both whose values differ, or are ids; their makers say how."""


@pytest.mark.parametrize("type_name", data.KEPT)
def test_a_value_that_types_keep_returns_as_it_was(type_name: str) -> None:
    of_heat = {value.heat: f"the {value.heat}" for value in data.KEPT[type_name]}
    of_stoker, secrets = data.kept_of_heat(type_name, of_heat)
    assert data.kept_of_stoker(type_name, of_stoker) == of_heat
    assert len(secrets) == sum(value.is_secret for value in data.KEPT[type_name])


def test_the_removed_members_of_a_group_return_as_they_were() -> None:
    assert data.blacklist(data.removed_members({"name_blacklist": "0,2"})) == {"name_blacklist": "0,2"}
    assert data.blacklist(data.removed_members({})) == {}
