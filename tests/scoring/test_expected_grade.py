"""The expected-grade scorer on a tiny llama; expected values come from plain forwards over the ids, one slot at a time."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_graders  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

from steadyrank import RankingExample, load_scorer  # noqa: E402
from steadyrank.data.presenting import presentations  # noqa: E402
from steadyrank.errors import ConfigError, InputError  # noqa: E402
from steadyrank.prompts import catalog  # noqa: E402
from steadyrank.records import Presentation  # noqa: E402
from steadyrank.scoring.expected_grade import ExpectedGrade  # noqa: E402
from steadyrank.scoring.grade_frame import graded  # noqa: E402

QUERY = "Which animal sat ?"
DOCUMENTS = ["the cat sat on the mat", "a dog", "no animal sat ? a mat", "the request", "on a mat the cat"]
EXAMPLE = RankingExample(QUERY, tuple(DOCUMENTS), id="e")


@pytest.fixture(scope="module")
def scorer() -> ExpectedGrade:
    return tiny_graders.grader()


def slot_score(scorer: ExpectedGrade, ids: list[int]) -> float:
    """E[g] / 3 at the end of these ids, by a plain forward and arithmetic on four logits."""
    with torch.no_grad():
        last = scorer.model(input_ids=torch.tensor([ids])).logits[0, -1].double()
    logits = [float(last[scorer.tokenizer.convert_tokens_to_ids(str(grade))]) for grade in range(4)]
    weights = [math.exp(value - max(logits)) for value in logits]
    return sum(grade * weight for grade, weight in enumerate(weights)) / sum(weights) / 3


@pytest.mark.parametrize("reuse", [True, False])
def test_one_forward_equals_one_forward_a_slot(scorer, reuse):
    """The dummy grades before a slot are seen, those behind it are not; windows of three and two candidates."""
    scorer.reuse_prefix = reuse
    scores = scorer.score_examples([EXAMPLE])[0].scores
    prompts = scorer.prompts_of(EXAMPLE)
    for prompt, found in zip(prompts, scorer.encode_prompts(prompts), strict=True):
        for place, slot in zip(prompt.places, found.slots, strict=True):
            assert scores[place] == pytest.approx(slot_score(scorer, list(found.ids[: slot + 1])), abs=1e-5)
    assert [prompt.places for prompt in prompts] == [(0, 1, 2), (3, 4)]


def test_independent_lines_see_the_prompt_and_themselves_only():
    scorer = tiny_graders.grader(prefix_mode="independent")
    for reuse in (True, False):
        scorer.reuse_prefix = reuse
        scores = scorer.score_examples([EXAMPLE], presentations=2)[0]
        prompts = scorer.prompts_of(EXAMPLE, scores.presentation)
        for prompt, found in zip(prompts, scorer.encode_prompts(prompts), strict=True):
            for number, place in enumerate(prompt.places):
                ids = [*found.ids[: found.lines[0]], *found.ids[found.lines[number] : found.slots[number] + 1]]
                assert scores.scores[place] == pytest.approx(slot_score(scorer, ids), abs=1e-5)


def test_the_prompt_is_what_the_catalog_says_with_thinking_off(scorer):
    fields = catalog.load("grade-relevance", kind="expected_grade").fields
    prompt = scorer.prompts_of(RankingExample(QUERY, tuple(DOCUMENTS[:2]), instruction="Find it"))[0]
    text = scorer.tokenizer.decode(scorer.encode_prompts([prompt])[0].ids)
    user = fields["user"].replace("{query}", f"Instruction: Find it\nRequest: {QUERY}")
    user = user.replace("{documents}", f"[1] {DOCUMENTS[0]}\n[2] {DOCUMENTS[1]}\n")
    head = f"<|im_start|>system\n{fields['system']}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"
    assert text == head + "<think>\n\n</think>\n\nGrades:\n[1] Grade: 0\n[2] Grade: "


def test_the_order_of_a_presentation_is_the_order_shown(scorer):
    for order in ((4, 2, 0, 1, 3), (1, 0, 3, 4, 2)):
        prompts = scorer.prompts_of(EXAMPLE, Presentation(order=order))
        for prompt, found, places in zip(prompts, scorer.encode_prompts(prompts), (order[:3], order[3:]), strict=True):
            lines = "".join(f"[{number}] {DOCUMENTS[place]}\n" for number, place in enumerate(places, 1))
            assert f"Documents:\n{lines}\nGive" in scorer.tokenizer.decode(found.ids) and prompt.places == places
        moved = RankingExample(QUERY, tuple(DOCUMENTS[place] for place in order), id="moved")
        row = scorer.score_presentations([EXAMPLE], [[Presentation(order=order)]])[0][0]
        assert [row.scores[place] for place in order] == pytest.approx(scorer.score_examples([moved])[0].scores, abs=1e-6)


def test_shared_beginnings_change_nothing_and_hold_everything_before_the_first_document(scorer):
    lists = [EXAMPLE, RankingExample("a dog ?", tuple(DOCUMENTS[::-1]), id="f"), RankingExample(QUERY, ("a dog",), id="g")]
    scorer.reuse_prefix = True
    reused = scorer.score_examples(lists, presentations=4, seed=2)
    scorer.reuse_prefix = False
    plain = scorer.score_examples(lists, presentations=4, seed=2)
    for one, other in zip(reused, plain, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-5)
    found = scorer.encode_prompts(scorer.prompts_of(EXAMPLE))[0]
    text = scorer.tokenizer.decode(found.ids[: found.shared])
    assert QUERY in text and text.endswith("Documents:\n") and DOCUMENTS[0] not in text


def test_every_prefix_is_computed_once_for_all_orders_of_its_example(scorer, monkeypatch):
    scorer.reuse_prefix, calls = True, []
    base = type(scorer.model.model)
    original = base.forward
    monkeypatch.setattr(base, "forward", lambda self, *a, **k: calls.append(tuple(k["input_ids"].shape)) or original(self, *a, **k))
    scorer.score_examples([EXAMPLE], presentations=6)
    found = scorer.encode_prompts(scorer.prompts_of(EXAMPLE))[0]
    longest = max(map(len, DOCUMENTS)) * 3 + len(found.ids) - found.shared  # of what stands behind the shared part
    assert calls[0] == (1, found.shared) and all(shape[0] > 1 and shape[1] < longest for shape in calls[1:])
    laid = presentations(EXAMPLE, 6, seed=0)
    assert sum(rows for rows, _ in calls[1:]) == len({prompt for one in laid for prompt in scorer.prompts_of(EXAMPLE, one)})


def test_width_one_is_pointwise_and_exactly_steady(scorer):
    alone = tiny_graders.grader(width=1)
    scores = alone.score(QUERY, DOCUMENTS)
    assert scores == pytest.approx([scorer.score(QUERY, [document])[0] for document in DOCUMENTS], abs=1e-6)
    rows = alone.score_examples([EXAMPLE], presentations=5)
    assert len({row.scores for row in rows}) == 1


def test_skeleton_dummy_and_markers_reach_the_model(scorer):
    def shown(**laid) -> str:
        prompt = scorer.prompts_of(EXAMPLE, Presentation(**laid))[0]
        return scorer.tokenizer.decode(scorer.encode_prompts([prompt])[0].ids)

    assert shown(skeleton="score", dummy="2").endswith("[1] Score: 2\n[2] Score: 2\n[3] Score: ")
    assert shown(skeleton="{marker} is {dummy};").endswith("[1] is 2;[2] is ".replace("2;[2]", "0;[2]") + "0;[3] is ")
    assert shown(dummy="?").endswith("[2] Grade: ?\n[3] Grade: ")
    assert shown(markers="letters").endswith("[A] Grade: 0\n[B] Grade: 0\n[C] Grade: ") and "[B] a dog\n" in shown(markers="letters")
    assert "Doc-2 a dog\n" in shown(markers="doc")
    plain = scorer.score_examples([EXAMPLE])[0].scores
    for laid in ({"dummy": "3"}, {"markers": "roman"}, {"skeleton": "score"}, {"windows": "round_robin:3"}):
        assert scorer.score_presentations([EXAMPLE], [[Presentation(**laid)]])[0][0].scores != plain
    for wrong in ({"skeleton": "scores"}, {"skeleton": "{dummy} {marker}"}, {"markers": "letter"}, {"windows": "contigous:3"}):
        with pytest.raises(ConfigError):
            scorer.score_presentations([EXAMPLE], [[Presentation(**wrong)]])


def test_a_tokenizer_without_a_template_gets_a_text_frame_and_one_without_a_system_turn_one_user_turn():
    assert tiny_graders.grader(template=None).frame.form == "text"
    refuses = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + tiny_graders.TEMPLATE
    merged = tiny_graders.grader(template=refuses)
    assert merged.frame.form == "chat-user" and tiny_graders.grader().frame.form == "chat"
    assert merged.fingerprint != tiny_graders.grader().fingerprint
    with pytest.raises(ConfigError, match="template"):
        tiny_graders.grader(template="nothing")


def test_grades_must_be_single_distinct_tokens_where_they_stand():
    def words(vocabulary: list[str]) -> PreTrainedTokenizerFast:
        backend = Tokenizer(models.WordLevel({word: number for number, word in enumerate(vocabulary)}, unk_token="?"))
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="?")

    good = words(["?", "Grade:", "0", "1", "2", "3"])
    assert graded(good, "Grade: ", ["0", "1", "2", "3"], forbidden=frozenset()) == ([1], (2, 3, 4, 5))
    with pytest.raises(ConfigError, match="single distinct"):
        graded(words(["?", "Grade:", "0", "1", "2"]), "Grade: ", ["0", "1", "2", "3"], forbidden=frozenset())
    with pytest.raises(ConfigError, match="single distinct"):
        graded(tiny_graders.tokenizer(), "Grade: ", ["0", "1", "2", "10"], forbidden=frozenset())
    with pytest.raises(ConfigError, match="single distinct"):
        graded(good, "Grade: ", ["0", "1", "1", "3"], forbidden=frozenset())


def test_the_query_is_cut_from_its_end_and_the_instruction_before_it():
    scorer = tiny_graders.grader(max_length=480)
    cut = RankingExample("cat " * 30 + "mat " * 500, tuple(DOCUMENTS[:3]), instruction="sat " * 500)
    found = scorer.encode_prompts(scorer.prompts_of(cut))[0]
    text = scorer.tokenizer.decode(found.ids)
    assert found.truncated_query and len(found.ids) <= 480 and text.endswith("[3] Grade: ") and DOCUMENTS[1] in text
    assert "Instruction: sat" in text and "Request: cat cat" in text
    row = scorer.score_examples([cut])[0]
    assert row.truncated == (0, 1, 2)
    with pytest.raises(ConfigError, match="narrower windows"):
        tiny_graders.grader(max_length=320).score(QUERY, DOCUMENTS)
    with pytest.raises(InputError, match="query does not fit"):
        tiny_graders.grader(max_length=480, strict=True).score_examples([cut])


def test_saved_and_loaded_it_scores_the_same(tmp_path):
    scorer = tiny_graders.grader(
        width=2, windows="round_robin:2", skeleton="score", dummy="1", prefix_mode="independent", prompt="grade-response-quality"
    )
    scorer.save(tmp_path)
    again = load_scorer(tmp_path)
    assert (again.kind, again.windows, again.skeleton, again.dummy, again.prompt) == (
        "expected_grade",
        "round_robin:2",
        "score",
        "1",
        scorer.prompt,
    )
    assert (
        again.score(QUERY, DOCUMENTS) == pytest.approx(scorer.score(QUERY, DOCUMENTS), abs=1e-6) and again.fingerprint == scorer.fingerprint
    )
    assert load_scorer(tmp_path, width=4).windows == "contiguous:4"


@pytest.mark.parametrize("name", ["grade-relevance", "grade-answer-support", "grade-response-quality"])
def test_every_prompt_of_the_catalog_works(name):
    assert 0 < min(tiny_graders.grader(prompt=name).score(QUERY, DOCUMENTS)) < 1


def test_scores_are_differentiable_and_only_the_slots_pass_the_output_layer(scorer, monkeypatch):
    seen = []
    head = scorer.model.lm_head
    inputs = scorer.collate(scorer.encode_prompts(scorer.prompts_of(EXAMPLE)))
    handle = head.register_forward_hook(lambda module, args, output: seen.append((args[0].shape[1], output.shape[-1])))
    scores = scorer.forward(scorer.model, inputs)
    handle.remove()
    scores.sum().backward()
    assert scores.shape == (5,) and scorer.model.model.embed_tokens.weight.grad.abs().sum() > 0
    scorer.model.zero_grad()
    assert seen and seen[0][0] <= 5 and seen[0][1] == 4


@pytest.mark.slow
def test_the_packaged_language_model_reads_digits_behind_a_blank(packaged_models):
    scorer = load_scorer({"kind": "expected_grade", "model": str(packaged_models("smollm2")), "width": 3, "precision": "fp32"})
    prompt = scorer.prompts_of(EXAMPLE)[0]
    found = scorer.encode_prompts([prompt])[0]
    assert [scorer.tokenizer.decode([token]) for token in scorer.grade_ids] == ["0", "1", "2", "3"]
    assert {scorer.tokenizer.decode([found.ids[slot]]) for slot in found.slots} == {" "} and scorer.frame.form == "chat"
    reused = scorer.score_examples([EXAMPLE], presentations=2)
    scorer.reuse_prefix = False
    for one, other in zip(reused, scorer.score_examples([EXAMPLE], presentations=2), strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-5)
