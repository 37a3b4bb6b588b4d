"""`python -m steadyrank`, the same as `steadyrank`."""

from steadyrank.cli.main import run

if __name__ == "__main__":
    run()
