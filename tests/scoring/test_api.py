"""Scores from a rerank service on the loopback that reorders, drops, repeats, delays and answers nonsense: never a wrong score.

The service's score of a document is its length (over 100, so that it is a probability too): what a right answer is, is known without it.
"""

from __future__ import annotations

import json
import math
import time

import pytest

pytest.importorskip("httpx2")

from local_server import free_url, serving

from steadyrank import Candidate, Presentation, RankingExample, load_scorer, seeds
from steadyrank.errors import ConfigError, RunError
from steadyrank.remote import BadRequestError, RefusedError, UnreachableError, WrongReplyError
from steadyrank.scoring.api import DIALECTS, Api
from steadyrank.scoring.outside import Failure

QUICK = {"backoff": 0.01, "retries": 1, "timeout": 1.0}
DOCUMENTS = ["a" * 3, "a" * 30, "a" * 7, "a" * 30, "a" * 11]  # two are equal
RIGHT = [0.03, 0.3, 0.07, 0.3, 0.11]


def texts(body) -> list[str]:
    return body["texts"] if "texts" in body else body["documents"]


def results(body, field="relevance_score"):
    found = [{"index": place, field: len(text) / 100} for place, text in enumerate(texts(body))]
    return sorted(found, key=lambda entry: -entry[field])  # best first, as services answer


def good(body, number):
    return 200, {}, {"results": results(body)}


def spoilt(change):
    """A server that gives a changed list of results."""

    def answer(body, number):
        return 200, {}, {"results": change(results(body))}

    return answer


def examples(count: int) -> list[RankingExample]:
    return [RankingExample(f"query {n}", tuple(DOCUMENTS), id=f"q{n}") for n in range(count)]


@pytest.mark.parametrize(
    "dialect, wrap, field",
    [
        ("cohere", lambda found: {"id": "x", "results": found, "meta": {}}, "relevance_score"),
        ("jina", lambda found: {"model": "m", "results": found, "usage": {}}, "relevance_score"),
        ("vllm", lambda found: {"id": "x", "results": [entry | {"document": {"text": "t"}} for entry in found]}, "relevance_score"),
        ("voyage", lambda found: {"object": "list", "data": found}, "relevance_score"),
        ("tei", lambda found: found, "score"),
        (None, lambda found: {"results": found}, "relevance_score"),
        (None, lambda found: {"data": found}, "score"),
    ],
)
def test_every_dialect_is_asked_in_its_own_form_and_read_by_index(dialect, wrap, field):
    with serving(lambda body, number: (200, {}, wrap(results(body, field)))) as server:
        scorer = load_scorer(server.url, dialect=dialect, model="some-model", **QUICK)
        assert scorer.score("which", DOCUMENTS, instruction="be strict") == RIGHT
        path, headers, body = server.seen[0]
        shape = DIALECTS[dialect or "jina"]
        asked = {"model": "some-model", "query": "be strict\nwhich", shape.documents: DOCUMENTS}
        counted = {shape.count: 5} if shape.count else {}
        assert body == asked | counted | dict(shape.fixed) and path == "/rerank" and headers["content-type"] == "application/json"
        if dialect == "cohere":  # refuses fields that it does not know
            assert set(body) == {"model", "query", "documents", "top_n"}
        if dialect == "tei":
            assert set(body) == {"model", "query", "texts", "return_text"}


def test_a_service_that_wants_texts_is_found_out_once():
    def answer(body, number):
        if "texts" not in body:
            return 422, {}, b"missing field `texts`"
        return 200, {}, results(body, "score")

    with serving(answer) as server:
        scorer = load_scorer(server.url, **QUICK)
        assert [list(found.scores) for found in scorer.score_examples(examples(4))] == [RIGHT] * 4
        assert scorer.dialect == "tei" and len(server.seen) == 5  # one refusal
        assert scorer.fingerprint == load_scorer(server.url).fingerprint  # what was found out changes no score


def test_a_url_without_a_path_means_rerank():
    with serving(good) as server:
        assert load_scorer(server.url.removesuffix("/rerank"), **QUICK).score("q", DOCUMENTS) == RIGHT
        assert server.seen[0][0] == "/rerank"


