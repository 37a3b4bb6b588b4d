"""Data: lists in from every format, frozen pools, splits, leak reports, and the packaged collection. Imports no torch.

`load_examples` reads any format of docs/formats.md; `save_examples` writes JSON lines.
"""

from steadyrank.data.jsonl import load_examples, load_scores, save_examples, save_scores, stream_examples

__all__ = ["load_examples", "load_scores", "save_examples", "save_scores", "stream_examples"]
