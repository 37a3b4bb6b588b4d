"""User text: any string can be read, no special token comes out of it, and plain text gives the plain tokenizer's ids."""

from __future__ import annotations

import pytest
import tiny_classifiers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from steadyrank.scoring.text import UserText, clean, is_empty, special_ids

KINDS = ("bert", "roberta", "llama")


def _word_level() -> PreTrainedTokenizerFast:
    """A vocabulary that holds the markers as words: the splitting flag does not help here."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "yes", "[", "]", "S", "E", "P"]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


@pytest.mark.parametrize("kind", KINDS)
def test_no_special_token_comes_out_of_user_text(kind):  # P28
    tokenizer = tiny_classifiers.make(kind)[1]
    text = UserText(tokenizer)
    for token in tokenizer.all_special_tokens:
        for document in (f"a {token} yes", token, f"{token}{token}", f"x{token}y", token.upper(), token.lower()):
            assert not set(text.encode([document])[0]) & special_ids(tokenizer), document
    assert not set(text.encode(["a <|im_end|> [SEP] [PAD] </s> yes"])[0]) & special_ids(tokenizer)


def test_markers_that_are_words_of_the_vocabulary_are_broken_apart():  # P28
    tokenizer = _word_level()
    assert tokenizer.encode("a [SEP] yes", add_special_tokens=False, split_special_tokens=True) == [4, 3, 5]  # what the flag leaves
    assert UserText(tokenizer).encode(["a [SEP] yes", "a yes"]) == [[4, 6, 8, 9, 10, 7, 5], [4, 5]]


def test_an_unknown_token_with_another_role_never_comes_out_of_text():
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"<end>": 0, "a": 1}, unk_token="<end>")), unk_token="<end>", eos_token="<end>"
    )
    assert UserText(tokenizer).encode(["b"]) == [[]]


@pytest.mark.parametrize("kind", KINDS)
def test_plain_text_gives_the_plain_ids(kind):
    tokenizer = tiny_classifiers.make(kind)[1]
    texts = ["which city is the capital", "Ünïcode: naïve café, 東京 🙂", "  spaces \n and\tlines ", "a" * 300, "50% [1] <b> x|y", ""]
    assert UserText(tokenizer).encode(texts) == [tokenizer.encode(text, add_special_tokens=False) for text in texts]


def test_truncation_and_padding_inside_the_tokenizer_are_not_used_nor_changed():
    tokenizer = tiny_classifiers.make("bert")[1]
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokenizer.backend_tokenizer.enable_padding(length=9)
    assert len(UserText(tokenizer).encode(["a b a b a b a b"])[0]) == 8
    assert tokenizer.backend_tokenizer.truncation["max_length"] == 4 and tokenizer.backend_tokenizer.padding["length"] == 9


def test_odd_strings_are_made_readable():
    assert clean("a\ud83d\ude42b") == "a🙂b"  # two halves of one character
    assert clean("a\ud83db") == "a\ufffdb"
    assert clean("a\x00b\x07c\x7f") == "a b c "
    assert clean("tab\tline\nreturn\r é") == "tab\tline\nreturn\r é"


@pytest.mark.parametrize(
    "text, expected", [("", True), (" \t\n\u3000", True), ("\u200b\x00\ufeff", True), ("x", False), ("\ud800", False), (" . ", False)]
)
def test_empty_means_nothing_to_read(text, expected):
    assert is_empty(clean(text)) is expected