def test_documents_go_out_in_the_order_laid_and_scores_come_back_in_canonical_order():
    def by_place(body, number):  # a service whose scores depend on the place alone, answering in a shuffled order
        found = [{"index": place, "relevance_score": place / 10} for place in range(len(texts(body)))]
        return 200, {}, {"results": found[::2] + found[1::2]}

    order = (3, 0, 4, 1, 2)
    with serving(by_place) as server:
        scorer = load_scorer(server.url, **QUICK)
        assert scorer.reads_lists
        rows = scorer.score_presentations(examples(1), [[Presentation(order=order), Presentation()]])
        assert [body["documents"] for _, _, body in server.seen] == [[DOCUMENTS[place] for place in order], DOCUMENTS]
        assert rows[0][0].scores == (0.1, 0.3, 0.4, 0.0, 0.2) and rows[0][0].presentation.order == order
        assert rows[0][1].scores == (0.0, 0.1, 0.2, 0.3, 0.4)
        laid = scorer.score_examples(examples(3), presentations=4, seed=5)
        assert [one.example_id for one in laid] == ["q0"] * 4 + ["q1"] * 4 + ["q2"] * 4
        for one in laid:
            assert one.scores == tuple(one.presentation.order.index(place) / 10 for place in range(5))


def test_slow_and_shuffled_answers_of_many_lists_stay_with_their_lists():
    lists = [RankingExample(f"query {n}", tuple("b" * (n + place + 1) for place in range(3)), id=f"q{n}") for n in range(12)]

    def answer(body, number):
        time.sleep(0.003 * (12 - int(body["query"].split()[1])))
        return good(body, number)

    with serving(answer) as server:
        found = load_scorer(server.url, concurrency=6, **QUICK).score_examples(lists)
        assert [one.example_id for one in found] == [f"q{n}" for n in range(12)]
        assert [list(one.scores) for one in found] == [[(n + place + 1) / 100 for place in range(3)] for n in range(12)]
        assert server.most_under_way > 1


WRONG = [
    (lambda found: found[1:], "4 results for 5 documents; index 1 missing"),
    (lambda found: [], "0 results"),
    (lambda found: found + found[:1], "index 1 more than once"),
    (lambda found: found[:-1] + found[:1], "index 1 more than once"),  # as many as asked for, one twice
    (lambda found: [found[0] | {"index": 5}] + found[1:], "index 5, and 5 documents"),
    (lambda found: [found[0] | {"index": -1}] + found[1:], "index -1"),
    (lambda found: [{"relevance_score": 0.5}] + found[1:], "has no index"),
    (lambda found: [found[0] | {"index": "1"}] + found[1:], "has no index"),
    (lambda found: [found[0] | {"index": True}] + found[1:], "has no index"),
    (lambda found: [0.1, 0.2, 0.3, 0.4, 0.5], "has no index"),
    (lambda found: [{"index": 1}] + found[1:], "neither relevance_score nor score"),
    (lambda found: [found[0] | {"relevance_score": None}] + found[1:], "index 1 is None, not a number"),
    (lambda found: [found[0] | {"relevance_score": "0.3"}] + found[1:], "not a number"),
    (lambda found: [found[0] | {"relevance_score": True}] + found[1:], "not a number"),
    (lambda found: [found[0] | {"relevance_score": math.nan}] + found[1:], "is nan"),
    (lambda found: [found[0] | {"relevance_score": math.inf}] + found[1:], "is inf"),
    (lambda found: [found[0] | {"relevance_score": 10**400}] + found[1:], "not a number"),
]


@pytest.mark.parametrize("change, words", WRONG)
def test_a_wrong_reply_is_never_a_score(change, words):
    with serving(spoilt(change)) as server:
        scorer = load_scorer(server.url, **QUICK)
        with pytest.raises(WrongReplyError) as caught:
            scorer.score_examples(examples(1))
        assert words in str(caught.value) and "example 'q0', presentation 0" in str(caught.value)
        assert len(server.seen) == 1 and scorer.client.counts.failures == 1  # asked the same, it answers the same
        with pytest.raises(RunError):
            scorer.score("q", DOCUMENTS)


@pytest.mark.parametrize("reply", [{}, {"result": []}, {"results": {"0": 1}}, None, 3, "text", {"error": "model is loading"}])
def test_a_reply_without_results(reply):
    with serving(lambda body, number: (200, {}, reply)) as server, pytest.raises(WrongReplyError, match="list of results"):
        load_scorer(server.url, **QUICK).score("q", DOCUMENTS)


@pytest.mark.parametrize("change, words", WRONG)
def test_skipped_lists_are_left_out_and_counted(change, words):
    def answer(body, number):
        return (spoilt(change) if body["query"] == "query 1" else good)(body, number)

    with serving(answer) as server:
        scorer = load_scorer({"kind": "api", "url": server.url, "on_failure": "skip", **QUICK})
        found = scorer.score_examples(examples(3), presentations=2)
        assert [one.example_id for one in found] == ["q0", "q0", "q2", "q2"]
        assert all(list(one.scores) == RIGHT for one in found)
        assert [(one.example_id, one.presentation_index) for one in scorer.failures] == [("q1", 0), ("q1", 1)]
        told = words.split("index 1")  # which index it is depends on the order laid
        assert all(part in one.reason for part in told for one in scorer.failures) and isinstance(scorer.failures[0], Failure)
        assert scorer.client.counts.failure_kinds == {"wrong reply": 2}
        with pytest.raises(WrongReplyError):  # one list has nothing to be left out of
            scorer.score("query 1", DOCUMENTS)


