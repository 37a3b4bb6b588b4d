"""The settings of judges as a recipe or the command line gives them: flat, strict, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from steadyrank.errors import ConfigError, unknown_name
from steadyrank.files import cache_dir
from steadyrank.judging.endpoint import Decoding
from steadyrank.judging.ledger import Prices
from steadyrank.remote.calling import ClientSettings

MAX_MISSING = 0.1  # of a judge that is asked; above it its grades are not trained on


class JudgeSettings(BaseModel):
    """What every judge has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str | None = Field(default=None, description="written into every judgment; None: what is judged with")
    max_missing: float = Field(
        default=MAX_MISSING, ge=0, le=1, description="the share of candidates without a grade above which training refuses"
    )


class ChatSettings(JudgeSettings):
    """A chat endpoint that is asked about one document at a time."""

    base_url: str = Field(description="of the endpoint, with its /v1")
    model: str = Field(description="the model's name there")
    revision: str | None = Field(default=None, description="told apart in the cache; change it when the endpoint serves other weights")
    task: Literal["grade", "answer"] = Field(
        default="grade", description="grade: relevance 0 to 3; answer: whether the answer stands there, 0 or 1"
    )
    prompt: str | None = Field(default=None, description="a prompt of the catalog or a YAML file; None: that of the task")
    document_characters: int | None = Field(default=8_000, gt=0, description="the most that is sent of one document")
    cache: str | None = Field(default=None, description="file of replies; None: judge-replies.sqlite in the cache folder")
    ask_again: bool = Field(default=False, description="ask anew where the reply on disk cannot be read")
    temperature: float | None = 0.0
    max_tokens: int = 64
    token_field: str = "max_tokens"
    decoding_seed: int | None = None
    structured: str = "auto"
    extra: dict[str, Any] = Field(default_factory=dict)
    timeout: float = 60.0
    deadline: float = 300.0
    total: float | None = None
    concurrency: int = 8
    retries: int = 4
    backoff: float = 0.5
    longest_wait: float = 60.0
    give_up_after: int = 10
    api_key_env: str | None = "STEADYRANK_API_KEY"
    price_prompt: float = 0.0
    price_completion: float = 0.0
    budget: float | None = None
    budget_tokens: int | None = None

    def decoding(self) -> Decoding:
        """How replies are made."""
        names = ("temperature", "max_tokens", "token_field", "structured", "extra")
        return Decoding(seed=self.decoding_seed, **{name: getattr(self, name) for name in names})

    def client(self) -> ClientSettings:
        """How patiently calls are sent."""
        names = [name for name in ClientSettings.__dataclass_fields__ if name != "seed"]
        return ClientSettings(**{name: getattr(self, name) for name in names})

    def prices(self) -> Prices:
        """What tokens cost and what may be spent."""
        return Prices(prompt=self.price_prompt, completion=self.price_completion, budget=self.budget, budget_tokens=self.budget_tokens)

    def cache_path(self) -> str:
        """Where replies are kept."""
        return str(Path(self.cache).expanduser() if self.cache else cache_dir() / "judge-replies.sqlite")


class PairSettings(ChatSettings):
    """A chat endpoint that compares two documents, in both orders."""

    task: Literal["pair"] = "pair"  # type: ignore[assignment]  # another task, never one of those above
    pairs: int | Literal["all"] = Field(default="all", description="comparisons a document; `all` compares every two")
    prior: float = Field(default=0.1, gt=0, description="strength of the pull of all strengths to each other, in comparisons")
    swaps: str | None = Field(default=None, description="file of steadyrank.swaps/1 to write: every pair in both orders")
    seed: int = Field(default=0, description="of the pairs that are drawn")


class RankingSettings(ChatSettings):
    """A chat endpoint that rates whole rankings."""

    task: Literal["ranking"] = "ranking"  # type: ignore[assignment]


class RecordedSettings(JudgeSettings):
    """Judgments made before."""

    path: str
    judge: str | None = Field(default=None, description="whose, where the file holds several judges")


class ScorerSettings(JudgeSettings):
    """Any scorer; its scores become grades by a named rule."""

    scorer: str | dict[str, Any] = Field(description="what load_scorer takes")
    rule: Literal["sigmoid", "linear", "rank", "thresholds"] | None = Field(
        default=None, description="None: as the scale of the scores asks"
    )
    thresholds: tuple[float, ...] = Field(default=(), description="rising scores at which grades 1, 2, ... begin")


class CausalSettings(JudgeSettings):
    """A causal language model in this process, read out as an expected grade, one document a prompt."""

    model: str
    prompt: str = "grade-relevance"
    options: dict[str, Any] = Field(default_factory=dict, description="options of the scorer expected_grade")


_S = TypeVar("_S", bound=JudgeSettings)


def checked(kind: str, record: type[_S], fields: Mapping[str, Any]) -> _S:
    """The settings of a judge of this kind; one sentence says what is wrong with them."""
    try:
        return record.model_validate(dict(fields))
    except ValidationError as error:
        problem = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            raise unknown_name(f"field of judge {kind!r}", name, record.model_fields) from None
        if problem["type"] == "missing":
            raise ConfigError(f"judge {kind!r} needs {name!r}; set it in the recipe under judge, or with --set {name}=...") from None
        said = problem["msg"][0].lower() + problem["msg"][1:]
        raise ConfigError(f"judge {kind!r}: field {name!r} is {problem['input']!r}: {said}") from None
