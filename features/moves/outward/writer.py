"""Writes one tree into Heat's database, in the transaction of its connection."""

import typing
from collections.abc import Collection, Iterable, Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ....shapes import Json, JsonMap
from ..heat import tables
from ..heat.cipher import HeatCipher
from ..heat.rows import HeatResource, HeatStack, HeatTree, Refused
from .comparison import merged
from .outgoing import OutgoingTree
from .software_writer import SoftwareWriter
from .statements import HeatRows
from .templates import TemplateStore

NAME_TAKEN = "Heat has another stack of this name in the project: rename or delete one of the two"
Columns = dict[str, typing.Any]


class TreeWriter:
    """Writes one tree.

    :param stored_tree: the tree as Heat's database has it; None: it has none with this id.
    :param obsolete: ids of the configs and deployments of its resources that Stoker has deleted since.
    """

    def __init__(
        self,
        rows: HeatRows,
        cipher: HeatCipher,
        built: OutgoingTree,
        stored_tree: HeatTree | None,
        obsolete: Collection[str] = (),
    ) -> None:
        self._rows = rows
        self._cipher = cipher
        self._built = built
        self._obsolete = obsolete
        self._before = (
            {}
            if stored_tree is None
            else {stack.id: stack for stack in (stored_tree.root, *stored_tree.stacks)}
        )
        self._templates = TemplateStore(self._rows, cipher, built.tree.templates)

    def write(self) -> int:
        """Write the tree; return the number of rows that this has changed."""
        root = self._built.tree.root
        # Rows refer to others by numbers: the credential comes first, then each stack before those in it.
        creds_id = self._credential(root)
        for stack, depth in _with_depths(self._built.tree):
            self._stack(stack, depth, creds_id)
        self._remove_missing({root.id, *(stack.id for stack in self._built.tree.stacks)})
        # What may go is decided once nothing of the tree names it any more: credentials, then configs.
        forget_credentials(self._rows, {stack.creds_id for stack in self._before.values()} - {creds_id})
        software = SoftwareWriter(self._rows, root.project_id)
        software.put(self._built.configs, self._built.deployments)
        software.remove(self._obsolete)
        # The import has left the lock: its end in this transaction hands the tree back to Heat's engines.
        self._rows.delete(tables.stack_lock, "stack_id", [root.id])
        return self._rows.changes

    # -- stacks ------------------------------------------------------------------------------------

    def _stack(self, stack: HeatStack, depth: int, creds_id: int | None) -> None:
        stored_stack = self._before.get(stack.id)
        unchanged = merged(stack, stored_stack)
        # Where nothing has happened since the import, Heat's own rows know more than those made of Stoker's.
        if unchanged is None:
            self._replace(stack, depth, creds_id)
        else:
            columns = {"deleted_at": stack.deleted_at, "user_creds_id": creds_id}
            self._rows.update(tables.stack, stack.id, columns)
            self._change_metadata(unchanged, stored_stack)
        self._tags(stack, stored_stack)
        self._events(stack)
        self._snapshots(stack)

    def _replace(self, stack: HeatStack, depth: int, creds_id: int | None) -> None:
        """Write the whole of a stack in the place of what Heat has of it."""
        # Read while the old rows name them, and deleted when nothing does: other rows may share them.
        earlier_templates = self._templates.used_by(stack.id)
        columns = self._columns_of(stack, depth, creds_id)
        columns["raw_template_id"] = self._templates.number_of(stack.template_id)
        if stack.previous_template_id is not None:
            columns["prev_raw_template_id"] = self._templates.number_of(stack.previous_template_id)
        self._rows.put(tables.stack, stack.id, columns)
        remove_resources(self._rows, stack.id)
        self._resources(stack)
        self._templates.forget(earlier_templates)

    def _columns_of(self, stack: HeatStack, depth: int, creds_id: int | None) -> Columns:
        return {
            "name": stack.name,
            "created_at": stack.created_at,
            "updated_at": stack.updated_at,
            "deleted_at": stack.deleted_at,
            "action": stack.action,
            "status": stack.status,
            "status_reason": stack.reason,
            "prev_raw_template_id": None,
            "username": stack.username,
            "tenant": stack.project_id,
            "user_creds_id": creds_id,
            "owner_id": stack.owner_id,
            "parent_resource_name": stack.parent_resource_name,
            "timeout": stack.timeout,
            "disable_rollback": stack.disable_rollback,
            "stack_user_project_id": stack.user_project_id,
            # Heat's older engine made backup stacks; only its present one reads these rows.
            "backup": False,
            "nested_depth": depth,
            "convergence": True,
            "current_traversal": stack.traversal,
        }

    def _remove_missing(self, present: Collection[str]) -> None:
        """Remove the nested stacks that Stoker has deleted since, as Heat itself removes them."""
        for stack in self._before.values():
            if stack.id in present:
                continue
            deleted_at = stack.deleted_at or self._built.tree.root.updated_at or stack.created_at
            remove_stack(self._rows, stack.id, deleted_at)

    # -- resources ---------------------------------------------------------------------------------

    def _resources(self, stack: HeatStack) -> None:
        """Insert the resources, and then say which of them need which: they have numbers only then."""
        numbers = {row.id: self._resource(row, stack) for row in stack.resources}
        needed_by: dict[int, list[int]] = {}
        for row in stack.resources:
            for key in row.requires:
                needed_by.setdefault(key, []).append(numbers[row.id])
        for row in stack.resources:
            columns = {
                "requires": [numbers[key] for key in row.requires],
                "needed_by": needed_by.get(row.id, []),
                "replaces": numbers.get(row.replaces or 0),
                "replaced_by": numbers.get(row.replaced_by or 0),
            }
            self._rows.update(tables.resource, numbers[row.id], columns)
        # An edge without an end keeps a resource in Heat's graph that needs no other one.
        edges: list[Json] = [[[number, True], None] for number in numbers.values()]
        edges += [
            [[numbers[row.id], True], [numbers[key], True]] for row in stack.resources for key in row.requires
        ]
        self._rows.update(tables.stack, stack.id, {"current_deps": {"edges": edges}})

    def _resource(self, row: HeatResource, stack: HeatStack) -> int:
        number = self._rows.insert(
            tables.resource,
            {
                "uuid": row.uuid,
                "name": row.name,
                "physical_id": row.physical_id,
                "metadata": row.metadata or {},
                "created_at": row.created_at,
                "updated_at": row.updated_at,
                "action": row.action,
                "status": row.status,
                "status_reason": row.reason,
                "stack_id": stack.id,
                "root_stack_id": self._built.tree.root.id,
                "rsrc_prop_data_id": self._values(row.properties, is_secret=row.is_secret),
                "attr_data_id": self._values(row.attributes or None, is_secret=row.is_secret),
                "current_template_id": self._templates.number_of(row.template_id or stack.template_id),
                "atomic_key": 1,
            },
        )
        for key, value in row.data.items():
            # Which of the data are secret only Heat's classes know, so all are stored as secrets.
            method, text = self._cipher.encrypt(value)
            columns = {"key": key, "value": text, "redact": True, "decrypt_method": method}
            self._rows.insert(tables.resource_data, {**columns, "resource_id": number})
        return number

    def _values(self, values: JsonMap | None, *, is_secret: bool) -> int | None:
        if values is None:
            return None
        if is_secret:
            values = {name: self._cipher.encrypt_json(value) for name, value in values.items()}
        return self._rows.insert(tables.resource_properties_data, {"data": values, "encrypted": is_secret})

    def _change_metadata(self, stack: HeatStack, stored_stack: HeatStack | None) -> None:
        stored = {
            row.id: row.metadata for row in (stored_stack.resources if stored_stack is not None else ())
        }
        for row in stack.resources:
            if row.metadata != stored[row.id]:
                self._rows.update(tables.resource, row.id, {"metadata": row.metadata})

    # -- what belongs to a stack -------------------------------------------------------------------

    def _tags(self, stack: HeatStack, stored_stack: HeatStack | None) -> None:
        if stored_stack is not None and list(stored_stack.tags) == list(stack.tags):
            return
        self._rows.delete(tables.stack_tag, "stack_id", [stack.id])
        for tag in stack.tags:
            self._rows.insert(tables.stack_tag, {"tag": tag, "stack_id": stack.id})

    def _events(self, stack: HeatStack) -> None:
        """Insert the events that Heat's database does not have."""
        e = tables.event
        stored = set(self._rows.select(sa.select(e.c.uuid).where(e.c.stack_id == stack.id)))
        for event in stack.events:
            if event.uuid in stored:
                continue
            self._rows.insert(
                e,
                {
                    "uuid": event.uuid,
                    "stack_id": stack.id,
                    "created_at": event.at,
                    "resource_action": event.action,
                    "resource_status": event.status,
                    "resource_name": event.resource_name,
                    "physical_resource_id": event.physical_id,
                    "resource_status_reason": event.reason,
                    "resource_type": event.resource_type,
                    "rsrc_prop_data_id": self._values(event.properties, is_secret=False),
                },
            )

    def _snapshots(self, stack: HeatStack) -> None:
        s = tables.snapshot
        stored = set(self._rows.select(sa.select(s.c.id).where(s.c.stack_id == stack.id)))
        obsolete = stored - {snapshot.id for snapshot in stack.snapshots}
        self._rows.delete(tables.resource_snapshot, "snapshot_id", obsolete)
        self._rows.delete(s, "id", obsolete)
        for snapshot in stack.snapshots:
            if snapshot.id in stored:
                continue
            columns = {
                "stack_id": stack.id,
                "tenant": stack.project_id,
                "name": snapshot.name,
                "data": snapshot.data,
                "action": snapshot.action,
                "status": snapshot.status,
                "status_reason": snapshot.reason,
                "created_at": snapshot.created_at,
            }
            self._rows.put(s, snapshot.id, columns)

    # -- credentials, software, locks --------------------------------------------------------------

    def _credential(self, root: HeatStack) -> int | None:
        """Return the number of the row with the tree's credential; None: it has none."""
        stored_root = self._before.get(root.id)
        # As long as the trust is the same, its row keeps the columns that only Heat knows.
        if (
            stored_root is not None
            and stored_root.creds_id is not None
            and stored_root.trust_id == root.trust_id
        ):
            return stored_root.creds_id
        if root.trust_id is None:
            return root.creds_id
        method, text = self._cipher.encrypt(root.trust_id)
        c = tables.user_creds
        # A trust needs the address and the region of Heat's own Keystone: the newest credential has both.
        latest = sa.select(c.c.auth_url, c.c.region_name).order_by(c.c.id.desc()).limit(1)
        like = self._rows.first(latest)
        columns = {"decrypt_method": method, "trust_id": text, "trustor_user_id": root.trustor_id}
        return self._rows.insert(c, {**like, **columns, "tenant_id": root.project_id})


