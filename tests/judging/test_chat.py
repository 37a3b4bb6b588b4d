"""Fault drills of the chat judge: whatever the endpoint does, retries are bounded, the ledger is right and no grade is wrong."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

pytest.importorskip("openai")

from chat_server import Sometimes, base, completion, examples, grade_of, id_of, judge_at, right, text_of, truth
from local_server import free_url, serving

from steadyrank import RankingExample
from steadyrank.errors import ConfigError, RunError, UserError
from steadyrank.judging import TooManyMissingError, load_judge, missing_share, with_grades
from steadyrank.judging.asker import BudgetSpentError
from steadyrank.remote import RefusedError


def test_grades_replies_and_account_of_a_run_without_faults(tmp_path):
    lists = examples()
    with serving(right) as server:
        judge = judge_at(server, tmp_path)
        rows = judge.judge(lists)
        assert [row.grades for row in rows] == truth(lists)
        assert json.loads(rows[0].extra["replies"][1])["grade"] == 1 and rows[0].judge == "m"
        told = judge.about()
    assert (told["ledger"]["called"], told["ledger"]["prompt_tokens"], told["ledger"]["completion_tokens"]) == (12, 120, 24)
    assert (told["calls"]["attempts"], told["ledger"]["failed_attempts"], told["missing_reasons"]) == (12, 0, {})
    assert told["structured"] == "json_schema" and told["prompt"]["name"] == "judge-relevance"
    sent = server.seen[0][2]
    assert sent["temperature"] == 0.0 and sent["max_tokens"] == 64 and sent["model"] == "m"
    assert sent["response_format"]["json_schema"]["schema"]["properties"]["grade"]["enum"] == [0, 1, 2, 3]


FAULTS = {
    "a 500": (500, {}, b"broken"),
    "429 without a wait": (429, {}, b""),
    "429 with a wait": (429, {"Retry-After": "0"}, b""),
    "garbage": (200, {}, b"<html>garbage"),
    "truncated JSON": (200, {}, b'{"choices": [{"mess'),
    "a reply that breaks off": (200, {"Content-Length": "500"}, b'{"choices": []}'),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_an_endpoint_that_recovers_costs_retries_and_no_grade(fault, tmp_path):
    lists = examples(1)
    answer = Sometimes(lambda body, attempt: fault if attempt < 2 else None)
    with serving(answer) as server:
        judge = judge_at(server, tmp_path)
        assert [row.grades for row in judge.judge(lists)] == truth(lists)
    told = judge.about()
    assert set(answer.seen.values()) == {2}  # three attempts each and no more
    assert (told["calls"]["attempts"], told["calls"]["retries"], told["ledger"]["called"], told["ledger"]["failed_attempts"]) == (
        12,
        8,
        4,
        8,
    )


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_a_call_that_never_succeeds_is_missing_and_asked_again_by_the_next_run_alone(fault, tmp_path):
    lists = examples(1, size=4)
    with serving(Sometimes(lambda body, attempt: fault if grade_of(body) == 2 else None)) as server:
        judge = judge_at(server, tmp_path)
        assert judge.judge(lists)[0].grades == (0.0, 1.0, None, 3.0)
        assert sum(judge.missing.values()) == 1 and next(iter(judge.missing)).startswith("call: ")
        assert Counter(grade_of(body) for _, _, body in server.seen) == {0: 1, 1: 1, 2: 3, 3: 1}
        server.answer = right
        again = judge_at(server, tmp_path)
        assert again.judge(lists)[0].grades == (0.0, 1.0, 2.0, 3.0)
        assert len(server.seen) == 7 and (again.ledger.cached, again.ledger.called) == (3, 1)


UNREADABLE = {
    "no JSON": ("I would say it is relevant, a 3 of 3 or so", "stop", "no answer"),
    "cut JSON": ('{"id": "d', "stop", "not JSON"),
    "cut by length": ("2", "length", "truncated"),
    "another id": ('{"id": "dffff0", "grade": 3}', "stop", "wrong id"),
    "out of range": ('{"grade": 7}', "stop", "out of range"),
    "two grades": ('{"grade": 0} no, {"grade": 3}', "stop", "several answers"),
    "nothing": ("", "stop", "empty"),
    "no text": (None, "stop", "empty"),
    "filtered": (None, "content_filter", "refused"),
}


@pytest.mark.parametrize("content, finish, reason", UNREADABLE.values(), ids=list(UNREADABLE))
def test_a_reply_that_cannot_be_read_is_missing_counted_kept_and_not_asked_twice(content, finish, reason, tmp_path):
    lists = examples(1)
    wrong = Sometimes(lambda body, attempt: (200, {}, completion(content, finish=finish)) if grade_of(body) == 3 else None)
    with serving(wrong) as server:
        for start in range(2):
            judge = judge_at(server, tmp_path)
            row = judge.judge(lists)[0]
            assert row.grades == (0.0, 1.0, 2.0, None) and row.extra["replies"][3] == content and row.extra["missing"] == {"3": reason}
            assert judge.about()["missing_reasons"] == {reason: 1}
            assert judge.ledger.called == (4 if start == 0 else 0)
        server.answer = right
        again = judge_at(server, tmp_path, ask_again=True)
        assert again.judge(lists)[0].grades == (0.0, 1.0, 2.0, 3.0) and again.ledger.called == 1
        assert judge_at(server, tmp_path).judge(lists)[0].grades == (0.0, 1.0, 2.0, 3.0)  # the later reply is the one kept


def test_json_of_another_shape_is_a_failed_call_that_is_not_repeated(tmp_path):
    lists = examples(1, size=1)
    with serving(lambda body, number: (200, {}, {"error": {"message": "no credit"}})) as server:
        judge = judge_at(server, tmp_path)
        assert judge.judge(lists)[0].grades == (None,) and judge.missing == {"call: wrong reply": 1}
        assert len(server.seen) == 1


def test_an_endpoint_that_never_answers_and_one_that_answers_late(tmp_path):
    def late(body, attempt):
        if attempt < {0: 0, 1: 1, 2: 99, 3: 0}[grade_of(body)]:
            time.sleep(1.2)

    lists = examples(1)
    with serving(Sometimes(late)) as server:
        judge = judge_at(server, tmp_path, timeout=0.8, structured="never")
        begun = time.monotonic()
        assert judge.judge(lists)[0].grades == (0.0, 1.0, None, 3.0)
        assert time.monotonic() - begun < 20
        assert judge.missing == {"call: timed out": 1}
        assert Counter(grade_of(body) for _, _, body in server.seen) == {0: 1, 1: 2, 2: 3, 3: 1}


def test_a_refused_key_ends_the_run_with_a_users_error_and_without_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-key")
    with serving(lambda body, number: (401, {}, {"error": "key secret-key is wrong"})) as server:
        with pytest.raises(RefusedError) as caught:
            judge_at(server, tmp_path, api_key_env="MY_KEY").judge(examples())
        assert "secret-key" not in str(caught.value) and "MY_KEY" in str(caught.value) and isinstance(caught.value, UserError)
        assert server.seen[0][1]["authorization"] == "Bearer secret-key" and len(server.seen) <= 4


def test_an_endpoint_that_is_down_ends_the_run_and_keeps_what_is_done(tmp_path):
    url = free_url().removesuffix("/rerank") + "/v1"
    judge = load_judge(url, model="m", cache=str(tmp_path / "c"), backoff=0.001, retries=1, give_up_after=3, concurrency=1)
    with pytest.raises(RunError, match="3 calls in a row failed"):
        judge.judge(examples())
    assert judge.asker.calling.counts.calls == 3


def test_a_schema_is_tried_once_where_it_is_refused(tmp_path):
    def no_schema(body, number):
        return (400, {}, {"error": "no response_format"}) if "response_format" in body else right(body)

    lists = examples()
    with serving(no_schema) as server:
        judge = judge_at(server, tmp_path)
        assert [row.grades for row in judge.judge(lists)] == truth(lists)
        assert sum("response_format" in body for _, _, body in server.seen) == 1 and len(server.seen) == 13
        assert judge.about()["structured"] == "off" and judge.ledger.schema_refused == 1
        assert judge.asker.calling.counts.failures == 0


def test_a_bad_request_that_has_another_reason_is_not_taken_for_a_refused_schema(tmp_path):
    too_long = Sometimes(lambda body, attempt: (400, {}, {"error": "too long"}) if grade_of(body) == 0 else None)
    with serving(too_long) as server:
        judge = judge_at(server, tmp_path, concurrency=1)
        assert judge.judge(examples(1))[0].grades == (None, 1.0, 2.0, 3.0)
        assert judge.about()["structured"] == "json_schema" and judge.missing == {"call: bad request": 1}


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_budget_stops_before_it_is_overrun_and_the_next_run_goes_on(concurrency, tmp_path):
    lists = examples()
    with serving(right) as server:
        judge = judge_at(server, tmp_path, max_tokens=8)
        size = sum(len(message["content"].encode()) for message in judge.asking.document(lists[0], 0).messages)
        room, reply = (size // 3 + 1) * 2e-6 + 8 * 5e-6, 10 * 2e-6 + 2 * 5e-6  # at most, and in truth
        budget = room + 6.5 * reply  # after seven replies there is no room for an eighth call
        fields = {"price_prompt": 2.0, "price_completion": 5.0, "budget": budget, "concurrency": concurrency, "max_tokens": 8}
        judge = judge_at(server, tmp_path, **fields)
        with pytest.raises(BudgetSpentError, match="5 of 12 asks are left") as caught:
            judge.judge(lists)
        assert len(server.seen) == judge.ledger.called == 7 and "raise the budget" in str(caught.value)
        assert judge.ledger.cost == pytest.approx(7 * reply) and judge.ledger.cost <= budget and judge.ledger.under_way == 0
        rest = judge_at(server, tmp_path, **(fields | {"budget": 1.0}))
        assert [row.grades for row in rest.judge(lists)] == truth(lists)
        assert len(server.seen) == 12 and rest.ledger.cached == 7


def test_replies_without_token_counts_are_booked_at_the_room_kept_for_them(tmp_path):
    with serving(lambda body, number: (200, {}, completion("1", usage=None))) as server:
        judge = judge_at(server, tmp_path, max_tokens=7)
        judge.judge(examples(1, size=1))
        size = sum(len(message["content"].encode()) for message in server.seen[0][2]["messages"])
        assert (judge.ledger.uncounted_replies, judge.ledger.completion_tokens, judge.ledger.prompt_tokens) == (1, 7, size // 3 + 1)


def test_equal_asks_are_made_once_and_documents_without_text_are_not_sent(tmp_path):
    example = RankingExample("q", ["same with grade 2", "same with grade 2", "  \n", "other with grade 1"], id="e")
    with serving(right) as server:
        judge = judge_at(server, tmp_path)
        assert judge.judge([example])[0].grades == (2.0, 2.0, 0.0, 1.0)
        assert len(server.seen) == 2 and judge.about()["empty"] == 1 and judge.ledger.cached == 1


def test_the_instruction_is_part_of_what_is_asked_and_of_the_key(tmp_path):
    one = RankingExample("q", ["d with grade 2"], id="e")
    with serving(right) as server:
        for example in (one, RankingExample("q", ["d with grade 2"], id="e", instruction="only recent ones")):
            judge_at(server, tmp_path).judge([example])
        assert len(server.seen) == 2 and "only recent ones" in text_of(server.seen[1][2])


def test_whatever_can_change_a_reply_is_in_the_key(tmp_path):
    lists = examples(1, size=1)
    mine = tmp_path / "mine.yaml"
    with serving(right) as server:
        from steadyrank.prompts.catalog import FOLDER

        mine.write_text((FOLDER / "judge-relevance@1.yaml").read_text().replace("You grade how", "You judge how"))
        changes = [{}, {"revision": "2"}, {"temperature": 0.5}, {"max_tokens": 9}, {"decoding_seed": 1}, {"extra": {"top_k": 3}}]
        changes += [{"prompt": str(mine)}, {"structured": "never"}]
        for count, change in enumerate(changes, start=1):
            for _ in range(2):
                judge_at(server, tmp_path, **change).judge(lists)
            assert len(server.seen) == count, change
        assert server.seen[5][2]["top_k"] == 3 and server.seen[4][2]["seed"] == 1


def test_answer_containment(tmp_path):
    example = RankingExample("who?", ["it was Ada", "it was not"], id="e", answers=("Ada", "Lovelace"))

    def answer(body, number):
        assert "Ada; Lovelace" in text_of(body)
        return 200, {}, completion(json.dumps({"id": id_of(body), "contains": int("was Ada" in text_of(body))}))

    with serving(answer) as server:
        assert judge_at(server, tmp_path, task="answer").judge([example])[0].grades == (1.0, 0.0)


def test_too_many_missing_grades_are_not_trained_on(tmp_path):
    lists = examples(2)
    with serving(Sometimes(lambda body, attempt: (200, {}, completion("?")) if grade_of(body) == 3 else None)) as server:
        judge = judge_at(server, tmp_path)
        assert missing_share(judge.judge(lists)) == 0.25
        with pytest.raises(TooManyMissingError, match="25.0%") as caught:
            with_grades(lists, judge)
        assert caught.value.exit_code == 2
        kept, counts = with_grades(lists, judge_at(server, tmp_path, max_missing=0.25))
        assert counts == {"judged_candidates": 6, "missing_grades": 2, "lists_without_two_grades": 0, "missing_share": 0.25}
        assert [len(example.candidates) for example in kept] == [3, 3]


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"modle": "m"}, "did you mean 'model'"),
        ({"temperature": "hot"}, "temperature"),
        ({"budget": 1.0}, "price_prompt"),
        ({"structured": "yes"}, "structured"),
        ({"extra": {"model": "x"}}, "extra"),
        ({"prompt": "judge-pairwise"}, "judge_grade prompt"),
        ({"prompt": "judge-relevanse"}, "judge-relevance"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_wrong_settings_are_one_sentence_before_anything_is_asked(fields, said):
    with pytest.raises(ConfigError, match=said):
        load_judge("http://127.0.0.1:9/v1", **({"model": "m"} | fields))


def test_the_model_must_be_named():
    with pytest.raises(ConfigError, match="needs 'model'"):
        load_judge("http://127.0.0.1:9/v1")


def test_a_ranking_is_rated_as_a_whole(tmp_path):
    from steadyrank.judging import settings
    from steadyrank.judging.rankings import RankingJudge

    def rate(body, number):
        first = text_of(body).index("with grade 3") < text_of(body).index("with grade 0")
        return 200, {}, completion(json.dumps({"id": id_of(body), "rating": 9 if first else 1}))

    (example,) = examples(1)
    with serving(rate) as server:
        fields = {"base_url": base(server), "model": "m", "cache": str(tmp_path / "c")}
        judge = RankingJudge(settings.checked("ranking", settings.RankingSettings, fields))
        assert judge.rate([example, example], [(3, 2, 1, 0), (0, 1, 2, 3)]) == [0.9, 0.1]
