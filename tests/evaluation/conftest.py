"""The folder of shared test data beside the repository, where there is one."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    folder = Path(__file__).resolve().parents[2].parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"needs the shared data folder {folder}, which is not there")
    return folder
