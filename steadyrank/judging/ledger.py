"""What judging costs: calls, tokens and money of one run, and a budget that ends it before it is overrun.

Tokens are what the endpoint counted. Before a call is sent, room is kept for it and for all calls under way at their highest price (a token
for every three bytes of the prompt, and the whole reply length), so that calls sent at once cannot run over the budget together. An attempt
that ended without a reply may still be billed by the service; such attempts are counted and cannot be priced.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from steadyrank.errors import ConfigError
from steadyrank.judging.cache import RawReply

BYTES_A_TOKEN = 3  # fewer than tokenizers need for most text, so that what is kept free is rather too much


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Money for a million tokens, in whatever currency, and what one run may spend; None sets no limit."""

    prompt: float = 0.0
    completion: float = 0.0
    budget: float | None = None
    budget_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "completion"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"price of {name} tokens is {getattr(self, name)!r}; give money for a million tokens, 0 or more")
        for name in ("budget", "budget_tokens"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; give more than 0, or leave it out for no limit")
        if self.budget is not None and not self.prompt and not self.completion:
            raise ConfigError("a budget in money needs price_prompt and price_completion; or give budget_tokens")


@dataclass(slots=True)
class Ledger:
    """The account of one run. `cached` counts asks that a reply on disk answered: they cost nothing."""

    prices: Prices
    asked: int = 0
    cached: int = 0
    called: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted_replies: int = 0
    failed_attempts: int = 0
    schema_refused: int = 0
    under_way: int = 0
    reserved_prompt: int = 0
    reserved_completion: int = 0

    @property
    def cost(self) -> float:
        """Money spent, as far as the endpoint counted tokens."""
        return self._money(self.prompt_tokens, self.completion_tokens)

    def reserve(self, prompt: int, completion: int) -> bool:
        """Keep room for a call of at most these tokens; False where the budget has none."""
        prompt_all = self.prompt_tokens + self.reserved_prompt + prompt
        completion_all = self.completion_tokens + self.reserved_completion + completion
        budget, tokens = self.prices.budget, self.prices.budget_tokens
        if budget is not None and self._money(prompt_all, completion_all) > budget:
            return False
        if tokens is not None and prompt_all + completion_all > tokens:
            return False
        self.under_way += 1
        self.reserved_prompt += prompt
        self.reserved_completion += completion
        return True

    def free(self, prompt: int, completion: int) -> None:
        """The call for which room was kept is over."""
        self.under_way -= 1
        self.reserved_prompt -= prompt
        self.reserved_completion -= completion

    def book(self, reply: RawReply, *, prompt: int, completion: int) -> None:
        """A reply came. Where the endpoint counted no tokens, the room kept for the call is booked: a budget must hold all the same."""
        self.called += 1
        self.uncounted_replies += reply.prompt_tokens is None
        self.prompt_tokens += prompt if reply.prompt_tokens is None else reply.prompt_tokens
        self.completion_tokens += completion if reply.completion_tokens is None else reply.completion_tokens

    def spent(self) -> str:
        """What was spent, in words."""
        tokens = f"{self.prompt_tokens + self.completion_tokens} tokens"
        return f"{self.cost:.4f} ({tokens})" if self.prices.prompt or self.prices.completion else tokens

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        out = {name: value for name, value in asdict(self).items() if not name.startswith(("reserved", "prices", "under_way"))}
        return {**out, "cost": self.cost, "prices": asdict(self.prices)}

    def _money(self, prompt: int, completion: int) -> float:
        return (prompt * self.prices.prompt + completion * self.prices.completion) / 1e6
