"""Stores the templates of one tree in Heat's database."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from ..heat import tables
from ..heat.cipher import HeatCipher
from ..heat.rows import HeatTemplate
from .statements import HeatRows


class TemplateStore:
    """Stores templates when the first row refers to them.

    :param templates: templates by their ids; negative ones are not stored yet.
    """

    def __init__(self, rows: HeatRows, cipher: HeatCipher, templates: Mapping[int, HeatTemplate]) -> None:
        self._rows = rows
        self._cipher = cipher
        self._templates = templates
        self._numbers: dict[int, int] = {}

    def number_of(self, template_id: int) -> int:
        """Return the number that Heat's database has for a template."""
        if template_id > 0:
            return template_id
        if template_id not in self._numbers:
            self._numbers[template_id] = self._insert(self._templates[template_id])
        return self._numbers[template_id]

    def used_by(self, stack_id: str) -> set[int]:
        """Return the numbers of the templates to which a stack and its resources refer."""
        s = tables.stack
        r = tables.resource
        queries = [
            sa.select(s.c.raw_template_id).where(s.c.id == stack_id),
            sa.select(s.c.prev_raw_template_id).where(s.c.id == stack_id),
            sa.select(r.c.current_template_id).where(r.c.stack_id == stack_id),
        ]
        return {number for query in queries for number in self._rows.select(query) if number is not None}

    def forget(self, numbers: Collection[int]) -> None:
        """Delete templates to which no row refers any more, and their files where nothing else has them."""
        s = tables.stack
        r = tables.resource
        columns = (s.c.raw_template_id, s.c.prev_raw_template_id, r.c.current_template_id)
        unused = set(numbers)
        for column in columns:
            unused -= set(self._rows.select(sa.select(column).where(column.in_(list(numbers)))))
        t = tables.raw_template
        query = sa.select(t.c.files_id).where(t.c.id.in_(list(unused)), t.c.files_id.is_not(None))
        files = set(self._rows.select(query))
        self._rows.delete(t, "id", unused)
        shared = sa.select(t.c.files_id).where(t.c.files_id.in_(list(files)))
        self._rows.delete(tables.raw_template_files, "id", files - set(self._rows.select(shared)))

    def _insert(self, template: HeatTemplate) -> int:
        environment = dict(template.environment)
        hidden = environment.get("encrypted_param_names") or ()
        parameters = dict(environment.get("parameters") or {})
        for name in hidden:
            parameters[name] = list(self._cipher.encrypt(parameters[name]))
        files_id = self._rows.insert(tables.raw_template_files, {"files": dict(template.files)})
        columns = {
            "template": template.template,
            "environment": {**environment, "parameters": parameters},
            "files_id": files_id,
        }
        return self._rows.insert(tables.raw_template, columns)
