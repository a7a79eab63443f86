"""Pictures go to memory, with matplotlib's own settings."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def default_settings():
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.use("Agg")
        yield
