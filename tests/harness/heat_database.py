"""A database of Heat's with stacks as its engine leaves them; made without Heat."""

import base64
import json
import typing
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from cryptography.fernet import Fernet
from stoker.features.moves.heat import tables

Json = typing.Any
KEY = "a key of thirty-two characters.."
CREATED = 1_700_000_000.0


def encrypted(value: str, key: str = KEY) -> tuple[str, str]:
    """Method and text of a value as Heat encrypts it."""
    cipher = Fernet(base64.b64encode(key.encode()))
    return "cryptography_decrypt_v1", cipher.encrypt(value.encode()).decode()


@dataclass
class HeatRow:
    """A resource to be stored.

    :ivar data: values by key; those whose key is in `secret` are encrypted.
    :ivar columns: further columns.
    """

    name: str
    physical_id: str | None = None
    properties: Mapping[str, Json] | None = None
    attributes: Mapping[str, Json] | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    secret: Sequence[str] = ()
    columns: Mapping[str, Json] = field(default_factory=dict)


class HeatStore:
    """Stores stacks.

    :param url: SQLAlchemy URL of an empty database.
    """

    def __init__(self, url: str) -> None:
        self.engine = sa.create_engine(url)
        tables.metadata.create_all(self.engine)
        self._numbers = 0

    def stack(
        self,
        name: str,
        template: Json,
        rows: Sequence[HeatRow] = (),
        *,
        tags: Sequence[str] = (),
        **columns: Json,
    ) -> str:
        """Store a stack with its resources and an event for each; its id.

        :param columns: columns of the stack; ``environment`` and ``files`` are its template's.
        """
        stack_id = str(uuid.uuid4())
        environment = {"parameters": {}, "encrypted_param_names": [], **columns.pop("environment", {})}
        template_id = self.template(template, environment, columns.pop("files", {}))
        row = {
            "id": stack_id,
            "name": name,
            "created_at": CREATED,
            "action": "CREATE",
            "status": "COMPLETE",
            "status_reason": "Stack CREATE completed successfully",
            "raw_template_id": template_id,
            "tenant": "project",
            "username": "alice",
            "disable_rollback": True,
            "current_traversal": str(uuid.uuid4()),
            **columns,
        }
        with self.engine.begin() as conn:
            conn.execute(sa.insert(tables.stack), [row])
            for tag in tags:
                conn.execute(
                    sa.insert(tables.stack_tag), [{"id": self.number(), "tag": tag, "stack_id": stack_id}]
                )
        for item in rows:
            self.resource(stack_id, item, template_id)
        return stack_id

    def template(self, template: Json, environment: Json = None, files: Json = None) -> int:
        """Store a template; its id."""
        number = self.number()
        with self.engine.begin() as conn:
            conn.execute(sa.insert(tables.raw_template_files), [{"id": number, "files": files or {}}])
            row = {"id": number, "template": template, "environment": environment or {}, "files_id": number}
            conn.execute(sa.insert(tables.raw_template), [row])
        return number

    def resource(self, stack_id: str, item: HeatRow, template_id: int) -> int:
        """Store a resource of a stack, with an event; its id."""
        number = self.number()
        row = {
            "id": number,
            "uuid": str(uuid.uuid4()),
            "name": item.name,
            "physical_id": item.physical_id,
            "stack_id": stack_id,
            "action": "CREATE",
            "status": "COMPLETE",
            "status_reason": "state changed",
            "created_at": CREATED,
            "metadata": {},
            "current_template_id": template_id,
            "rsrc_prop_data_id": self._values(item.properties),
            "attr_data_id": self._values(item.attributes),
            **item.columns,
        }
        event = {
            "id": self.number(),
            "uuid": str(uuid.uuid4()),
            "stack_id": stack_id,
            "created_at": CREATED,
            "resource_action": row["action"],
            "resource_status": row["status"],
            "resource_name": item.name,
            "physical_resource_id": item.physical_id,
            "resource_status_reason": "state changed",
            "resource_type": "any",
            "rsrc_prop_data_id": row["rsrc_prop_data_id"],
        }
        data = []
        for key, value in item.data.items():
            method, text = encrypted(value) if key in item.secret else ("", value)
            data.append(
                {
                    "id": self.number(),
                    "key": key,
                    "value": text,
                    "decrypt_method": method,
                    "resource_id": number,
                }
            )
        with self.engine.begin() as conn:
            conn.execute(sa.insert(tables.resource), [row])
            conn.execute(sa.insert(tables.event), [event])
            if data:
                conn.execute(sa.insert(tables.resource_data), data)
        return number

    def number(self) -> int:
        """A new id of a row."""
        self._numbers += 1
        return self._numbers

    def _values(self, values: Mapping[str, Json] | None) -> int | None:
        if values is None:
            return None
        number = self.number()
        row = {"id": number, "data": json.loads(json.dumps(values)), "encrypted": False}
        with self.engine.begin() as conn:
            conn.execute(sa.insert(tables.resource_properties_data), [row])
        return number
