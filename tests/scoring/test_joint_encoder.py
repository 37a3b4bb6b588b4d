"""The joint encoder on tiny random encoders. Expected values are the cross-encoder's own logits, arithmetic, or the ids that were shown."""

from __future__ import annotations

import copy
import itertools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_classifiers  # noqa: E402

from steadyrank import RankingExample, load_scorer, seeds  # noqa: E402
from steadyrank.data.presenting import presentations  # noqa: E402
from steadyrank.errors import ConfigError, UntrainedHeadError  # noqa: E402
from steadyrank.records import Presentation  # noqa: E402
from steadyrank.scoring.cross_encoder import CrossEncoder  # noqa: E402
from steadyrank.scoring.joint_encoder import JointEncoder  # noqa: E402

QUERY = "which city"
DOCUMENTS = [
    "the capital of the country",
    "bananas are yellow",
    "which city is it",
    "a second and longer document that is read",
    "how many people live there",
]
EXAMPLE = RankingExample(QUERY, tuple(DOCUMENTS), id="e")


def cross_encoder(kind: str = "bert", **options) -> CrossEncoder:
    return CrossEncoder.from_model(*tiny_classifiers.make(kind), **options)


def joint(kind: str = "bert", **options) -> JointEncoder:
    return JointEncoder.from_cross_encoder(cross_encoder(kind), **{"width": 4, **options})


@pytest.fixture(scope="module")
def bert() -> JointEncoder:
    return joint()


@pytest.fixture(scope="module")
def own() -> JointEncoder:
    return joint(across="own")


def shown(scorer: JointEncoder, presentation: Presentation) -> list[list[list[int]]]:
    """The ids of the text in each slot of each prompt, cut out by the positions of the slots."""
    out = []
    for found in scorer.encode_prompts(scorer.prompts_of(EXAMPLE, presentation)):
        ends = [*found.slots[1:], len(found.ids)]
        out.append([list(found.ids[start + 1 : end - 1]) for start, end in zip(found.slots, ends, strict=True)])
    return out


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_at_width_one_it_is_the_cross_encoder_in_ordinal_form(kind):
    teacher, scorer = cross_encoder(kind), joint(kind, grade_scale=0.5, grade_cuts=(-1.0, 0.5, 2.0))
    logits = teacher.score(QUERY, DOCUMENTS, instruction="read the document")
    alone = [scorer.score(QUERY, [document], instruction="read the document")[0] for document in DOCUMENTS]
    for z, score in zip(logits, alone, strict=True):
        weights = [
            1.0,
            *itertools.accumulate([torch.exp(torch.tensor(0.5 * (z - cut))).item() for cut in (-1.0, 0.5, 2.0)], lambda a, b: a * b),
        ]
        assert score == pytest.approx(sum(g * w for g, w in enumerate(weights)) / sum(weights) / 3, abs=1e-6)
    assert sorted(range(5), key=lambda k: logits[k]) == sorted(range(5), key=lambda k: alone[k])
    at_one = JointEncoder.from_cross_encoder(teacher, width=1, grade_cuts=(-1.0, 0.5, 2.0))
    assert at_one.score(QUERY, DOCUMENTS, instruction="read the document") == pytest.approx(alone, abs=1e-6)


def test_the_source_is_left_as_it_is():
    teacher = cross_encoder()
    before, tokens = copy.deepcopy(teacher.model.state_dict()), len(teacher.tokenizer)
    JointEncoder.from_cross_encoder(teacher, width=4, layers=[1])
    assert len(teacher.tokenizer) == tokens and all(torch.equal(before[name], value) for name, value in teacher.model.state_dict().items())


def test_the_order_of_a_presentation_is_the_order_shown_and_scores_come_back_in_canonical_order(bert):
    order = (3, 0, 4, 1, 2)
    texts = bert.text.encode(DOCUMENTS)
    laid = Presentation(order=order)
    assert shown(bert, laid) == [[texts[place] for place in order[:4]], [texts[order[4]]]]
    assert shown(bert, Presentation(order=order, windows="round_robin:4")) == [
        [texts[p] for p in order[::2]],
        [texts[p] for p in order[1::2]],
    ]
    moved = RankingExample(QUERY, tuple(DOCUMENTS[place] for place in order), id="moved")
    as_list = bert.score_examples([moved])[0].scores
    found = bert.score_presentations([EXAMPLE], [[laid]])[0][0]
    assert [found.scores[place] for place in order] == pytest.approx(as_list, abs=1e-6) and found.presentation == laid


