"""How a list is laid before a scorer that reads several candidates at once: order, windows, markers; and probes of the pool.

Pure functions of records and seeds: no model, no tokens. Every draw comes from a stream named by seed and example id, so two lists of
equal length do not share their orders (in the study that this follows, arXiv 2608.26762, all lists of one length did).

Windows. A prompt holds at most `width` candidates; a rule cuts the order into prompts:

    contiguous:8      8 neighbours in each; the last may hold fewer
    round_robin:8     ceil(n / 8) prompts, dealt like cards; sizes differ by at most one
    sliding:8/4       8 neighbours, the next prompt 4 further; the last is moved back so that it is full, if the list fills one

Markers. `numeric` [1] [2], `letters` [A] [B], `doc` Doc-1 Doc-2, `roman` [i] [ii], `random` three signs drawn for this example and seed.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

from steadyrank import seeds
from steadyrank.errors import ConfigError, InputError, unknown_name
from steadyrank.records import Candidate, Presentation, RankingExample

WINDOW_RULES = ("contiguous", "round_robin", "sliding")
MARKERS = ("numeric", "letters", "doc", "roman", "random")
KINDS = ("shuffle", "within", "jitter", "first_stage", "reverse", "markers")
UNJUDGED = -1.0
_SIGNS = string.ascii_uppercase + string.digits
_ROMAN = ((100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


@dataclass(frozen=True, slots=True)
class Windows:
    """A rule that cuts an order into prompts; `str` gives the text form that `parse_windows` reads."""

    rule: str = "contiguous"
    width: int = 8
    stride: int | None = None

    def __post_init__(self) -> None:
        if self.rule not in WINDOW_RULES:
            raise unknown_name("window rule", self.rule, WINDOW_RULES)
        if self.width < 1:
            raise ConfigError(f"window width is {self.width}; give a whole number from 1")
        if self.rule != "sliding":
            if self.stride is not None:
                raise ConfigError(f"window rule {self.rule!r} takes no stride; write {self.rule}:{self.width}")
        elif self.stride is None or not 1 <= self.stride < self.width:
            raise ConfigError(
                f"sliding windows of width {self.width} have stride {self.stride}; give one from 1 to {self.width - 1} "
                "(a stride of the width is `contiguous`, a larger one would leave candidates out)"
            )

    def __str__(self) -> str:
        return f"{self.rule}:{self.width}" + ("" if self.stride is None else f"/{self.stride}")


def parse_windows(text: str) -> Windows:
    """The rule that `contiguous:8`, `round_robin:8` or `sliding:8/4` names; `sliding:8` moves by half its width."""
    rule, _, sizes = text.strip().partition(":")
    width, _, stride = sizes.partition("/")
    if rule not in WINDOW_RULES:
        raise unknown_name("window rule", rule, WINDOW_RULES)
    if not width.isdecimal() or (stride and not stride.isdecimal()):
        raise ConfigError(f"windows {text!r} hold no width; write contiguous:8, round_robin:8 or sliding:8/4")
    step = int(stride) if stride else max(1, int(width) // 2) if rule == "sliding" else None
    return Windows(rule, int(width), step)


def cut(order: Sequence[int], windows: Windows) -> list[tuple[int, ...]]:
    """The candidates of each prompt, in slot order. Every candidate stands in one prompt; under `sliding` in one or more."""
    order, width, size = tuple(order), windows.width, len(order)
    if windows.rule == "round_robin":
        count = -(-size // width)
        return [order[first::count] for first in range(count)]
    if windows.stride is None:
        return [order[first : first + width] for first in range(0, size, width)]
    if size <= width:
        return [order] if order else []
    starts = [*range(0, size - width, windows.stride), size - width]
    return [order[first : first + width] for first in starts]


def slots_of(order: Sequence[int], windows: Windows) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(slot_K, window_K): where each candidate stands, canonical order; under `sliding` where it stands first."""
    slot, window = [-1] * len(order), [-1] * len(order)
    for number, members in enumerate(cut(order, windows)):
        for place, candidate in enumerate(members):
            if slot[candidate] < 0:
                slot[candidate], window[candidate] = place, number
    return tuple(slot), tuple(window)


def order_of(presentation: Presentation, size: int) -> tuple[int, ...]:
    """The presentation's order of a list of this size, checked to be a permutation."""
    if presentation.order is None:
        return tuple(range(size))
    if sorted(presentation.order) != list(range(size)):
        raise InputError(f"is {presentation.order}, which is no permutation of the {size} candidates", field="order")
    return tuple(presentation.order)


def markers_of(scheme: str, count: int, *, seed: int = 0, example_id: str = "") -> tuple[str, ...]:
    """`count` distinct markers; only `random` reads the seed and the example's id."""
    if scheme not in MARKERS:
        raise unknown_name("marker scheme", scheme, MARKERS)
    if scheme == "random":
        return _random_markers(count, seed, example_id)
    written: dict[str, Callable[[int], str]] = {
        "numeric": lambda number: f"[{number}]",
        "letters": lambda number: f"[{_letters(number)}]",
        "doc": lambda number: f"Doc-{number}",
        "roman": lambda number: f"[{_roman(number)}]",
    }
    return tuple(written[scheme](number) for number in range(1, count + 1))


