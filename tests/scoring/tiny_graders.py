"""Tiny random batched scorers: a llama with a chat template that grades, and a joint encoder."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import tiny_classifiers
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from steadyrank.scoring.cross_encoder import CrossEncoder
from steadyrank.scoring.expected_grade import ExpectedGrade
from steadyrank.scoring.joint_encoder import JointEncoder

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
CORPUS = [
    "Grade the documents : the cat sat on a mat . Which animal sat ? Grades for relevance to the request",
    "system user assistant",
] * 20


@lru_cache
def _backend() -> str:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "<|pad|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(CORPUS, trainer)
    return backend.to_str()


def tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    names = {"eos_token": "<|im_end|>", "bos_token": "<|im_start|>", "pad_token": "<|pad|>"}
    made = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(_backend()), model_max_length=4096, **names)
    made.chat_template = template
    return made


def causal(size: int, *, seed: int = 0, positions: int = 4096) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    settings = {"vocab_size": size, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                "intermediate_size": 64, "max_position_embeddings": positions, "initializer_range": 0.3, "pad_token_id": None}  # fmt: skip
    return LlamaForCausalLM(LlamaConfig(**settings)).eval()


def grader(*, template: str | None = TEMPLATE, **options: Any) -> ExpectedGrade:
    words = tokenizer(template)
    return ExpectedGrade.from_model(causal(len(words)), words, **{"width": 3, **options})


def joint(**options: Any) -> JointEncoder:
    teacher = CrossEncoder.from_model(*tiny_classifiers.make("bert"))
    return JointEncoder.from_cross_encoder(teacher, **{"width": 3, **options})
