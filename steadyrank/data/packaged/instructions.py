"""The wordings of the instructions, one entry a family: some are seen in training, some are held out.

Queries, documents and labels of the collection are real; only these sentences are templates. `seen` wordings are drawn for train, valid,
test and shifted lists; `held_out` ones only for the split `reworded`, which repeats the test lists under wordings that no
training list had, so the drop is a paired difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steadyrank import seeds
from steadyrank.errors import unknown_name


@dataclass(frozen=True)
class Wordings:
    """The templates of one family; `{slot}` is filled from the example."""

    seen: tuple[str, ...]
    held_out: tuple[str, ...]


WORDINGS: dict[str, Wordings] = {
    "cwe/specific": Wordings(
        (
            "Find the weakness entry that most precisely names the root cause of this vulnerability.",
            "Rank weakness entries by how exactly they describe the flaw behind this report; prefer the most specific entry.",
            "Which weakness should this vulnerability be filed under? The exact, most specific entry comes first.",
        ),
        (
            "I am triaging this report and need its narrowest fitting weakness class on top.",
            "Classify the flaw as finely as the catalogue allows.",
        ),
    ),
    "cwe/general": Wordings(
        (
            "Find the broader weakness category one level above the exact flaw of this vulnerability.",
            "Rank weakness entries for a summary by category: the parent class of the exact weakness first, not the weakness itself.",
            "Which more general weakness covers this vulnerability? Prefer the class directly above the exact entry.",
        ),
        (
            "For a management overview, group this report under the next wider weakness class.",
            "Step up one level: which umbrella weakness contains this flaw?",
        ),
    ),
    "cwe/impact": Wordings(
        (
            "Find weaknesses related to this vulnerability whose documented consequences include: {impact}.",
            "Only weaknesses that fit this report and can lead to '{impact}' are relevant.",
            "Rank the related weakness entries that list '{impact}' as an impact; without that impact even exact entries do not count.",
        ),
        (
            "We care about one outcome only, {impact}: which weaknesses of this kind bring it about?",
            "Filter the fitting weaknesses down to those that result in {impact}.",
        ),
    ),
    "attack/technique": Wordings(
        (
            "Identify the exact adversary technique that this behaviour is an instance of.",
            "Rank technique descriptions by how precisely they match the observed behaviour; the most specific technique first.",
            "Which attack technique or sub-technique is shown in this report sentence?",
        ),
        (
            "Tag this sentence from a threat report with its closest technique.",
            "Map the activity to the narrowest matching technique entry.",
        ),
    ),
    "attack/parent": Wordings(
        (
            "Identify the broader parent technique that contains the behaviour, not the sub-technique itself.",
            "Rank techniques one level above the exact match first: the general technique of which this behaviour is a variant.",
            "For a high-level summary, find the general technique under which this sub-technique is filed.",
        ),
        (
            "Roll this activity up to the technique that its sub-technique belongs to.",
            "Name the umbrella technique; the precise variant is second best.",
        ),
    ),
    "attack/mitigation": Wordings(
        (
            "Find mitigations that defend against this behaviour. Descriptions of the attack itself are not relevant.",
            "Which security measures would prevent or limit what is described? Rank countermeasures only.",
            "Rank the mitigations that apply to the technique behind this sentence; attack descriptions and detections do not count.",
        ),
        (
            "What should a defender put in place to stop this?",
            "List hardening steps against this activity, leaving out text that merely explains the attack.",
        ),
    ),
    "attack/detection": Wordings(
        (
            "Find detection analytics that would notice this behaviour on {platform}.",
            "Rank detection strategies for this activity; those written for {platform} come first, those for other platforms after.",
            "How could a monitoring team on {platform} detect this? Attack descriptions and mitigations are not relevant.",
        ),
        ("We run {platform}: which analytic would alert on this?", "Give the {platform} detection logic that catches the activity."),
    ),
    "tools": Wordings(
        (
            "Select the tool that should be called to fulfil the user's request.",
            "Rank the functions by whether calling them answers the request.",
            "Which API function serves this request?",
        ),
        ("Pick the one function an assistant ought to invoke here.", "Choose the right call for what the user wants."),
    ),
    "icd/code": Wordings(
        (
            "Find the diagnosis code that this clinical term must be coded to.",
            "Rank classification entries by how exactly they cover the condition; the precise code first.",
            "Which entry of the disease classification is the correct code for this term?",
        ),
        ("Assign the best-fitting diagnosis code.", "Code this condition as precisely as possible."),
    ),
    "icd/broader": Wordings(
        (
            "Find the category one level above the exact diagnosis code for this clinical term.",
            "For aggregate statistics, rank the parent category of the condition first, before its exact code.",
            "Which broader category of the classification contains the code for this term?",
        ),
        ("Roll the condition up to the heading that its code stands under.", "Give the wider category, not the detailed code."),
    ),
    "scholar": Wordings(
        (
            "Find research papers about this topic.",
            "Rank abstracts by whether the paper belongs to the given topic; papers on a narrower sub-topic count, a little less.",
            "Which papers would a librarian file under this subject heading?",
        ),
        ("Collect reading material on this subject.", "Show papers a researcher in this area has bookmarked."),
    ),
    "opinion/positive": Wordings(
        (
            "Find statements with a positive opinion; the more positive, the higher.",
            "Rank praise first.",
            "Which sentences speak most favourably?",
        ),
        ("Show me what people liked.", "Put the happiest reactions on top."),
    ),
    "opinion/negative": Wordings(
        (
            "Find statements with a negative opinion; the more negative, the higher.",
            "Rank criticism first.",
            "Which sentences speak most unfavourably?",
        ),
        ("Show me what people disliked.", "Put the harshest reactions on top."),
    ),
    "opinion/neutral": Wordings(
        (
            "Find factual statements without opinion; strong praise or criticism is not relevant.",
            "Rank neutral sentences first.",
            "Which sentences take no side?",
        ),
        ("Leave out praise and complaint: what is merely stated?", "Put the most even-handed sentences on top."),
    ),
    "lexical/hypernym": Wordings(
        ("Find the more general concept of which this is a kind.", "Rank the broader term first."), ("What is this a type of?",)
    ),
    "lexical/hyponym": Wordings(
        ("Find more specific kinds of this concept.", "Rank the narrower terms first."), ("Name a subtype of this.",)
    ),
    "lexical/meronym": Wordings(
        ("Find the parts or members of this.", "Rank concepts that are a component of the given one first."), ("What is it made up of?",)
    ),
    "lexical/holonym": Wordings(
        ("Find the whole of which this is a part or member.", "Rank the containing whole first."), ("What does this belong to?",)
    ),
    "lexical/antonym": Wordings(("Find the concept of opposite meaning.", "Rank the antonym first."), ("What is the contrary of this?",)),
    "reader": Wordings(
        ("Find the passage that answers the question.", "Rank passages by whether they contain the answer."),
        ("Where is the answer stated?",),
    ),
}


def family(source: str) -> str:
    """The entry of WORDINGS for a source: its own, or its domain's (`tools/live_simple` -> `tools`)."""
    name = source if source in WORDINGS else source.split("/")[0]
    if name not in WORDINGS:
        raise unknown_name("instruction family", source, WORDINGS)
    return name


def wording(source: str, key: str, *, seed: int, slots: Mapping[str, str], held_out: bool = False) -> tuple[str, int]:
    """The instruction of this base query and which template it is; drawn by a named stream."""
    name = family(source)
    options = WORDINGS[name].held_out if held_out else WORDINGS[name].seen
    place = int(seeds.digest(seed, "wording", held_out, name, key) / 2.0**64 * len(options))
    return options[place].format(**slots), place
