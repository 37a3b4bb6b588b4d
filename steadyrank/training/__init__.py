"""The only room that joins model, policy, rewards and objective: lists in, a run directory with a trained reranker out.

`run.train` is the entry; `settings` holds every knob; `trainer` is a thin `transformers.Trainer`.
"""
