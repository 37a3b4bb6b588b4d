"""`api`: a rerank endpoint by its URL.

Sent: the query (with the instruction joined to it) and the documents, in the order of the presentation. Read: scores, matched by the
`index` that the service gives, never by place. A reply in which an index is missing, repeated or out of range, or a score is no finite
number, is a failure of that list (see `outside`).

Request shapes stand in `DIALECTS`; the reply's shape is known by its own fields, whatever the dialect:
`{"results": [{"index", "relevance_score"}]}`, `{"data": [...]}`, or `[{"index", "score"}]`.
Sources: the public references of Cohere (v1/v2 rerank), Jina, Voyage, vLLM (rerank) and text-embeddings-inference (TEI).

What a service cuts to its own length limits it does not say, so `truncated` stays empty: that is "not known", not "nothing".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from steadyrank import files
from steadyrank.errors import ConfigError, RunError, unknown_name
from steadyrank.records import Scale
from steadyrank.remote import BadRequestError, Call, Client, ClientSettings, RefusedError, RemoteError, WrongReplyError, check_url, shown
from steadyrank.scoring.base import PairScore
from steadyrank.scoring.batching import progress_bar
from steadyrank.scoring.outside import TEMPLATE, Ask, OutsideScorer, usable


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a service wants to be asked.

    documents:     the field that holds the texts.
    count:         the field that says how many results to send back; None: the service sends all.
    fixed:         what else is sent.
    max_documents: texts in one request, by the service's own default limit.
    """

    documents: str = "documents"
    count: str | None = "top_n"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    max_documents: int = 1000


DIALECTS = {
    "cohere": Dialect(),  # refuses fields that it does not know
    "jina": Dialect(fixed={"return_documents": False}),
    "vllm": Dialect(fixed={"return_documents": False}),
    "voyage": Dialect(count=None, fixed={"return_documents": False}),
    "tei": Dialect(documents="texts", count=None, fixed={"return_text": False}, max_documents=32),
}
HOSTS = {"api.cohere.com": "cohere", "api.cohere.ai": "cohere", "api.jina.ai": "jina", "api.voyageai.com": "voyage"}
_LISTS, _SCORES = ("results", "data"), ("relevance_score", "score")


