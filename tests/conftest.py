"""One fixed set of examples by default, fresh ones on request: HYPOTHESIS_PROFILE=random pytest."""

import os

from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, max_examples=300)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
settings.load_profile(PROFILE)
if PROFILE == "fixed":
    # Hypothesis also tries numbers that it finds in the source of modules loaded by then, which depend on the tests
    # that ran before in the same process: fixed examples must not.
    providers._get_local_constants = Constants