def check_untouched(conn: Connection, root: HeatStack, stored_tree: HeatTree | None) -> None:
    """Lock the row of a root stack, and check that it is as it was read; a new one needs a free name.

    :raises Refused: Heat has changed it meanwhile, or has another stack of its name.
    """
    s = tables.stack
    row = conn.execute(sa.select(s.c.current_traversal).where(s.c.id == root.id).with_for_update()).first()
    # Each action in Heat gives a stack another traversal: an equal one means that nothing has been done.
    expected = None if stored_tree is None else (stored_tree.root.traversal,)
    if (None if row is None else tuple(row)) != expected:
        raise Refused(f"Heat has changed stack {root.name} meanwhile: stop heat-engine, and run this again")
    is_other = [s.c.name == root.name, s.c.tenant == root.project_id, s.c.id != root.id]
    # Heat keeps names unique among living root stacks only.
    is_root = [s.c.owner_id.is_(None), s.c.deleted_at.is_(None), sa.or_(s.c.backup.is_(None), ~s.c.backup)]
    if conn.execute(sa.select(s.c.id).where(*is_other, *is_root).limit(1)).first() is not None:
        raise Refused(NAME_TAKEN)


def delete_tree(rows: HeatRows, tree: HeatTree, deleted_at: float, obsolete: Collection[str] = ()) -> None:
    """Remove a tree as Heat itself does: its events stay until they are purged.

    :param deleted_at: seconds since the epoch.
    :param obsolete: ids of the configs and deployments of its resources, which Stoker has deleted.
    """
    for stack in (tree.root, *tree.stacks):
        remove_stack(rows, stack.id, deleted_at)
        snapshot_ids = [snapshot.id for snapshot in stack.snapshots]
        rows.delete(tables.resource_snapshot, "snapshot_id", snapshot_ids)
        rows.delete(tables.snapshot, "id", snapshot_ids)
    forget_credentials(rows, {stack.creds_id for stack in (tree.root, *tree.stacks)})
    SoftwareWriter(rows, tree.root.project_id).remove(obsolete)
    rows.delete(tables.stack_lock, "stack_id", [tree.root.id])


