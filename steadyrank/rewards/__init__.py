"""What a ranking is worth, and how much better than its group: utilities -> relevance -> reward -> advantage.

Not here: judges (they give grades, which are targets like any other) and what is learnt from an advantage (`objectives`).
"""

from steadyrank.rewards.advantage import from_optional, group_advantages, is_flat
from steadyrank.rewards.ndcg import ndcg_reward
from steadyrank.rewards.targets import RELEVANCES, logit, rank_normalize, relevance_from

__all__ = ["RELEVANCES", "from_optional", "group_advantages", "is_flat", "logit", "ndcg_reward", "rank_normalize", "relevance_from"]
