"""A release after this one, made up: its schema has one number more, and its messages one version."""

import pathlib
import shutil

from stoker.db.schema import revisions, upgrade

ROOT = pathlib.Path(__file__).parents[2]
SCHEMA = pathlib.Path(__file__).parent / "next_schema"
NUMBER = revisions.NUMBER + 1
MIGRATIONS = upgrade.Migrations(NUMBER, (*upgrade.OWN.folders, SCHEMA))
EXPANDED = MIGRATIONS.expanded
NEWEST = MIGRATIONS.newest
RPC = "1.99"
LEFT_OUT = (".*", "tests", "benchmarks", "doc", "build", "releasenotes", "*.egg-info")
CHANGED = {
    "db/schema/revisions.py": [(f"\nNUMBER = {NUMBER - 1}\n", f"\nNUMBER = {NUMBER}\n")],
    "db/schema/tables.py": [
        ('sa.Column("clock_ahead", Instant, nullable=False, default=0.0)', 'sa.Column("zone", sa.String(64))')
    ],
    "db/conductors.py": [
        ("    clock_ahead: float = 0.0\n", "    clock_ahead: float = 0.0\n    zone: str | None = None\n"),
        (
            "for name, value in asdict(conductor).items()}",
            'for name, value in asdict(conductor).items() if name != "clock_ahead"}',
        ),
        (
            "for name in ConductorRecord.__dataclass_fields__\n    }",
            'for name in ConductorRecord.__dataclass_fields__ if name != "clock_ahead"\n    }',
        ),
    ],
    "rpc/contract.py": [("\nLOWEST = ", f'\nVERSIONS["{RPC}"] = "the next release"\nLOWEST = ')],
}
"""Path -> texts, each with its replacement in the next release."""


def next_release(directory: pathlib.Path) -> pathlib.Path:
    """Make it of a copy of this one; what goes into PYTHONPATH."""
    target = directory / "stoker"
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name, changes in CHANGED.items():
        text = (target / name).read_text()
        for original, replacement in changes:
            assert text.count(original) == 1, f"{name}: {original}"
            text = text.replace(original, replacement)
        (target / name).write_text(text)
    for migration in SCHEMA.glob("example_*.py"):
        text = migration.read_text().replace("revisions.NUMBER + 1", "revisions.NUMBER")
        code = text.replace("revisions.NEWEST", "revisions.newest(revisions.NUMBER - 1)")
        (target / "db/schema/migrations/versions" / migration.name).write_text(code)
    return directory
