"""The one place where text of users becomes token ids.

Two promises. Any Python string can be scored: lone surrogates and control characters, which tokenizers refuse or hide, are
replaced (`clean`). And no special token comes out of user text: a document that holds `[SEP]` or `<|im_end|>` holds those
characters, not that token. Text without such marks gets exactly the ids that the plain tokenizer gives.

The flag of `tokenizers` that splits special tokens does not help where the marker is also a *word* of the vocabulary, so the ids
themselves are checked, and such a marker is broken apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def clean(text: str) -> str:
    """The text with paired surrogates joined, lone ones replaced by U+FFFD, and control characters by spaces."""
    if _SURROGATES.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if _CONTROLS.search(text):
        text = _CONTROLS.sub(" ", text)
    return text


def is_empty(text: str) -> bool:
    """Whether nothing of the text can be read: only white space, control and invisible characters."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The ids that user text must never give: special tokens, except an unknown-token that has no other role."""
    added = {token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special}
    found = added | set(tokenizer.all_special_ids)
    unknown = tokenizer.unk_token_id
    others = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.sep_token_id, tokenizer.cls_token_id}
    return frozenset(found - {unknown} if unknown not in others else found)


class UserText:
    """Texts -> ids without special tokens, many at once. Works on a copy of the tokenizer, without its truncation and padding."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.tokenizer = tokenizer
        self.forbidden = special_ids(tokenizer)
        self.unknown = tokenizer.unk_token_id
        self._fast: Any = None
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is not None:
            self._fast = type(backend).from_str(backend.to_str())
            self._fast.no_truncation()
            self._fast.no_padding()
            self._fast.encode_special_tokens = True
        names = {str(tokenizer.convert_ids_to_tokens(token_id)) for token_id in self.forbidden}
        self._markers = re.compile(
            "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name) or "(?!)", re.IGNORECASE
        )

    def encode(self, texts: Iterable[str]) -> list[list[int]]:
        """The ids of each text; equal texts are tokenised once."""
        texts = [clean(text) for text in texts]
        unique = list(dict.fromkeys(texts))
        found = dict(zip(unique, self._encode(unique), strict=True))
        for text, ids in found.items():
            if not self.forbidden.isdisjoint(ids):
                found[text] = self._without_markers(text)
        return [found[text] for text in texts]

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        if self._fast is not None:
            return [encoding.ids for encoding in self._fast.encode_batch_fast(list(texts), add_special_tokens=False)]
        return [self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True) for text in texts]

    def _without_markers(self, text: str) -> list[int]:
        """Break every marker in the text apart by spaces; an id that is special even so becomes the unknown token, or goes."""
        broken = self._markers.sub(lambda match: " ".join(match.group()), text)
        ids = self._encode([broken])[0]
        if self.unknown is not None and self.unknown not in self.forbidden:
            return [self.unknown if token_id in self.forbidden else token_id for token_id in ids]
        return [token_id for token_id in ids if token_id not in self.forbidden]