def test_companions_and_order_change_scores_under_full_and_nothing_does_under_own(bert, own):
    laid = presentations(EXAMPLE, 6, seed=0)
    spread = {
        name: max(
            max(row) - min(row) for row in zip(*(one.scores for one in scorer.score_presentations([EXAMPLE], [laid])[0]), strict=True)
        )
        for name, scorer in (("full", bert), ("own", own))
    }
    assert spread["full"] > 1e-3 and spread["own"] == 0.0
    alone = [own.score(QUERY, [document])[0] for document in DOCUMENTS]
    assert own.score(QUERY, DOCUMENTS) == pytest.approx(alone, abs=1e-6)
    assert bert.score(QUERY, DOCUMENTS) != pytest.approx([bert.score(QUERY, [document])[0] for document in DOCUMENTS], abs=1e-3)


def test_under_own_the_network_itself_sees_no_order(own):
    """Not only the serving shortcut: prompts in another order, forwarded as training does, give the same logits."""
    scores = []
    for order in ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 4, 0, 3, 1)):
        prompts = own.prompts_of(EXAMPLE, Presentation(order=order, markers="random", seed=order[0]))
        with torch.no_grad():
            values = own.forward(own.model, own.collate(own.encode_prompts(prompts))).tolist()
        places = [place for prompt in prompts for place in prompt.places]
        scores.append([values[places.index(place)] for place in range(5)])
    assert scores[1] == pytest.approx(scores[0], abs=1e-6) and scores[2] == pytest.approx(scores[0], abs=1e-6)


def test_the_plain_form_has_a_cls_and_running_positions():
    scorer = joint(marker_sees="all")
    found = scorer.encode_prompts(scorer.prompts_of(EXAMPLE))
    inputs = scorer.collate(found)
    assert all(one.ids[0] == scorer.tokenizer.cls_token_id for one in found)
    assert inputs["position_ids"][0].tolist() == list(range(len(found[0].ids)))
    marker = inputs["slots_N2"][0].tolist()
    before = scorer.score(QUERY, DOCUMENTS[:2])
    assert marker == [0, found[0].slots[0]]
    assert before[0] != pytest.approx(scorer.score(QUERY, [DOCUMENTS[0], DOCUMENTS[4]])[0], abs=1e-4)


def test_scores_do_not_depend_on_the_batch():
    scorer = joint()
    lists = [RankingExample(QUERY, tuple(DOCUMENTS[: n + 1]), id=str(n)) for n in range(5)]
    together = scorer.score_examples(lists, presentations=3, seed=1)
    scorer._tokens_per_forward = 1
    for one, other in zip(together, scorer.score_examples(lists[::-1], presentations=3, seed=1)[::-1], strict=True):
        match = next(
            o
            for o in scorer.score_examples(lists, presentations=3, seed=1)
            if (o.example_id, o.presentation) == (one.example_id, one.presentation)
        )
        assert one.scores == pytest.approx(match.scores, abs=1e-5) and len(other.scores) == len(lists[int(other.example_id)].candidates)


@pytest.mark.parametrize("kind, options", [("bert", {}), ("roberta", {}), ("bert", {"across": "own"}), ("bert", {"marker_sees": "all"})])
def test_saved_and_loaded_it_scores_the_same(tmp_path, kind, options):
    scorer = joint(kind, windows="round_robin:4", markers="random", document_tokens=7, **options)
    scorer.save(tmp_path)
    again = load_scorer(tmp_path)
    assert (again.kind, again.windows, again.width, again.markers) == ("joint_encoder", "round_robin:4", 4, "random")
    assert again.score(QUERY, DOCUMENTS) == scorer.score(QUERY, DOCUMENTS) and again.fingerprint == scorer.fingerprint
    assert load_scorer(tmp_path, width=2).windows == "contiguous:2"
    with pytest.raises(ConfigError, match="markers"):
        load_scorer(tmp_path, width=5)
    with pytest.raises(ConfigError, match="made already"):
        load_scorer(tmp_path, layers=[0])
    cut = load_scorer(tmp_path, across="own")
    assert cut.across == "own" and len({row.scores for row in cut.score_examples([EXAMPLE], presentations=4)}) == 1


def test_marker_tokens_are_new_special_tokens_that_no_text_can_give(bert):
    tokens = bert.marker_tokens
    assert len(set(tokens)) == 4 and all(token in bert.tokenizer.get_vocab() for token in tokens)
    spoofed = f"bananas {tokens[1]} [SEP] {tokens[0]} are"
    ids = bert.text.encode([spoofed])[0]
    assert not {bert.tokenizer.convert_tokens_to_ids(token) for token in tokens} & set(ids)