def test_failures_of_the_first_list_are_skipped_too():
    def answer(body, number):
        return (200, {}, b"garbage") if body["query"] == "query 0" else good(body, number)

    with serving(answer) as server:
        scorer = load_scorer(server.url, on_failure="skip", **QUICK)
        assert [one.example_id for one in scorer.score_examples(examples(3))] == ["q1", "q2"]
        assert [one.example_id for one in scorer.failures] == ["q0"] and scorer.client.counts.retries == 1


def test_when_every_list_fails_there_is_no_result():
    with serving(spoilt(lambda found: found[1:])) as server:
        scorer = load_scorer(server.url, on_failure="skip", **QUICK)
        with pytest.raises(WrongReplyError, match="'q0'"):
            scorer.score_examples(examples(3))


def test_errors_of_the_service_name_the_list_and_keep_their_exit_code():
    for status, kind, code in ((403, RefusedError, 2), (413, BadRequestError, 2), (422, BadRequestError, 2), (500, RunError, 1)):
        with serving(lambda body, number, status=status: (status, {}, b"too much")) as server:
            for on_failure in ("raise", "skip"):
                with pytest.raises(kind) as caught:
                    load_scorer(server.url, on_failure=on_failure, **QUICK).score_examples(examples(2))
                assert caught.value.exit_code == code and "example 'q0', presentation 0" in str(caught.value)
    with pytest.raises(UnreachableError):
        load_scorer(free_url(), **QUICK).score("q", ["a"])


def test_a_service_that_recovers_gives_the_right_scores():
    def answer(body, number):
        return [(500, {}, b""), (429, {"Retry-After": "0"}, b""), good(body, number)][min(number, 2)]

    with serving(answer) as server:
        scorer = load_scorer(server.url, **(QUICK | {"retries": 3}))
        assert scorer.score("q", DOCUMENTS) == RIGHT
        assert (scorer.client.counts.calls, scorer.client.counts.retries, scorer.client.counts.failures) == (1, 2, 0)


def test_long_lists_go_out_in_parts_and_one_failed_part_fails_the_list():
    documents = ["c" * (place + 1) for place in range(10)]
    lists = [RankingExample("query 0", tuple(documents), id="long"), RankingExample("query 1", ("c",), id="short")]
    with serving(good) as server:
        scorer = load_scorer(server.url, max_documents=4, **QUICK)
        order = tuple(range(9, -1, -1))
        found = scorer.score_presentations(lists, [[Presentation(order=order)], [Presentation()]])
        assert found[0][0].scores == tuple((place + 1) / 100 for place in range(10)) and found[1][0].scores == (0.01,)
        assert sorted(len(body["documents"]) for _, _, body in server.seen) == [1, 2, 4, 4]
        assert all(body["top_n"] == len(body["documents"]) for _, _, body in server.seen) and scorer.split_lists == 1
    with serving(lambda body, number: (200, {}, [])) as server, pytest.raises(WrongReplyError):
        load_scorer(server.url, dialect="tei", **QUICK).score("q", ["d"] * 40)
        assert len(server.seen[0][2]["texts"]) == 32

    def middle(body, number):
        return spoilt(lambda found: found[1:])(body, number) if "c" * 5 in body["documents"] else good(body, number)

    with serving(middle) as server:
        scorer = load_scorer(server.url, max_documents=4, on_failure="skip", **QUICK)
        assert [one.example_id for one in scorer.score_examples(lists)] == ["short"]
        assert [one.example_id for one in scorer.failures] == ["long"]


def test_documents_without_text_stay_here_and_get_the_floor():
    example = RankingExample("q", ("aaa", "", Candidate(" \u200b", title=None), "a"), id="e")
    with serving(good) as server:
        scorer = load_scorer(server.url, **QUICK)
        found = scorer.score_examples([example, RankingExample("q", ("", " "), id="f")])
        assert found[0].scores == (0.03, scorer.floor, scorer.floor, 0.01) and found[0].empty == (1, 2)
        assert found[1].scores == (scorer.floor,) * 2 and [body["documents"] for _, _, body in server.seen] == [["aaa", "a"]]
        assert scorer.score("q", []) == [] and len(server.seen) == 1
        assert load_scorer(server.url, floor=None, **QUICK).score("q", ["aaa", ""]) == [0.03, 0.0]
        assert load_scorer(server.url, scale="probability", **QUICK).score("q", ["a", ""]) == [0.01, -1.0]


