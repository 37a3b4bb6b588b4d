"""A tiny cross-encoder and lists with a planted rule: a document is as relevant as it holds words of the query."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from steadyrank.records import RankingExample
from steadyrank.scoring.cross_encoder import CrossEncoder
from steadyrank.seeds import stream

WORDS = [f"w{number}" for number in range(40)]


def tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {token: place for place, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    body = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    body.pre_tokenizer = pre_tokenizers.Whitespace()
    body.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=body,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def model(*, seed: int = 0, dropout: float = 0.0, hidden: int = 32) -> BertForSequenceClassification:
    torch.manual_seed(seed)
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=45, hidden_size=hidden, num_hidden_layers=2, num_attention_heads=2, intermediate_size=2 * hidden, num_labels=1,
            max_position_embeddings=64, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, classifier_dropout=dropout,
            initializer_range=0.1,
        )
    )  # fmt: skip


def student(*, seed: int = 0, dropout: float = 0.0, **options: object) -> CrossEncoder:
    return CrossEncoder.from_model(model(seed=seed, dropout=dropout), tokenizer(), max_length=48, **options)


def lists(size: int = 24, *, seed: int = 0, candidates: int = 6) -> list[RankingExample]:
    """Relevance 1 for the documents that hold the word `w0`; lengths and pool sizes differ."""
    out = []
    for number in range(size):
        numbers = stream(seed, "list", number)
        pool = int(numbers.integers(3, candidates + 1))
        grades = [1.0] + [0.0] * (pool - 1)
        documents = []
        for grade in grades:
            body = [WORDS[int(place)] for place in numbers.integers(1, 40, size=int(numbers.integers(2, 12)))]
            if grade:
                body[int(numbers.integers(len(body)))] = "w0"
            documents.append(" ".join(body))
        order = numbers.permutation(pool)
        query = WORDS[int(numbers.integers(1, 40))]
        out.append(RankingExample(query, [documents[place] for place in order], [grades[place] for place in order], id=f"q{seed}-{number}"))
    return out


def teacher_scores(examples: list[RankingExample]) -> list[list[float]]:
    """Logits of a teacher that knows the rule, with small differences among the others."""
    return [[4.0 * grade + 0.01 * place for place, grade in enumerate(example.relevance or ())] for example in examples]
