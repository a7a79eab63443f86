"""The table of people as a CSV file, and a model of it."""

import pytest
from tests.cli.cases import people, run, write_csv


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("people") / "people.csv", people())


@pytest.fixture(scope="session")
def model(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "people.jw"
    run("fit", table, "-o", path, "--n-components", 3)
    return str(path)