def test_any_text_can_be_sent():
    odd = ["\ud83d half a pair", "nul \x00 inside", "🙂 <|im_end|> [SEP]", '"quotes" \\ and \n lines']
    with serving(good) as server:
        found = load_scorer(server.url, **QUICK).score("q {query} {instruction} \udc00", odd, instruction="say {query}")
        assert [round(score * 100) for score in found] == [len(text) for text in odd]
        assert server.seen[0][2]["documents"][2:] == odd[2:] and "\ud83d" not in json.dumps(server.seen[0][2], ensure_ascii=False)
        assert server.seen[0][2]["query"] == "say {query}\nq {query} {instruction} \ufffd"


def test_scale_is_declared_and_a_probability_is_checked():
    with serving(spoilt(lambda found: [entry | {"relevance_score": -11.0} for entry in found])) as server:
        assert load_scorer(server.url, **QUICK).score("q", ["a"]) == [-11.0]
        assert load_scorer(server.url, scale="logit", **QUICK).score_examples(examples(1))[0].scale == "logit"
        with pytest.raises(WrongReplyError, match="-11, not a probability; set scale"):
            load_scorer(server.url, scale="probability", **QUICK).score("q", ["a"])


def test_extra_fields_are_sent_and_change_the_fingerprint():
    with serving(good) as server:
        scorer = load_scorer(server.url, extra={"truncate": True}, **QUICK)
        scorer.score("q", ["a"])
        assert server.seen[0][2]["truncate"] is True
        plain = load_scorer(server.url)
        same = load_scorer(server.url, timeout=3, concurrency=2)
        others = [scorer, *(load_scorer(server.url, **option) for option in ({"model": "m"}, {"max_documents": 3}, {"scale": "logit"}))]
        assert plain.fingerprint == same.fingerprint and len({one.fingerprint for one in [plain, *others]}) == 5


@pytest.mark.parametrize(
    "spec, options, words",
    [
        ("http://", {}, "cannot be called"),
        ("ftp://host/rerank", {}, "cannot be called"),
        ("http://me:hush@host", {}, "name or password"),
        ("http://host", {"dialect": "coherre"}, "did you mean 'cohere'"),
        ("http://host", {"time_out": 3}, "did you mean 'timeout'"),
        ("http://host", {"timeout": 0}, "timeout"),
        ("http://host", {"scale": "percent"}, "scale"),
        ("http://host", {"on_failure": "ignore"}, "on_failure"),
        ("http://host", {"max_documents": 0}, "max_documents"),
        ("http://host", {"extra": {"query": "x"}}, "extra holds 'query'"),
        ("http://host", {"instruction_template": "{query}"}, "instruction_template"),
        ({"kind": "api"}, {}, "needs `url`"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(spec, options, words):
    with pytest.raises(ConfigError) as caught:
        load_scorer(spec, **options)
    assert words in str(caught.value) and "\n" not in str(caught.value) and "hush" not in str(caught.value)


def test_a_known_host_needs_no_dialect_and_a_scorer_has_a_short_name():
    assert Api("https://api.voyageai.com/v1/rerank").dialect == "voyage" and Api("https://api.cohere.com/v2/rerank").dialect == "cohere"
    assert load_scorer("http://localhost:8080").name == "localhost:8080"
    assert load_scorer({"kind": "api", "url": "http://localhost:8080", "model": "m"}).name == "m"


class Silent:
    """Stands for a client where nothing is sent."""


def test_whatever_a_reply_holds_the_scores_are_right_or_there_are_none():
    scorer = Api("http://localhost:1/rerank", client=Silent())  # type: ignore[arg-type]
    odd = [None, True, "0", -1, 5, 0.0, 1.5, math.nan, [], {}, 10**400]
    outcomes = {"right": 0, "refused": 0}
    for trial in range(3000):
        draw = seeds.stream(0, "spoilt reply", trial)
        found = [{"index": place, "relevance_score": score} for place, score in enumerate(RIGHT)]
        found = [found[place] for place in draw.permutation(5)]
        for _ in range(int(draw.integers(3))):
            place, value = int(draw.integers(len(found))), odd[int(draw.integers(len(odd)))]
            change = int(draw.integers(6))
            if change == 0 and len(found) > 1:
                del found[place]
            elif change == 1:
                found.append(dict(found[place]))
            elif change == 2:
                found[place] = {"relevance_score": 0.5}
            elif change == 3:
                found[place] = found[place] | {"index": value}
            elif change == 4:
                found[place] = found[place] | {"relevance_score": math.nan}
            else:
                found[place] = {**found[place], "document": value}  # says nothing
        try:
            scores = scorer._scores({"results": found}, 5)
        except WrongReplyError:
            outcomes["refused"] += 1
        else:
            assert scores == RIGHT
            outcomes["right"] += 1
    assert min(outcomes.values()) > 300
