"""All campaigns, by name."""

from tests.fuzz import checkpoints, dicts, files, options, outputs, queries, signals, table_files, tables
from tests.fuzz.case import Campaign

CAMPAIGNS = (
    Campaign("files", files.run, seconds=5),
    Campaign("checkpoints", checkpoints.run),
    Campaign("dicts", dicts.run, seconds=5),
    Campaign("tables", tables.run),
    Campaign("queries", queries.run, seconds=5),
    Campaign("table-files", table_files.run),
    Campaign("options", options.run),
    Campaign("outputs", outputs.run),
    Campaign("signals", signals.run),
)


def campaign(name: str) -> Campaign:
    """Return the campaign of a name."""
    return next(each for each in CAMPAIGNS if each.name == name)
