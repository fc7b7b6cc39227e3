"""Software configs and deployments as a step stores, changes, reads and deletes them."""

import base64
import functools
import typing
from collections.abc import Mapping

import pytest
import sqlalchemy as sa
from harness.lock_order import locks_taken
from services.db.rows import NOW, claim_all, new_id, store_graph
from stoker.conductor.steps.claimed_writes import StepDatabase
from stoker.conductor.steps.software import SoftwareAccess, StepSoftware
from stoker.db.engine import Database
from stoker.db.schema import tables
from stoker.db.states import TaskKind
from stoker.engine.quotas import Quotas, SoftwareLimits
from stoker.resources.contract.errors import Cancelled, PermanentError
from stoker.resources.contract.software import ConfigSpec, DeploymentSpec
from stoker.sealing.sealer import BoundSealer, Sealer, SealError
from stoker.sealing.secrets import Secrets
from stoker.sealing.software import opened, stored

Json = typing.Any
KEYS = [base64.b64encode(bytes([number]) * 64).decode() for number in range(2)]
DEFAULTS = Quotas().defaults


class Steps:
    """The steps of one resource.

    :ivar quotas: limits of the project.
    """

    def __init__(self, database: Database, *, kind: TaskKind = TaskKind.CREATE, key: str = KEYS[0]) -> None:
        self.database = database
        graph = store_graph(database, {"r": []}, kind=kind)
        [self.claim] = claim_all(database, graph.ids)
        self.quotas: Mapping[str, int] = {}
        self._key = key

    def sealer(self) -> BoundSealer:
        return Sealer([self._key]).of_software("tenant")

    def step(self) -> tuple[StepSoftware, Secrets]:
        """Return what a new step gets, and its secrets."""
        limits = SoftwareLimits(quotas=Quotas({**DEFAULTS, **self.quotas}))
        access = SoftwareAccess(StepDatabase(self.database), lambda: NOW, self.sealer(), limits)
        secrets = Secrets(self.sealer())
        return StepSoftware(self.claim, access, secrets), secrets

    def change(self, statement: sa.Executable) -> None:
        """Change rows by force."""
        self.database.write(lambda conn: conn.execute(statement))

    def configs(self) -> dict[str, Json]:
        """Return the texts of all configs, by id, with a mask for secrets."""
        c = tables.software_config.c
        rows = self.database.read(lambda conn: conn.execute(sa.select(c.id, c.body)).all())
        return {row.id: opened(self.sealer(), row.body).masked()["config"] for row in rows}


@pytest.fixture
def steps(database: Database) -> Steps:
    return Steps(database)


def text_of(step: StepSoftware, config_id: str) -> Json:
    config = step.config(config_id)
    assert config is not None
    return config.config


def deployment_of(text: str, action: str = "CREATE", **fields: Json) -> DeploymentSpec:
    return DeploymentSpec("web", action, f"{action} {text}", ConfigSpec(config=text), **fields)


def test_a_config_is_stored_once_and_belongs_to_its_resource(steps: Steps) -> None:
    step, _ = steps.step()
    key = new_id()
    assert not step.has_config(key)
    for text in ("one", "two"):
        step.create_config(key, ConfigSpec(config=text))
    assert step.has_config(key)
    assert steps.configs() == {key: "one"}
    other, _ = Steps(steps.database).step()
    assert not other.has_config(key)
    assert text_of(other, key) == "one", "it is the project's"


@pytest.mark.parametrize(
    ("made_of", "text", "masked"),
    [
        (None, "open", "open"),
        ("open", "open", "open"),
        ("a word: hidden", "encoded", "******"),
        ("a word: hidden", "encoded, and hidden", "encoded, and ******"),
    ],
)
def test_a_config_that_was_made_of_a_secret_and_does_not_hold_it_is_one_itself(
    steps: Steps, made_of: Json, text: str, masked: str
) -> None:
    step, secrets = steps.step()
    secrets.add("hidden")
    step.create_config(new_id(), ConfigSpec(config=text), made_of=made_of)
    assert list(steps.configs().values()) == [masked]


def test_the_group_of_a_config_holds_no_secret(steps: Steps) -> None:
    step, secrets = steps.step()
    secrets.add("hidden")
    with pytest.raises(PermanentError, match="the group of a config must not hold a hidden value"):
        step.create_config(new_id(), ConfigSpec(group="hidden"))
    assert steps.configs() == {}


def test_secrets_of_a_config_and_of_outputs_are_secrets_of_the_step_that_reads_them(steps: Steps) -> None:
    step, secrets = steps.step()
    secrets.add("hidden")
    key = new_id()
    step.deploy(key, deployment_of("with hidden"))
    d = tables.software_deployment
    values = stored(steps.sealer(), {"word": "signalled"}, {"signalled"})
    steps.change(sa.update(d).values(output_values=values, status=None))
    step, secrets = steps.step()
    state = step.deployment(key)
    assert state is not None
    assert (state.status, state.outputs, state.derived.config) == ("", {"word": "signalled"}, "with hidden")
    assert secrets.redact("hidden, signalled, open") == "******, ******, open"
    config_id = next(iter(steps.configs()))
    step, secrets = steps.step()
    assert text_of(step, config_id) == "with hidden"
    assert secrets.redact("hidden, signalled") == "******, signalled"


