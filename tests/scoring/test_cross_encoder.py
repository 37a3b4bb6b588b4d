"""The cross-encoder: budgets, frames, heads, saving, memory, and equality with the libraries that load the same folder."""

from __future__ import annotations

import json

import pytest
import tiny_classifiers
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertModel

from steadyrank.errors import ConfigError, InputError, NonFiniteScoreError, RunError, UntrainedHeadError
from steadyrank.prompts.fit import Budget
from steadyrank.records import RankingExample
from steadyrank.scoring import Pair, load_scorer
from steadyrank.scoring.batching import token_batches
from steadyrank.scoring.cross_encoder import CrossEncoder

DOCUMENTS = ["the capital of the country", "bananas are yellow " * 5, "x", "which city is the capital"]


def _make(kind: str = "bert", **options) -> CrossEncoder:
    make = {name: options.pop(name) for name in ("positions", "labels", "seed") if name in options}
    return CrossEncoder.from_model(*tiny_classifiers.make(kind, **make), **options)


# --- ids -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", tiny_classifiers.ENCODERS + tiny_classifiers.DECODERS)
def test_ids_are_those_of_the_tokenizer_for_the_pair(kind):  # P15, P17
    scorer = _make(kind)
    for query, document in [("which city", "bananas are yellow"), ("a", "b"), ("naïve 東京", "the capital, of 3.5")]:
        plain = scorer.tokenizer(query, document)
        [found] = scorer.encode([Pair(query, document)])
        assert list(found.ids) == plain["input_ids"]
        if found.type_ids is not None:
            assert list(found.type_ids) == plain["token_type_ids"]


def test_changing_query_document_or_instruction_changes_the_ids():  # P15
    pairs = [
        Pair("which city", "a"),
        Pair("which city", "b"),
        Pair("who", "a"),
        Pair("which city", "a", "people"),
        Pair("which city", "a", "yes"),
    ]
    assert len({found.ids for found in _make().encode(pairs)}) == len(pairs)


def test_the_template_joins_instruction_and_query():
    assert _make().render_query("q", "i") == "i\n\nq"
    assert _make().render_query("q") == _make().render_query("q", "") == "q"
    scorer = _make(template="Query: {query}\nInstruct: {instruction}")
    assert scorer.render_query("{instruction}", "{query}") == "Query: {instruction}\nInstruct: {query}"  # braces of users are text
    assert scorer.score("q", ["a"], instruction="people") == scorer.score("Query: q\nInstruct: people", ["a"])
    for template in ("{query}", "{instruction}", "{query} {query} {instruction}"):
        with pytest.raises(ConfigError, match="template"):
            _make(template=template)


# --- budgets -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query, document, expected",
    [
        (10, 10, (10, 10)),  # all fits into 40
        (10, 90, (10, 30)),  # the document is cut
        (90, 10, (30, 10)),  # a short document lends its room
        (90, 90, (20, 20)),  # half and half
        (25, 90, (20, 20)),
    ],
)
def test_budget_shares(query, document, expected):  # P07
    fit = Budget(43, 3).fit(query, document)
    assert (fit.query, fit.document) == expected
    assert (fit.truncated_query, fit.truncated_document) == (expected[0] < query, expected[1] < document)


@pytest.mark.parametrize("max_length", [8, 16, 64])
@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
def test_the_frame_is_never_cut(kind, max_length):  # P05, P07
    scorer = _make(kind, max_length=max_length)
    frame = scorer.frame
    for query in (1, 30, 300):
        for document in (1, 30, 300):
            [found] = scorer.encode([Pair("city " * query, "capital " * document)])
            assert len(found.ids) <= max_length
            assert found.ids[: len(frame.before)] == frame.before and found.ids[-len(frame.after) :] == frame.after
            kept = len(found.ids) - frame.size
            assert kept == max_length - frame.size or not (found.truncated_query or found.truncated_document)


