"""Settings for all tests: fixed seeds, and no deadline, since other machines are slower."""

import importlib.util
import os

import numpy as np
import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch reads it: tests run side by side, a core each

settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("fast", settings.get_profile("thorough"), max_examples=8)
settings.load_profile("thorough")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def needs(framework, *, module=False):
    """Skip a test, or its whole module, where a framework is not installed; fail in CI, where all of them are."""
    if importlib.util.find_spec(framework) is not None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{framework} is not installed, so its tests would be skipped in CI", pytrace=False)
    pytest.skip(f"{framework} is not installed", allow_module_level=module)
