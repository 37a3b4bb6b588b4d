"""Fixtures that every room shares. Data that may be absent is skipped with its reason."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real collections and independent expected values beside the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared beside the repository: real collections and expected values are not at hand")
    return folder


@pytest.fixture(scope="session")
def packaged_models():
    """`packaged_models(name)`: the folder of a converted packaged model that is in the cache."""
    from steadyrank.data.models import cached

    def folder(name: str) -> Path:
        found = cached(name)
        if found is None:
            pytest.skip(f"the packaged model {name} is not in the cache; run: steadyrank data models {name}")
        return found

    return folder