def test_a_long_query_leaves_the_documents_apart():  # P07
    scorer = _make(max_length=64)
    found = scorer.score_examples([RankingExample("which city " * 200, ("bananas are yellow", "the capital"))])[0]
    assert found.truncated == (0, 1) and abs(found.scores[0] - found.scores[1]) > 1e-3


def test_a_long_instruction_gives_way_before_the_query():
    scorer = _make(max_length=40)
    one, other = (scorer.encode([Pair(query, "x", "people live there " * 50)])[0] for query in ("which capital", "bananas"))
    assert one.truncated_query and one.ids != other.ids
    assert "which capital" in scorer.tokenizer.decode(one.ids)


def test_one_long_document_is_cut_alone_and_strict_names_it():  # P08
    documents = ["a", "capital " * 10_000, "b"]
    assert _make().score_examples([RankingExample("q", tuple(documents))])[0].truncated == (1,)
    with pytest.raises(InputError, match="index: 1 .*max_length"):
        _make(strict=True).score("q", documents)
    assert len(_make(strict=True).score("q", ["a", "b"])) == 2


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert", "llama"])
def test_the_position_table_bounds_every_pair(kind):  # P09
    scorer = _make(kind, positions=40)
    limit = 38 if kind == "roberta" else 40  # RoBERTa counts from its padding index + 1 = 2
    assert scorer.max_length == limit and scorer.tokenizer.model_max_length > 10**9
    room = limit - scorer.frame.size - 1
    for extra in (0, 1, 2, 1000):
        document = "a " * (room + extra)
        assert all(abs(value) < 1e6 for value in scorer.score("a", [document, "a"]))
    assert _make(kind, positions=40, max_length=20).max_length == 20
    assert _make(kind, positions=40, max_length=4000).max_length == limit


def test_a_max_length_without_room_is_refused():
    with pytest.raises(ConfigError, match="max_length 4"):
        _make(max_length=4)


# --- padding, memory, non-finite -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
@pytest.mark.parametrize("packing", ["auto", "off"])
def test_scores_do_not_depend_on_batches_or_padding_side(kind, packing):  # P01, P04
    reference = _make(kind, packing=packing).score("which city", DOCUMENTS)
    for budget in (1, 40, 10_000):
        for side in ("left", "right"):
            scorer = _make(kind, packing=packing, tokens_per_forward=budget)
            scorer.tokenizer.padding_side = side
            assert scorer.score("which city", DOCUMENTS) == pytest.approx(reference, abs=1e-5)
            assert scorer.score("which city", DOCUMENTS[::-1])[::-1] == pytest.approx(reference, abs=1e-5)


@pytest.mark.parametrize("packing", ["auto", "off"])
def test_a_model_without_pad_token_gets_one_and_keeps_its_size(tmp_path, packing):  # P02, P03
    scorer = _make("llama", packing=packing)
    size = scorer.model.get_input_embeddings().weight.shape[0]
    assert scorer.tokenizer.pad_token_id == scorer.model.config.pad_token_id == scorer.tokenizer.eos_token_id
    alone = [scorer.score("which city", [document])[0] for document in DOCUMENTS]  # every pair ends in the pad = end token
    assert scorer.score("which city", DOCUMENTS) == pytest.approx(alone, abs=1e-5)
    scorer.save(tmp_path / "m")
    again = load_scorer(tmp_path / "m", packing=packing)
    assert again.score("which city", DOCUMENTS) == pytest.approx(alone, abs=1e-5)
    assert again.model.get_input_embeddings().weight.shape[0] == size and again.tokenizer.pad_token_id == 1


def test_batches_hold_the_budget_and_every_place_once():
    lengths = [5, 100, 7, 7, 30, 1, 64]
    for padded in (False, True):
        batches = token_batches(lengths, 64, padded=padded)
        assert sorted(place for batch in batches for place in batch) == list(range(7))
        for batch in batches:
            cost = len(batch) * max(lengths[place] for place in batch) if padded else sum(lengths[place] for place in batch)
            assert cost <= 64 or len(batch) == 1


