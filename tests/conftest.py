"""One fixed set of examples by default, fresh ones on request: HYPOTHESIS_PROFILE=random pytest."""

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
