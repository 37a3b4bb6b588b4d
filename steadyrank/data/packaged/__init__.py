"""Real text with real labels out of pinned packages: the collection that demo, tests and studies stand on (docs/packaged.md)."""

from steadyrank.data.packaged.collection import DEFAULT, DOMAINS, SPLITS, PackagedCollection, build, load_split

__all__ = ["DEFAULT", "DOMAINS", "SPLITS", "PackagedCollection", "build", "load_split"]
