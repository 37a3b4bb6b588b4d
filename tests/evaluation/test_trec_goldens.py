"""trec_eval's own outputs (its test folder) through our evaluation, to the 4 digits that it prints."""

import pytest

from steadyrank.evaluation import Measure, evaluate

NAMES = {  # trec_eval's name -> ours; {k} is the cutoff in the name
    "map": "AP", "Rprec": "Rprec", "bpref": "Bpref", "recip_rank": "RR", "infAP": "infAP", "set_P": "SetP", "set_recall": "SetR",
    "set_map": "SetAP", "set_F": "SetF", "set_relative_P": "SetP(relative=True)", "ndcg": "nDCG", "P_": "P@{k}", "recall_": "R@{k}",
    "ndcg_cut_": "nDCG@{k}", "map_cut_": "AP@{k}", "success_": "Success@{k}", "iprec_at_recall_": "IPrec@{k}",
}  # fmt: skip
LEVELLED = ("AP", "Rprec", "Bpref", "RR", "infAP", "SetP", "SetR", "SetAP", "SetF", "P", "R", "Success", "IPrec")


def ours(name, rel=None):
    stem, _, tail = name.rpartition("_")
    known = NAMES.get(name, "")
    if f"{stem}_" in NAMES and tail.replace(".", "").isdigit():
        known = NAMES[f"{stem}_"].format(k=int(tail) if tail.isdigit() else float(tail))
    family = known.partition("@")[0].partition("(")[0]
    if rel and family in LEVELLED:
        at = "@" + known.partition("@")[2] if "@" in known else ""
        inside = f"rel={rel}" + (",relative=True" if "relative" in known else "")
        return f"{family}({inside}){at}"
    return known


def rows(path):
    return [line.split() for line in path.read_text().splitlines() if line.strip()]


def read(folder, qrels, run, depth=None):
    graded, scores = {}, {}
    for query, _, document, grade in rows(folder / qrels):
        graded.setdefault(query, {})[document] = int(grade)
    for query, _, document, _, score, *_ in rows(folder / run):
        scores.setdefault(query, {})[document] = float(score)
    if depth:  # trec_eval -M: the first documents by its own order
        scores = {q: dict(sorted(sorted(of.items(), reverse=True), key=lambda item: -item[1])[:depth]) for q, of in scores.items()}
    return scores, graded


@pytest.mark.parametrize(
    ("output", "qrels", "run", "depth", "rel"),
    [
        ("out.test", "qrels.test", "results.test", None, None),
        ("out.test.a", "qrels.test", "results.test", None, None),
        ("out.test.aq", "qrels.test", "results.test", None, None),
        ("out.test.aqc", "qrels.test", "results.trunc", None, None),
        ("out.test.aqcM", "qrels.test", "results.trunc", 100, None),
        ("out.test.aql", "qrels.rel_level", "results.test", None, 2),
        ("out.test.meas_params", "qrels.test", "results.test", None, None),
    ],
)
def test_trec_eval_outputs(shared_dir, output, qrels, run, depth, rel):
    folder = shared_dir / "data" / "trec_eval_goldens"
    wanted = [(ours(name, rel), query, float(value)) for name, query, value in rows(folder / output) if ours(name, rel)]
    wanted = [row for row in wanted if row[0]]
    assert len(wanted) >= 20
    scores, graded = read(folder, qrels, run, depth)
    result = evaluate(scores, graded, list(dict.fromkeys(name for name, _, _ in wanted)), ties="trec", resamples=10)
    wrong = []
    for name, query, value in wanted:
        got = result.mean(name) if query == "all" else result.per_query[query][str(Measure.parse(name))]
        if abs(round(got, 4) - value) > 1e-9:
            wrong.append((name, query, got, value))
    assert wrong == []
    assert result.missing == (["302"] if run == "results.trunc" else [])


def test_exponential_gain_reproduces_an_ideal_order_on_cranfield(shared_dir):
    """A sanity check on real judgments: grades as scores reach 1 under every form of nDCG, reversed grades do not."""
    graded = {}
    for query, _, document, grade in rows(shared_dir / "data" / "cranfield" / "cranqrel.trec.txt"):
        graded.setdefault(query, {})[document] = int(grade)
    graded = {query: of for query, of in graded.items() if max(of.values()) > 0}
    best = evaluate(graded, graded, ["nDCG(gain=exp)@10", "nDCG@10", "AP"], resamples=10)
    assert all(best.mean(name) == pytest.approx(1.0) for name in ("nDCG(gain=exp)@10", "nDCG@10"))
    worst = evaluate({q: {d: -g for d, g in of.items()} for q, of in graded.items()}, graded, ["nDCG(gain=exp)@10"], resamples=10)
    assert worst.mean("nDCG(gain=exp)@10") < 0.9
