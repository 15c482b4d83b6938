"""Settings for all tests: fixed seeds, and no deadline, since other machines are slower."""

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("fast", settings.get_profile("thorough"), max_examples=8)
settings.load_profile("thorough")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