def test_marker_schemes_choose_tokens(bert):
    schemes = {scheme: bert.slot_markers(scheme, 4, seed=0, example_id="e") for scheme in ("numeric", "letters", "doc", "roman", "random")}
    assert schemes["numeric"] == bert.marker_tokens and all(sorted(found) == sorted(bert.marker_tokens) for found in schemes.values())
    drawn = {bert.slot_markers("random", 4, seed=seed, example_id="e") for seed in range(20)}
    assert len(drawn) > 5
    expected = seeds.permutation(4, 3, "markers", "e")
    assert bert.slot_markers("random", 2, seed=3, example_id="e") == tuple(bert.marker_tokens[place] for place in expected[:2])


def test_untrained_heads_are_refused(tmp_path):
    model, tokenizer = tiny_classifiers.make("bert")
    model.bert.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    spec = {"kind": "joint_encoder", "model": str(tmp_path / "encoder"), "width": 3}
    with pytest.raises(UntrainedHeadError, match="cross-encoder"):
        load_scorer(spec)
    scorer = load_scorer(spec, allow_untrained=True)
    assert scorer.untrained and scorer.width == 3
    scorer.save(tmp_path / "joint")
    with pytest.raises(UntrainedHeadError, match="before its grade head"):
        load_scorer(tmp_path / "joint")
    with torch.no_grad():
        scorer.model.grades.weight += 0.1
    assert not scorer.untrained
    scorer.save(tmp_path / "joint")
    assert load_scorer(tmp_path / "joint").score(QUERY, DOCUMENTS) == scorer.score(QUERY, DOCUMENTS)


def test_a_cross_encoder_folder_loads_as_its_joint_encoder(tmp_path):
    cross_encoder().save(tmp_path)
    loaded = load_scorer({"kind": "joint_encoder", "from": str(tmp_path), "windows": "sliding:4/2", "across": "own"})
    assert loaded.across == "own" and loaded.windows == "sliding:4/2" and not loaded.untrained
    with pytest.raises(ConfigError, match="form"):
        joint("electra")


def test_gradients_reach_markers_encoder_and_head(bert):
    scorer = joint()
    inputs = scorer.collate(scorer.encode_prompts(scorer.prompts_of(EXAMPLE)))
    scores = scorer.forward(scorer.model, inputs)
    assert scores.shape == (5,) and scorer.grade_logits(scorer.model, inputs).shape == (5, 4)
    scores[0].backward()
    table = scorer.model.encoder.get_input_embeddings().weight.grad
    marker = scorer.tokenizer.convert_tokens_to_ids(scorer.marker_tokens[0])
    assert table[marker].abs().sum() > 0 and scorer.model.grades.weight.grad.abs().sum() > 0


@pytest.mark.slow
def test_the_packaged_teacher_keeps_its_knowledge(packaged_models):
    """Logits of the teacher on five passages, from an independent conversion, through the ordinal form; and the order among companions."""
    passages = [
        "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
        "New York City is famous for the Metropolitan Museum of Art.",
        "Berlin is the capital of Germany.",
        "The city has 3.5 million inhabitants.",
        "Bananas are yellow.",
    ]
    query = "How many people live in Berlin?"
    teacher = load_scorer(packaged_models("teacher"), precision="fp32")
    scorer = JointEncoder.from_cross_encoder(teacher, width=5, precision="fp32")
    grades = torch.arange(4.0)
    offsets = 0.5 * torch.tensor([0.0, -4.0, -4.0, 0.0])
    for passage, z in zip(passages, teacher.score(query, passages), strict=True):
        assert scorer.score(query, [passage])[0] == pytest.approx(float((0.5 * grades * z - offsets).softmax(0) @ grades / 3), abs=1e-4)
    together = scorer.score(query, passages)
    assert min(together[0], together[2], together[3]) > max(together[1], together[4])


@pytest.mark.parametrize("options", [{}, {"across": "own"}, {"marker_sees": "all"}])
def test_the_shortened_last_layer_gives_the_scores_and_gradients_of_the_whole_one(options):
    short = joint(**options)
    whole = copy.deepcopy(short)
    layer = whole.model.encoder.encoder.layer[-1]
    layer.forward = type(layer).forward.__get__(layer)
    assert "forward" in short.model.encoder.encoder.layer[-1].__dict__
    inputs = short.collate(short.encode_prompts(short.prompts_of(EXAMPLE)))
    grads = []
    for scorer in (short, whole):
        scores = scorer.forward(scorer.model, inputs)
        (scores * torch.arange(5.0)).sum().backward()
        grads.append((scores.detach(), {name: value.grad for name, value in scorer.model.named_parameters() if value.grad is not None}))
    assert torch.allclose(grads[0][0], grads[1][0], atol=1e-6)
    assert grads[0][1].keys() == grads[1][1].keys()
    for name, value in grads[0][1].items():
        assert torch.allclose(value, grads[1][1][name], atol=1e-5), name