def remove_stack(rows: HeatRows, stack_id: str, deleted_at: float) -> None:
    """Remove the resources of a stack, and mark it as deleted."""
    remove_resources(rows, stack_id)
    columns = {"action": "DELETE", "status": "COMPLETE", "deleted_at": deleted_at, "user_creds_id": None}
    rows.update(tables.stack, stack_id, columns)


def forget_credentials(rows: HeatRows, ids: Iterable[int | None]) -> None:
    """Delete credentials that no stack has any more."""
    s = tables.stack
    unused = {key for key in ids if key is not None}
    in_use = sa.select(s.c.user_creds_id).where(s.c.user_creds_id.in_(list(unused)))
    rows.delete(tables.user_creds, "id", unused - set(rows.select(in_use)))


def remove_resources(rows: HeatRows, stack_id: str) -> None:
    """Remove the resources of a stack with their data, but not the values that events show, too."""
    r = tables.resource
    query = sa.select(r.c.id, r.c.rsrc_prop_data_id, r.c.attr_data_id).where(r.c.stack_id == stack_id)
    stored = rows.select_all(query)
    ids = [row.id for row in stored]
    rows.delete(tables.resource_data, "resource_id", ids)
    rows.delete(r, "id", ids)
    values = {key for row in stored for key in (row.rsrc_prop_data_id, row.attr_data_id) if key is not None}
    e = tables.event
    in_events = sa.select(e.c.rsrc_prop_data_id).where(e.c.rsrc_prop_data_id.in_(list(values)))
    rows.delete(tables.resource_properties_data, "id", values - set(rows.select(in_events)))


def _with_depths(tree: HeatTree) -> Iterator[tuple[HeatStack, int]]:
    """Yield the stacks, those around a stack before it, with the number of stacks around each."""
    depths: dict[str | None, int] = {None: -1}
    for stack in (tree.root, *tree.stacks):
        depths[stack.id] = depths[stack.owner_id] + 1
        yield stack, depths[stack.id]
