"""A chat endpoint that speaks OpenAI's protocol, through the official client: one attempt at a time.

The client's own retries and time limits are off; `steadyrank.remote.calling` has the only ones. A reply held to a JSON schema is asked for
where the server offers it: a call tries, and a server that refuses the schema but answers without it is never asked for it again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steadyrank import names
from steadyrank.errors import ConfigError, unknown_name
from steadyrank.judging.asks import Ask
from steadyrank.judging.cache import RawReply
from steadyrank.judging.replies import ReplySpec
from steadyrank.remote.addresses import KEY_VARIABLE, check_url, is_loopback, key_of, short, shown
from steadyrank.remote.failures import BadRequestError, RemoteError, UnreadableReplyError, WrongReplyError
from steadyrank.remote.statuses import refusal, unreachable

STRUCTURED = ("auto", "always", "never")  # no YAML word such as `off`, which would be read as false
_OWN = ("model", "messages", "response_format", "temperature", "seed", "max_tokens", "max_completion_tokens", "stream", "n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How a reply is made; part of the cache's key.

    temperature:  0 asks for the same reply each time; None sends none, for models that refuse it.
    max_tokens:   of a reply; one that is cut short is missing. Reasoning models need thousands.
    token_field:  what the endpoint calls that: `max_tokens`, or `max_completion_tokens`.
    seed:         sent where it is given.
    structured:   auto | always | never: whether replies are held to a JSON schema.
    extra:        further fields of every request, e.g. {"reasoning_effort": "low"}.
    """

    temperature: float | None = 0.0
    max_tokens: int = 64
    token_field: str = "max_tokens"
    seed: int | None = None
    structured: str = "auto"
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.structured not in STRUCTURED:
            raise unknown_name("structured", self.structured, STRUCTURED)
        if self.token_field not in ("max_tokens", "max_completion_tokens"):
            raise unknown_name("token_field", self.token_field, ("max_tokens", "max_completion_tokens"))
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens is {self.max_tokens}; give at least 1")
        if self.temperature is not None and not self.temperature >= 0:
            raise ConfigError(f"temperature is {self.temperature!r}; give 0 or more, or null to send none")
        for name in self.extra:
            if name in _OWN:
                raise ConfigError(f"extra holds {name!r}, which has a setting of its own or is filled by the judge; take it out")


class ChatEndpoint:
    """`await endpoint.ask(ask, spec)` inside `async with endpoint.open():`. Raises `RemoteError`s."""

    def __init__(self, base_url: str, model: str, *, decoding: Decoding, api_key_env: str | None = KEY_VARIABLE):
        check_url(base_url)
        self.base_url, self.model, self.decoding, self.api_key_env = base_url, model, decoding, api_key_env
        self._openai = names.require("openai", "asking a chat endpoint")
        self._key = key_of(api_key_env)
        self._schema: bool | None = {"auto": None, "always": True, "never": False}[decoding.structured]
        self.schema_refused = 0
        self._client: Any = None

    @property
    def uses_schema(self) -> bool | None:
        """Whether replies are held to a schema; None where that is not known yet: then one call is to find out for all."""
        return self._schema

    def open(self) -> Any:
        """The client, as an async context manager; a client belongs to one event loop. Redirects are not followed: a key goes where it was
        meant to go, or nowhere. A proxy of the environment cannot reach this machine's loopback."""
        openai = self._openai
        http = openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=None, trust_env=not is_loopback(self.base_url))
        self._client = openai.AsyncOpenAI(
            base_url=self.base_url, api_key=self._key or "none", max_retries=0, timeout=None, http_client=http
        )
        return self._client

    async def ask(self, ask: Ask, spec: ReplySpec) -> RawReply:
        """The reply to one ask, from one attempt."""
        if self._schema is None:
            return await self._find_out(ask, spec)
        return await self._send(ask, spec if self._schema else None)

    async def _find_out(self, ask: Ask, spec: ReplySpec) -> RawReply:
        try:
            reply = await self._send(ask, spec)
        except BadRequestError:
            self.schema_refused += 1
            reply = await self._send(ask, None)  # if this is refused too, the schema was not the reason and nothing is learnt of it
            self._schema = False
        else:
            self._schema = True
        return reply

    async def _send(self, ask: Ask, spec: ReplySpec | None) -> RawReply:
        openai, where = self._openai, self.base_url
        begun = time.monotonic()
        try:
            raw = await self._client.chat.completions.with_raw_response.create(**self._fields(ask, spec))
            content = raw.content
        except openai.APIStatusError as error:
            reply = error.response
            raise refusal(where, reply.status_code, reply.headers, reply.content, key=self._key, variable=self.api_key_env) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            if "Protocol" in type(cause).__name__ or "Decoding" in type(cause).__name__:
                raise UnreadableReplyError(f"the reply of {shown(where)} broke off ({short(str(cause))})") from None
            raise unreachable(where, cause) from None
        except openai.OpenAIError as error:
            raise UnreadableReplyError(f"the reply of {shown(where)} cannot be used ({short(str(error))})") from None
        return self._read(content, time.monotonic() - begun)

    def _fields(self, ask: Ask, spec: ReplySpec | None) -> dict[str, Any]:
        decoding = self.decoding
        fields: dict[str, Any] = {"model": self.model, "messages": list(ask.messages), decoding.token_field: decoding.max_tokens}
        fields |= {name: getattr(decoding, name) for name in ("temperature", "seed") if getattr(decoding, name) is not None}
        if spec is not None:
            schema = {"name": "answer", "strict": True, "schema": spec.schema(ask.id)}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        return fields | ({"extra_body": dict(decoding.extra)} if decoding.extra else {})

    def _read(self, content: bytes, seconds: float) -> RawReply:
        where = shown(self.base_url)
        try:
            body = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UnreadableReplyError(f"the reply of {where} is not JSON ({short(str(error))})") from None
        choices = body.get("choices") if isinstance(body, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        if not isinstance(message, dict):
            raise self._wrong(body, where)
        text, finish = message.get("content"), choice.get("finish_reason")
        if text is not None and not isinstance(text, str):
            raise WrongReplyError(f"{where} sent a message whose content is no text ({short(str(text))})")
        finish = "refusal" if message.get("refusal") else finish
        usage = body.get("usage") if isinstance(body.get("usage"), dict) else {}
        told = body.get("model") if isinstance(body.get("model"), str) else None
        tokens = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
        return RawReply(text, finish if isinstance(finish, str) else None, tokens[0], tokens[1], told, round(seconds, 3))

    def _wrong(self, body: Any, where: str) -> RemoteError:
        said = body.get("error") if isinstance(body, dict) else None
        told = f"; it says {short(str(said))}" if said else ""
        return WrongReplyError(f"{where} sent JSON without choices[0].message{told}; is it a chat endpoint (.../v1)?")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