def test_a_deployment_is_changed_once_by_each_action_and_keeps_only_its_last_config(steps: Steps) -> None:
    step, _ = steps.step()
    key = new_id()
    step.deploy(key, deployment_of("one", input_values={"n": 1}))
    assert deployed(step, key) == ("IN_PROGRESS", "one")
    d = tables.software_deployment
    steps.change(sa.update(d).values(status="COMPLETE"))
    step.deploy(key, deployment_of("one", input_values={"n": 1}))
    assert deployed(step, key) == ("COMPLETE", "one"), "the guest has answered"
    with locks_taken() as taken:
        step.deploy(key, deployment_of("two", "UPDATE"))
    assert taken[:2] == ["task", "software_deployment"]
    assert deployed(step, key) == ("IN_PROGRESS", "two")
    step.deploy(key, deployment_of("three", "UPDATE", waits=False))
    assert deployed(step, key) == ("COMPLETE", "three")
    assert list(steps.configs().values()) == ["three"]


def deployed(step: StepSoftware, key: str) -> tuple[str, Json]:
    """Return the status of a deployment, and the text of its config."""
    state = step.deployment(key)
    assert state is not None
    return state.status, state.derived.config


def test_what_is_read_of_a_deployment_whose_rows_are_gone_is_empty(steps: Steps) -> None:
    step, _ = steps.step()
    key = new_id()
    assert step.deployment(key) is None
    step.deploy(key, deployment_of("one"))
    steps.change(sa.update(tables.resource).values(generation=3))
    state = step.deployment(key)
    assert state is not None
    assert (state.generation, state.outputs) == (3, {})
    steps.change(sa.delete(tables.resource))
    steps.change(sa.delete(tables.software_config))
    state = step.deployment(key)
    assert state is not None
    assert (state.generation, state.derived) == (0, ConfigSpec())


@pytest.mark.parametrize(
    ("quotas", "refused"),
    [
        ({"software_configs": 0}, "config"),
        ({"software_deployments": 0}, "deploy"),
        ({"software_configs": 0}, "deploy"),
        ({"software_bytes": 1}, "change"),
    ],
)
def test_a_project_gets_no_more_than_it_may_have(
    steps: Steps, quotas: Mapping[str, int], refused: str
) -> None:
    key = new_id()
    step, _ = steps.step()
    if refused == "change":
        step.deploy(key, deployment_of("one"))
    steps.quotas = quotas
    step, _ = steps.step()
    before = steps.configs()
    spec = ConfigSpec(config="two")
    change: typing.Any = functools.partial(step.create_config, key, spec)
    if refused != "config":
        change = functools.partial(step.deploy, key, deployment_of("two", "UPDATE"))
    with pytest.raises(PermanentError) as error:
        change()
    assert error.value.kind == "RequestLimitExceeded"
    assert steps.configs() == before


def test_a_project_that_has_too_much_can_change_and_delete_its_deployments(steps: Steps) -> None:
    key = new_id()
    step, _ = steps.step()
    step.deploy(key, deployment_of("one"))
    steps.quotas = {"software_configs": 0, "software_deployments": 0}
    step, _ = steps.step()
    step.deploy(key, deployment_of("two", "UPDATE"))
    steps.quotas = {"software_bytes": 1}
    step, _ = steps.step()
    step.deploy(key, deployment_of("three", "DELETE"))
    assert list(steps.configs().values()) == ["three"]
    step.delete_deployments()
    assert (step.deployment(key), steps.configs()) == (None, {})


def test_a_config_to_which_a_deployment_refers_stays(steps: Steps) -> None:
    step, _ = steps.step()
    key = new_id()
    step.create_config(key, ConfigSpec(config="one"))
    other = Steps(steps.database)
    other_step, _ = other.step()
    other_key = new_id()
    other_step.deploy(other_key, deployment_of("two"))
    steps.change(sa.update(tables.software_deployment).values(config_id=key))
    with pytest.raises(PermanentError) as error:
        step.delete_configs()
    assert error.value.kind == "InvalidRestrictedAction"
    assert sorted(steps.configs().values()) == ["one", "two"]
    other_step.delete_deployments()
    step.delete_configs()
    assert steps.configs() == {}


@pytest.mark.parametrize("kind", [TaskKind.UPDATE, TaskKind.DELETE])
def test_a_config_whose_key_is_lost_stops_all_but_a_deletion(database: Database, kind: TaskKind) -> None:
    key = new_id()
    step, _ = Steps(database).step()
    step.create_config(key, ConfigSpec(config="one"))
    step, _ = Steps(database, kind=kind, key=KEYS[1]).step()
    if kind == TaskKind.DELETE:
        assert step.config(key) is None
    else:
        with pytest.raises(SealError):
            step.config(key)


def test_a_step_without_its_claim_writes_nothing(steps: Steps) -> None:
    step, _ = steps.step()
    steps.change(sa.update(tables.task).values(attempt=9))
    with pytest.raises(Cancelled):
        step.create_config(new_id(), ConfigSpec(config="one"))
    assert steps.configs() == {}
