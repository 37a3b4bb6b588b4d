"""Tiny random sequence classifiers of several architectures with real tokenizers, made in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    ElectraConfig,
    ElectraForSequenceClassification,
    LlamaConfig,
    LlamaForSequenceClassification,
    ModernBertConfig,
    ModernBertForSequenceClassification,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
)

CORPUS = [
    "which city is the capital of the country and how many people live there",
    "a second and longer document that is read by one more reader, yes or no",
    "overflow of a buffer allows remote attackers to execute code; bananas are yellow",
] * 3
ENCODERS = ("bert", "roberta", "xlm-roberta", "distilbert", "electra", "modernbert")
DECODERS = ("llama", "qwen2")


def wordpiece() -> PreTrainedTokenizerFast:
    """A lowercasing WordPiece tokenizer with BERT's template and segment ids."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.decoder = decoders.WordPiece()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names)


def byte_bpe(kind: str) -> PreTrainedTokenizerFast:
    """Byte-level BPE: RoBERTa's doubled separator, or a decoder's plain joining with an end token and no pad token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>"] if kind == "roberta" else ["<|begin|>", "<|end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if kind == "roberta":
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        names = {
            "bos_token": "<s>",
            "cls_token": "<s>",
            "eos_token": "</s>",
            "sep_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
        }
    else:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|begin|> $A", pair="<|begin|> $A <|end|> $B <|end|>", special_tokens=[("<|begin|>", 0), ("<|end|>", 1)]
        )
        names = {"bos_token": "<|begin|>", "eos_token": "<|end|>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"], **names)


_SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "num_labels": 1}


def _config(kind: str, size: int, positions: int) -> tuple[Any, Any]:
    same = {**_SIZES, "vocab_size": size, "max_position_embeddings": positions}
    decoder = {**same, "num_key_value_heads": 1, "pad_token_id": None, "bos_token_id": 0, "eos_token_id": 1}
    roberta = {**same, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1}
    return {
        "bert": (BertConfig, same, BertForSequenceClassification),
        "electra": (ElectraConfig, {**same, "embedding_size": 16}, ElectraForSequenceClassification),
        "distilbert": (
            DistilBertConfig,
            {
                "vocab_size": size,
                "dim": 16,
                "n_layers": 2,
                "n_heads": 2,
                "hidden_dim": 32,
                "num_labels": 1,
                "max_position_embeddings": positions,
            },
            DistilBertForSequenceClassification,
        ),
        "roberta": (RobertaConfig, roberta, RobertaForSequenceClassification),
        "xlm-roberta": (XLMRobertaConfig, roberta, XLMRobertaForSequenceClassification),
        "modernbert": (
            ModernBertConfig,
            {**same, "local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 1, "cls_token_id": 0, "sep_token_id": 2},
            ModernBertForSequenceClassification,
        ),
        "llama": (LlamaConfig, decoder, LlamaForSequenceClassification),
        "qwen2": (Qwen2Config, decoder, Qwen2ForSequenceClassification),
    }[kind][:3]  # type: ignore[return-value]


@lru_cache
def _tokenizer(kind: str) -> PreTrainedTokenizerFast:
    if kind in ("bert", "distilbert", "electra"):
        return wordpiece()
    return byte_bpe("decoder" if kind in DECODERS else "roberta")


def make(kind: str, *, positions: int = 80, labels: int = 1, seed: int = 0) -> tuple[Any, PreTrainedTokenizerFast]:
    """(model, tokenizer); weights are large enough that scores of different texts differ clearly."""
    import copy

    tokenizer = copy.deepcopy(_tokenizer(kind))
    config_class, settings, model_class = _config(kind, len(tokenizer), positions)
    torch.manual_seed(seed)
    model = model_class(config_class(**{**settings, "num_labels": labels}))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0.0, 0.3)
    return model.eval(), tokenizer