@pytest.mark.parametrize(
    "error", [RuntimeError("CUDA out of memory"), torch.OutOfMemoryError("no"), MemoryError(), RuntimeError("can't allocate memory")]
)
def test_out_of_memory_halves_the_batch_and_loses_nothing(monkeypatch, error):  # P21
    if type(error) is torch.OutOfMemoryError:
        error = torch.OutOfMemoryError("CUDA out of memory")
    scorer = _make()
    documents = [f"{text} {number}" for text in DOCUMENTS for number in range(4)]
    expected, forward = scorer.score("q", documents), scorer.forward

    def small_only(model, inputs):
        if len(inputs["lengths_N"]) > 4:
            raise error
        return forward(model, inputs)

    monkeypatch.setattr(scorer, "forward", small_only)
    assert scorer.score("q", documents) == pytest.approx(expected, abs=1e-5)


def test_a_pair_without_memory_alone_is_named_and_other_errors_pass(monkeypatch):  # P21
    scorer = _make()

    def fail(model, inputs):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(scorer, "forward", fail)
    with pytest.raises(RunError, match="index: 0.*bananas"):
        scorer.score("q", ["bananas"])
    monkeypatch.setattr(scorer, "forward", lambda model, inputs: (_ for _ in ()).throw(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        scorer.score("q", ["bananas"])


def test_a_model_that_gives_nan_is_an_error_naming_the_pair():  # P18, P19
    scorer = _make()
    with torch.no_grad():
        scorer.model.classifier.bias.fill_(float("nan"))
    with pytest.raises(NonFiniteScoreError, match="index: 0"):
        scorer.score("q", ["a"])


def test_a_checkpoint_of_half_precision_is_computed_in_full(tmp_path):  # P18
    """fp16 weights on disk, a pair of 2 tokens beside one of 200: no mask constant can overflow, since nothing is computed in fp16."""
    scorer = _make()
    scorer.save(tmp_path / "full")
    halved = AutoModelForSequenceClassification.from_pretrained(tmp_path / "full").half()
    scorer.save(tmp_path / "half")
    halved.save_pretrained(tmp_path / "half")
    loaded = load_scorer(str(tmp_path / "half"))
    assert next(loaded.model.parameters()).dtype == torch.float32
    documents = ["a", "bananas " * 200]
    assert loaded.score("q", documents) == pytest.approx(scorer.score("q", documents), abs=2e-3)  # weights rounded to 11 bits


def test_scoring_leaves_the_training_mode_as_it_was():
    scorer = _make()
    scorer.model.train()
    scorer.model.config.hidden_dropout_prob = 0.5
    assert scorer.score("q", ["a"]) == scorer.score("q", ["a"]) and scorer.model.training


# --- heads ---------------------------------------------------------------------------------------------------------------------------


def test_several_labels_need_a_choice():  # P22
    with pytest.raises(ConfigError, match="3 labels.*positive_label"):
        _make(labels=3)
    model, tokenizer = tiny_classifiers.make("bert", labels=3)
    for label, place in [(2, 2), ("LABEL_1", 1)]:
        found = CrossEncoder.from_model(model, tokenizer, positive_label=label).score("which city", ["a"])
        assert found == pytest.approx([model(**tokenizer("which city", "a", return_tensors="pt")).logits[0, place].item()], abs=1e-5)
    with pytest.raises(ConfigError, match="positive_label"):
        _make(labels=3, positive_label="LABEL_9")


def test_a_model_without_a_trained_head_is_refused_until_its_head_has_changed(tmp_path):  # P14
    model, tokenizer = tiny_classifiers.make("bert")
    BertModel.from_pretrained(None, config=model.config, state_dict=model.bert.state_dict()).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    with pytest.raises(UntrainedHeadError, match="classifier"):
        load_scorer(tmp_path / "base")
    scorer = load_scorer(tmp_path / "base", allow_untrained=True)
    assert scorer.untrained and scorer.model.config.num_labels == 1
    scorer.save(tmp_path / "new")
    with pytest.raises(UntrainedHeadError, match="before training"):
        load_scorer(tmp_path / "new")
    again = load_scorer(tmp_path / "new", allow_untrained=True)
    assert again.untrained
    with torch.no_grad():
        again.model.classifier.weight += 0.1
    assert not again.untrained
    again.save(tmp_path / "trained")
    assert load_scorer(tmp_path / "trained").score("q", DOCUMENTS) == pytest.approx(again.score("q", DOCUMENTS), abs=1e-6)


# --- saved models --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
def test_a_saved_model_gives_equal_scores_in_transformers(tmp_path, kind):  # P13, P17
    scorer = _make(kind, max_length=60, template="{query} {instruction}", name="mine")
    scorer.save(tmp_path / "m")
    again = load_scorer(tmp_path / "m")
    assert again.score("q", DOCUMENTS, instruction="i") == pytest.approx(scorer.score("q", DOCUMENTS, instruction="i"), abs=1e-6)
    assert (again.template, again.max_length, again.kind, again.name) == (scorer.template, 60, "cross_encoder", "m")
    saved = json.loads((tmp_path / "m" / "steadyrank.json").read_text())
    assert (saved["schema"], saved["kind"], saved["scale"]) == ("steadyrank.scorer/1", "cross_encoder", "logit")
    assert "attn_implementation" not in (tmp_path / "m" / "config.json").read_text()
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(tmp_path / "m"), AutoTokenizer.from_pretrained(tmp_path / "m")
    names = ("input_ids", "attention_mask", "token_type_ids")
    with torch.no_grad():
        inputs = tokenizer([scorer.render_query("q", "i")] * 4, DOCUMENTS, padding=True, return_tensors="pt")
        logits = model(**{key: value for key, value in inputs.items() if key in names}).logits[:, 0].tolist()
    if kind == "llama":  # ends in pad = end tokens, which transformers reads past: only the longest sequence can be compared
        return
    assert logits == pytest.approx(scorer.score("q", DOCUMENTS, instruction="i"), abs=1e-5)


def test_a_saved_model_gives_raw_logits_in_sentence_transformers(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    scorer = _make(max_length=60)
    scorer.save(tmp_path / "m")
    theirs = sentence_transformers.CrossEncoder(str(tmp_path / "m"), device="cpu")
    assert theirs.max_length == 60
    found = theirs.predict([(scorer.render_query("q", "i"), document) for document in DOCUMENTS])
    assert found.tolist() == pytest.approx(scorer.score("q", DOCUMENTS, instruction="i"), abs=1e-5)


def test_the_fingerprint_follows_everything_that_can_change_a_score():
    same = [_make().fingerprint, _make().fingerprint, _make(name="other", tokens_per_forward=7).fingerprint]
    assert len(set(same)) == 1
    scorer = _make()
    with torch.no_grad():
        scorer.model.classifier.weight[0, 0] += 1e-3
    others = [
        _make(seed=1),
        _make(max_length=20),
        _make(template="{query} {instruction}"),
        _make(precision="bf16"),
        _make("roberta"),
        scorer,
    ]
    assert len({same[0], *(other.fingerprint for other in others)}) == 1 + len(others)


def test_bf16_is_used_where_it_pays_only():
    assert not _make().uses_bf16  # tiny
    assert _make(precision="bf16").uses_bf16
    with pytest.raises(ConfigError, match="precision 'fp64'"):
        _make(precision="fp64")


@pytest.mark.slow
def test_the_packaged_teacher_gives_its_documented_scores(packaged_models):
    passages = ["Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers."]
    passages.append("New York City is famous for the Metropolitan Museum of Art.")
    scores = load_scorer("teacher", precision="fp32").score("How many people live in Berlin?", passages)
    assert scores == pytest.approx([9.27, -11.19], abs=0.01)
