"""Damaged and hostile tables in files, through the commands that read them."""

import gzip

from tests.fuzz import material, nasty
from tests.fuzz.case import Case
from tests.fuzz.commands import typed

COMMANDS = (
    ("fit", "{table}", "-o", "out.jw", "--n-components", "1"),
    ("fit", "{table}", "-o", "-", "--n-components", "1", "--target", "job"),
    ("score", "model.jw", "{table}"),
    ("score", "model.jw", "{table}", "--lowest", "3", "--format", "json"),
    ("impute", "model.jw", "{table}", "-o", "out.csv"),
    ("impute", "model.jw", "{table}", "--format", "jsonl", "--draw", "--seed", "0"),
    ("impute", "model.jw", "{table}", "-o", "out.parquet"),
    ("classify", "model.jw", "{table}", "--target", "job", "--proba"),
    ("info", "{table}"),
    ("sample", "{table}", "-n", "2"),
)


def run(case: Case) -> None:
    """Change a file and put it before a command."""
    form = case.rng.choice(list(material.table_files()))
    data = nasty.changed_bytes(case.rng, _table(case, form))
    if case.rng.random() < 0.1:
        data = gzip.compress(data, mtime=0)
        data = nasty.changed_bytes(case.rng, data) if case.rng.random() < 0.5 else data
    name = f"table.{form}"
    (case.folder / name).write_bytes(data)
    (case.folder / "model.jw").write_bytes(material.people_model())
    case.note(f"{len(data):,} bytes: {data[:150]!a}")
    command = case.rng.choice(COMMANDS)
    piped = case.rng.random() < 0.1
    typed(case, [arg.format(table="-" if piped else name) for arg in command], data if piped else None)


def _table(case: Case, form: str) -> bytes:
    """Return the good table, or one with hostile cells."""
    if case.rng.random() < 0.6 or form in {"parquet", "arrow", "json"}:
        return material.table_files()[form]
    columns = material.people(20)
    for cells in columns.values():
        for i in range(len(cells)):
            if case.rng.random() < 0.05:
                cells[i] = nasty.value(case.rng) if form == "jsonl" else case.rng.choice(nasty.TEXTS)
    return material.as_json_lines(columns) if form == "jsonl" else material.as_csv(columns)