class Api(OutsideScorer):
    """A rerank service.

    url:           of the endpoint; without a path, `/rerank` is added.
    model:         sent to the service, where it serves several.
    dialect:       a name in DIALECTS. None: by the host where it is known; else `jina`, and `tei` if the service refuses that.
    max_documents: longer lists are sent in parts of this size, in the order laid; None: the dialect's own limit.
    extra:         further fields of every request, e.g. {"truncate": True}.
    client:        the HTTP client; `scorer.client.counts` says what was sent.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        name: str | None = None,
        dialect: str | None = None,
        scale: Scale = "grade",
        instruction_template: str = TEMPLATE,
        max_documents: int | None = None,
        extra: Mapping[str, Any] | None = None,
        on_failure: str = "raise",
        floor: float | str | None = "below",
        client: Client | None = None,
    ):
        check_url(url)
        parts = urlsplit(url)
        self.url = urlunsplit(parts._replace(path="/rerank")) if parts.path in ("", "/") else url
        super().__init__(
            name=name or model or parts.netloc,
            scale=scale,
            instruction_template=instruction_template,
            on_failure=on_failure,
            floor=floor,
        )
        self.dialect = dialect or HOSTS.get(parts.hostname or "")
        if self.dialect is not None and self.dialect not in DIALECTS:
            raise unknown_name("dialect", self.dialect, DIALECTS)
        if max_documents is not None and max_documents < 1:
            raise ConfigError(f"max_documents is {max_documents}; give at least 1")
        for reserved in ("query", "documents", "texts", "model"):
            if reserved in (extra or {}):
                raise ConfigError(f"extra holds {reserved!r}, which the scorer fills by itself; take it out")
        self.model, self.max_documents, self.extra = model, max_documents, dict(extra or {})
        self.split_lists = 0  # lists that were sent in parts
        self.client = client or Client()

    @classmethod
    def load(cls, url: str, **options: Any) -> Api:
        """A scorer of the options of `Api` and of `ClientSettings`, together."""
        settings = {name: options.pop(name) for name in ClientSettings.__dataclass_fields__ if name in options}
        client = options.pop("client", None) or Client(ClientSettings(**settings))
        return cls(url, client=client, **options)

    @property
    def fingerprint(self) -> str:
        """The settings; what model answers behind the URL, and in what version, only the service knows."""
        settings = [self.model, self.scale, self.instruction_template, self.max_documents, self.extra, self.floor]
        return files.fingerprint(["api", shown(self.url), *settings])

    def _answer(self, asks: Sequence[Ask], *, skip: bool, progress: bool) -> list[list[PairScore] | RunError]:
        results: list[Any] = []
        asked = [ask for ask in asks if ask.places]
        if self.dialect is None and asked:
            results = self._settle(asked[0], skip=skip)
        parts = [part for ask in asked for part in self._parts(ask)]
        self.split_lists += sum(len(self._parts(ask)) > 1 for ask in asked)
        with progress_bar(progress) as bar:
            task = bar.add_task(self.name, total=len(parts))
            bar.advance(task, len(results))
            left = parts[len(results) :]
            results += self.client.post_all(
                [self._call(part) for part in left],
                read=lambda place, reply: self._scores(reply, len(left[place].places)),
                keep_failures=skip,
                on_done=lambda: bar.advance(task),
            )
        answers = iter(results)
        return [self._joined(ask, [next(answers) for _ in self._parts(ask)] if ask.places else []) for ask in asks]

    def _settle(self, ask: Ask, *, skip: bool) -> list[Any]:
        """Find out how the service wants to be asked by asking the first part; returns its one result, scores or (with `skip`) an error."""
        first: RemoteError | None = None
        for name in ("jina", "tei"):
            self.dialect = name
            part = self._parts(ask)[0]
            size = len(part.places)
            try:
                return self.client.post_all([self._call(part)], read=partial(self._read_one, size))
            except RemoteError as error:
                if isinstance(error, RefusedError):
                    raise
                first = first or error
                if isinstance(error, WrongReplyError):  # it took the request
                    break
                if not isinstance(error, BadRequestError) or error.status not in (400, 422):
                    self.dialect = None
                    break
        else:
            self.dialect = None
        assert first is not None
        if not skip:
            raise first
        return [first]

    def _parts(self, ask: Ask) -> list[Ask]:
        size = self.max_documents or DIALECTS[self.dialect or "jina"].max_documents
        return [Ask(ask.example, ask.presentation_index, ask.places[start : start + size]) for start in range(0, len(ask.places), size)]

    def _call(self, part: Ask) -> Call:
        shape, documents = DIALECTS[self.dialect or "jina"], part.documents
        body: dict[str, Any] = {} if self.model is None else {"model": self.model}
        body |= {"query": self.query_of(part.example), shape.documents: documents, **shape.fixed}
        if shape.count is not None:
            body[shape.count] = len(documents)
        return Call(part.name, self.url, {**body, **self.extra})

    def _read_one(self, size: int, place: int, reply: Any) -> list[float]:
        return self._scores(reply, size)

    def _scores(self, reply: Any, size: int) -> list[float]:
        """The scores of a reply, by index; a reply that does not hold each of them exactly once raises."""
        found: dict[int, float] = {}
        for entry in _entries(reply):
            place = entry.get("index") if isinstance(entry, Mapping) else None
            if isinstance(place, bool) or not isinstance(place, int):
                raise WrongReplyError("a result has no index; scores are never matched by their place in the reply")
            if not 0 <= place < size:
                raise WrongReplyError(f"the reply holds index {place}, and {size} documents were sent")
            if place in found:
                raise WrongReplyError(f"the reply holds index {place} more than once")
            field = next((name for name in _SCORES if name in entry), None)
            if field is None:
                raise WrongReplyError(f"the result with index {place} holds neither {' nor '.join(_SCORES)}")
            number = usable(entry[field], self.scale)
            if isinstance(number, str):
                raise WrongReplyError(f"the {field} with index {place} {number}")
            found[place] = number
        missing = [place for place in range(size) if place not in found]
        if missing:
            shown_places = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
            raise WrongReplyError(f"the reply holds {len(found)} results for {size} documents; index {shown_places} missing")
        return [found[place] for place in range(size)]

    def _joined(self, ask: Ask, answers: Sequence[list[float] | RemoteError]) -> list[PairScore] | RunError:
        failed = next((answer for answer in answers if isinstance(answer, RemoteError)), None)
        if failed is not None:
            return failed
        return self._home(ask, [score for answer in answers if not isinstance(answer, RemoteError) for score in answer])


def _entries(reply: Any) -> list[Any]:
    if isinstance(reply, list):
        return reply
    if isinstance(reply, Mapping):
        for name in _LISTS:
            if isinstance(reply.get(name), list):
                return list(reply[name])
        told = ", ".join(map(str, list(reply)[:8])) or "nothing"
        raise WrongReplyError(f"the reply has no list of results (it has: {told})")
    raise WrongReplyError(f"the reply is a JSON {type(reply).__name__}, not a list of results")
