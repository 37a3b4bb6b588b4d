"""Where the expected values lie."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    folder = Path(__file__).resolve().parents[3] / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared beside the repository: expected values are not at hand")
    return folder