def presentations(
    example: RankingExample,
    count: int,
    *,
    seed: int,
    windows: str | None = None,
    markers: str | None = None,
    skeleton: str | None = None,
    dummy: str | None = None,
    kind: str = "shuffle",
    reach: float = 2.0,
) -> list[Presentation]:
    """`count` ways to lay the example.

    shuffle:     uniform orders of the whole pool, those of `score_examples(presentations=count)`; companions change with the order.
    within:      shuffled inside the windows of canonical order, so that every candidate keeps its companions; needs `windows`.
    jitter:      first-stage ranks moved by up to `reach` each way, then sorted: local moves, for rules that look at the rank.
    first_stage: canonical order every time (what then differs is noise of the scorer).
    reverse:     canonical order turned round, every time.
    markers:     canonical order, another marker scheme each: the five schemes, then random ones of further seeds.
    """
    if kind not in KINDS:
        raise unknown_name("kind of presentations", kind, KINDS)
    if count < 1:
        raise InputError(f"is {count}; at least one is needed", field="presentations")
    laid = Presentation(windows=windows, markers=markers, skeleton=skeleton, dummy=dummy, seed=seed)
    if kind == "markers":
        return _marker_variants(example, count, laid)
    size = len(example.candidates)
    return [changed(laid, order=_order(example, index, kind, seed=seed, windows=windows, reach=reach, size=size)) for index in range(count)]


def drop(example: RankingExample, *, seed: int) -> tuple[RankingExample, int]:
    """(the example without one candidate, its place). The id stays, so that streams named by it stay."""
    place = _probed_place(example, seed)
    if len(example.candidates) < 2:
        raise InputError(f"of example {example.id!r} has one candidate; dropping it would leave none", field="candidates")
    return example.with_candidates([other for other in range(len(example.candidates)) if other != place]), place


def replace(
    example: RankingExample, reserve: Candidate, *, seed: int, grade: float = UNJUDGED, append: bool = False
) -> tuple[RankingExample, int]:
    """(the example with one candidate replaced, its place); the place is the one that `drop` drops under this seed.

    The reserve stands where the other stood, so that all others keep their slots; `append` puts it last instead (the study's protocol,
    in which everything behind the replaced rank moves up by one).
    """
    place, size = _probed_place(example, seed), len(example.candidates)
    order = [other for other in range(size) if other != place]
    order.insert(size if append else place, place)
    candidates, grades = list(example.candidates), None if example.relevance is None else list(example.relevance)
    candidates[place] = reserve
    if grades is not None:
        grades[place] = grade
    probed = changed(example, candidates=tuple(candidates), relevance=None if grades is None else tuple(grades))
    return probed.with_candidates(order), place


def _probed_place(example: RankingExample, seed: int) -> int:
    return int(seeds.stream(seed, "pool probe", example.id).integers(len(example.candidates)))


def _order(example: RankingExample, index: int, kind: str, *, seed: int, windows: str | None, reach: float, size: int) -> tuple[int, ...]:
    if kind == "shuffle":
        return seeds.permutation(size, seed, "order", example.id, index)
    if kind == "within":
        return _within(example, index, seed, windows)
    if kind == "jitter":
        moves = seeds.stream(seed, "jitter", example.id, index).uniform(-reach, reach, size)
        return tuple(sorted(range(size), key=lambda place: place + moves[place]))
    return tuple(range(size)) if kind == "first_stage" else tuple(reversed(range(size)))


def _within(example: RankingExample, index: int, seed: int, windows: str | None) -> tuple[int, ...]:
    if windows is None:
        raise ConfigError(
            "presentations of kind 'within' need windows, whose members they keep together; give contiguous:8 or round_robin:8"
        )
    rule = parse_windows(windows)
    if rule.rule == "sliding":
        raise ConfigError("presentations of kind 'within' cannot keep companions under sliding windows, which overlap; give another rule")
    order = [0] * len(example.candidates)
    for number, members in enumerate(cut(range(len(order)), rule)):
        drawn = seeds.permutation(len(members), seed, "order within", example.id, index, number)
        for place, choice in zip(members, drawn, strict=True):
            order[place] = members[choice]
    return tuple(order)


def _marker_variants(example: RankingExample, count: int, laid: Presentation) -> list[Presentation]:
    assert laid.seed is not None
    order = tuple(range(len(example.candidates)))
    schemes = [*MARKERS, *["random"] * max(0, count - len(MARKERS))][:count]
    # a further random scheme needs another seed, or it would draw the same markers again
    later = [max(0, index - len(MARKERS) + 1) for index in range(count)]
    return [changed(laid, order=order, markers=scheme, seed=laid.seed + more) for scheme, more in zip(schemes, later, strict=True)]


def _random_markers(count: int, seed: int, example_id: str) -> tuple[str, ...]:
    if count > len(_SIGNS) ** 3:
        raise ConfigError(f"{count} random markers do not exist; there are {len(_SIGNS) ** 3}")
    numbers = seeds.stream(seed, "markers", example_id)
    found: dict[str, None] = {}
    while len(found) < count:
        found["[" + "".join(_SIGNS[sign] for sign in numbers.integers(len(_SIGNS), size=3)) + "]"] = None
    return tuple(found)


def _letters(number: int) -> str:
    """1 is A, 26 is Z, 27 is AA."""
    text = ""
    while number:
        number, sign = divmod(number - 1, 26)
        text = string.ascii_uppercase[sign] + text
    return text


def _roman(number: int) -> str:
    text = ""
    for value, sign in _ROMAN:
        text, number = text + sign * (number // value), number % value
    return text
