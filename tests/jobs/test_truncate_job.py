"""`stopgap truncate` from files to table, page, tables and truncated runs."""

import json
import sys
from pathlib import Path

import ir_measures
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from ir_measures import SetF, SetP, SetR

from cluster.prepare import prepared
from engine.config import ExperimentConfig
from engine.records import Hit, Passage, Question, StopReason, SupportingFact, Trace, Turn
from engine.rows import trace_to_row
from engine.truncate import METHODS, ORACLES
from jobs.__main__ import main
from jobs.truncate import truncate

SHARED = Path(__file__).parents[3] / "shared" / "data"
RUN = """\
q1 Q0 a 1 9.0 bm25
q1 Q0 b 2 8.9 bm25
q1 Q0 c 3 1.0 bm25
q2 Q0 c 1 5.0 bm25
q2 Q0 c 2 4.9 bm25
q2 Q0 a 3 4.0 bm25
q3 Q0 a 1 5.0 bm25
q4 Q0 a 1 2.0 bm25
"""
QRELS = "q1 0 a 1\nq1 0 b 1\nq2 0 c 2\nq2 0 d 1\nq3 0 a 0\nq5 0 a 1\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "bm25.run").write_text(RUN)
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path


@pytest.fixture
def invoke(files, monkeypatch):
    """(arguments) -> standard output of a comparison in the folder of the files."""
    monkeypatch.chdir(files)

    def call(*arguments):
        told = CliRunner().invoke(truncate, list(arguments), catch_exceptions=False)
        assert told.exit_code == 0, told.output
        return told.stdout

    return call


@pytest.fixture
def mistake(files, monkeypatch, capfd):
    """(arguments) -> the one line that a mistake gives."""
    monkeypatch.chdir(files)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["stopgap", "truncate", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        told = capfd.readouterr()
        assert stopped.value.code == 2
        assert told.out == ""
        assert told.err.count("\n") == 1
        return told.err

    return call


def test_a_run_against_its_judgements(invoke, files):
    shown = invoke(
        "--run", "bm25=bm25.run", "--qrels", "toy=qrels.txt", "--methods", "adaptive_k,fixed", "fixed.k=1", "--out", "o"
    )
    assert "toy · bm25" in shown
    assert "left out, no list: 1 of 3 queries with gold" in shown
    assert "left out, query without judgements: 1 of 4 lists" in shown
    assert "left out, no relevant document: 1 queries" in shown
    assert "documents that came twice in their list, kept at the better place: 1" in shown
    assert "report: o/report.html" in shown
    (cell,) = json.loads((files / "o" / "metrics.json").read_text())["cells"]
    assert cell["coverage"] == {
        "lists": 4,
        "scored": 2,
        "missing": 1,
        "unjudged": 1,
        "no_gold": 1,
        "duplicates": 1,
        "reordered": 0,
    }
    gap, fixed = cell["methods"]
    # q1 keeps a, b: F1 1. q2 keeps c of c, d: F1 2/3.
    assert gap["f1"]["mean"] == pytest.approx(5 / 6)
    assert fixed["setting"] == "fixed k=1"
    assert fixed["recall"]["mean"] == pytest.approx(0.5)
    rows = pq.read_table(files / "o" / "methods.parquet").to_pylist()
    assert [(row["setting"], row["lists"], row["asked"]) for row in rows] == [("adaptive_k", 2, 3), ("fixed k=1", 2, 3)]
    assert rows[0]["f1"] == gap["f1"]["mean"]
    assert rows[0]["f1_wins"] == gap["against"]["f1"]["higher"]
    cuts = pq.read_table(files / "o" / "cuts.parquet")
    assert cuts.num_rows == 8
    assert cuts.filter(pa.compute.equal(cuts["list_id"], "q4"))["f1"].null_count == 2
    assert sorted(path.name for path in (files / "o").iterdir()) == [
        "cuts.parquet",
        "methods.parquet",
        "metrics.json",
        "report.html",
    ]


def test_the_help_page_names_every_method():
    shown = CliRunner().invoke(truncate, ["--help"]).stdout
    assert all(name in shown for name in (*METHODS, *ORACLES))


def test_without_a_folder_only_the_table_is_shown(invoke, files):
    assert "gapr" in invoke("--run", "bm25.run", "--qrels", "qrels.txt", "--methods", "gapr")
    assert sorted(path.name for path in files.iterdir()) == ["bm25.run", "qrels.txt"]


def test_emitted_runs_score_the_same_elsewhere(invoke, files):
    invoke(
        *("--run", "bm25=bm25.run", "--qrels", "toy=qrels.txt", "--emit", "cut"),
        *("--methods", "adaptive_k,top_p", "--out", "o"),
    )
    assert sorted(path.name for path in (files / "cut").iterdir()) == ["toy-bm25-adaptive_k.run", "toy-bm25-top_p.run"]
    qrels = list(ir_measures.read_trec_qrels(QRELS))
    cuts = pq.read_table(files / "o" / "cuts.parquet").to_pylist()
    for method in ("adaptive_k", "top_p"):
        text = (files / "cut" / f"toy-bm25-{method}.run").read_text()
        assert {line.split()[-1] for line in text.splitlines()} == {f"bm25-{method}"}
        run = list(ir_measures.read_trec_run(text))
        assert {item.query_id for item in run} == {"q1", "q2", "q3", "q4"}
        theirs = {(m.query_id, m.measure): m.value for m in ir_measures.iter_calc([SetP, SetR, SetF], qrels, run)}
        ours = {row["list_id"]: row for row in cuts if row["method"] == method}
        for query in ("q1", "q2"):
            row = ours[query]
            assert theirs[query, SetP] == pytest.approx(row["precision"])
            assert theirs[query, SetR] == pytest.approx(row["recall"])
            assert theirs[query, SetF] == pytest.approx(row["f1"])


def test_parameters_are_fitted_on_one_run_and_reported_on_another(invoke, files):
    (files / "train.run").write_text("t1 Q0 a 1 3 x\nt1 Q0 b 2 2 x\nt1 Q0 c 3 1 x\n")
    (files / "train.txt").write_text("t1 0 a 1\nt1 0 b 1\n")
    shown = invoke(
        *("--run", "bm25=bm25.run", "--qrels", "toy=qrels.txt", "--methods", "fixed", "--out", "o"),
        *("--fit-run", "bm25=train.run", "--fit-qrels", "toy=train.txt"),
    )
    assert "parameters: best Macro-F1 on train.run; reported on: bm25.run" in " ".join(shown.split())
    figures = json.loads((files / "o" / "metrics.json").read_text())
    (row,) = figures["cells"][0]["methods"]
    assert (row["setting"], row["fit"]["f1"], row["f1"]["n"]) == ("fixed k=2", 1.0, 2)
    assert figures["overlap"] == 0
    assert figures["cells"][0]["coverage"]["missing"] == 1


def test_fitting_on_reported_queries_is_told(invoke, files):
    (files / "same.run").write_text(RUN)
    shown = invoke(
        *("--run", "bm25=bm25.run", "--qrels", "toy=qrels.txt", "--methods", "fixed", "--fit-run", "bm25=same.run")
    )
    assert "4 queries are both fitted and reported on" in " ".join(shown.split())


def test_a_beir_folder_gives_judgements_by_split(invoke, files):
    (files / "beir" / "qrels").mkdir(parents=True)
    header = "query-id\tcorpus-id\tscore\n"
    (files / "beir" / "qrels" / "train.tsv").write_text(f"{header}q1\ta\t1\nq1\tb\t1\n")
    (files / "beir" / "qrels" / "test.tsv").write_text(f"{header}q2\tc\t1\nq9\tc\t1\n")
    invoke("--run", "beir/bm25=bm25.run", "--qrels", "beir/", "--fit", "train", "--methods", "fixed", "--out", "o")
    invoke("--run", "bm25=bm25.run", "--qrels", "beir", "--split", "test", "--methods", "fixed", "--out", "p")
    (fitted,) = json.loads((files / "o" / "metrics.json").read_text())["cells"]
    assert fitted["methods"][0]["setting"] == "fixed k=2"
    assert fitted["splits"] == ["no split", "test"]
    (cell,) = json.loads((files / "p" / "metrics.json").read_text())["cells"]
    assert (cell["splits"], cell["lists"], cell["coverage"]["missing"]) == (["test"], 1, 1)


def test_a_parquet_run_and_tokens_of_a_corpus(invoke, files):
    pq.write_table(
        pa.table({"qid": ["q1", "q1", "q2"], "doc_id": ["a", "z", "c"], "score": [2.0, 1.0, 3.0]}),
        files / "dense.parquet",
    )
    texts = {"a": "one two", "z": "one", "c": "one two three"}
    lines = [json.dumps({"id": i, "title": "T", "text": text}) for i, text in texts.items()]
    (files / "corpus.jsonl").write_text("\n".join(lines))
    shown = invoke(
        *("--run", "dense=dense.parquet", "--run", "bm25=bm25.run", "--qrels", "qrels.txt"),
        *("--methods", "fixed", "--corpus", "corpus.jsonl", "--out", "o"),
    )
    dense, bm25 = json.loads((files / "o" / "metrics.json").read_text())["cells"]
    assert (dense["dataset"], dense["ranker"]) == ("qrels", "dense")
    assert dense["methods"][0]["tokens"] == {"mean": 5.0, "n": 2, "asked": 2}
    assert "tokens" in shown
    # A title of 1 token; texts of 2, 1 and 4 at four bytes each. Document b has no text, and so its list no tokens.
    assert bm25["methods"][0]["tokens"] == {"mean": 8.0, "n": 1, "asked": 2}


@pytest.fixture
def folder(tmp_path):
    """A run folder with two questions: one of two retrievals in dev, one without gold in train."""
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "q1", "question": "Who?"}\n{"id": "q2", "question": "Where?"}\n')
    config = ExperimentConfig.model_validate(
        {
            "name": "made",
            "runs_dir": str(tmp_path / "runs"),
            "questions": {"path": str(questions)},
            "retriever": {"kind": "synthetic"},
            "models": {"main": {"kind": "scripted"}},
            "truncate": {"kind": "fixed"},
        }
    )

    def turn(index, kept, *docs):
        hits = tuple(Hit(Passage(doc, doc.upper(), ""), rank, 9.0 - rank) for rank, doc in enumerate(docs, 1))
        return Turn(index, query="?", hits=hits, kept=kept)

    facts = (SupportingFact("A", "a"), SupportingFact("B", "b"))
    traces = [
        Trace(
            Question("q1", "Who?", (), facts, {"split": "dev"}),
            (turn(0, 1, "a", "x", "b"), turn(1, 1, "b", "x")),
            "Ana",
            "Ana",
            StopReason.BUDGET,
        ),
        Trace(Question("q2", "Where?", (), (), {"split": "train"}), (turn(0, 1, "a"),), "", "", StopReason.BUDGET),
    ]
    with prepared(config) as ready:
        ready.create()
        ((shard, shard_id),) = ready.missing()
        ready.run.commit(shard, shard_id, [trace_to_row(trace) for trace in traces], [])
        return ready.run


def test_every_retrieval_of_a_run_folder_is_a_list(invoke, folder, files):
    shown = invoke(folder.location, "--methods", "fixed,oracle_f1", "fixed.k=1", "--emit", "cut", "--out", "o")
    assert f"{folder.name} · synthetic" in shown
    assert "2 lists of 1 questions scored" in shown
    (cell,) = json.loads((files / "o" / "metrics.json").read_text())["cells"]
    assert (cell["lists"], cell["questions"], cell["reachable"]) == (2, 1, 2)
    fixed, oracle = cell["methods"]
    assert fixed["recall"]["mean"] == 0.75  # a of a and b, then b, which alone was missing
    assert oracle["complete"]["mean"] == 1.0
    (emitted,) = (files / "cut").glob("*fixed.run")
    lines = [line.split()[:3] for line in emitted.read_text().splitlines()]
    assert lines == [["q1/0", "Q0", "a"], ["q1/1", "Q0", "b"], ["q2/0", "Q0", "a"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to compare: give folders of `stopgap run`, or --run RANKER=FILE and --qrels FILE"),
        (["--run", "bm25=bm25.run"], "judgements of its data set are needed, --qrels gives none"),
        (["--run", "x/bm25=bm25.run", "--qrels", "toy=qrels.txt"], "--qrels gives toy; write --run DATASET/bm25="),
        (["--run", "bm25=none.run", "--qrels", "qrels.txt"], "none.run: file not found"),
        (["--run", "bm25=qrels.txt", "--qrels", "qrels.txt"], "qrels.txt, line 1: query, Q0, document, rank, score"),
        (["--run", "bm25=bm25.run", "--qrels", "bm25.run"], "found 6 columns"),
        (["--run", "a=bm25.run", "--run", "a=bm25.run", "--qrels", "qrels.txt"], "'a' on 'qrels' is given twice"),
        (["bm25.run"], "bm25.run: a run folder or a Parquet file of lists was needed; a run file is given as --run"),
        (["nowhere"], "nowhere: a run folder or a Parquet file of lists was needed"),
        (["beir"], "beir is a BEIR folder: it has judgements but no ranked lists; give a run of its queries, `--run"),
        (["--run", "bm25=bm25.run", "--qrels", "qrels.txt", "--methods", "gap"], "unknown truncation method 'gap'"),
        (["--run", "bm25=bm25.run", "--qrels", "qrels.txt", "gapr.etta=1"], "unknown parameter 'gapr.etta'"),
        (["--run", "bm25=bm25.run", "--qrels", "qrels.txt", "--fit", "train"], "no list to fit on in train"),
        (["--run", "bm25=bm25.run", "--qrels", "other.txt"], "none of the lists to report on has gold; check that"),
        (["--run", "bm25=bm25.run", "--qrels", "qrels.txt", "--max-kept", "3"], "bounds what a fit chooses"),
        (
            ["--run", "bm25=bm25.run", "--qrels", "qrels.txt", "--fit", "x", "--objective", "complete"],
            "bound it with --max-kept K",
        ),
        (["--run", "a=bm25.run", "--qrels", "qrels.txt", "--fit-run", "b=bm25.run"], "no --run of ranker 'b'"),
        (["--run", "a=bm25.run", "--qrels", "qrels.txt", "--address", "auto"], "name it with --out"),
        (["--run", "a=bm25.run", "--qrels", "qrels.txt", "--depth", "0"], "--depth"),
    ],
)
def test_mistakes_are_one_line(mistake, files, arguments, said):
    (files / "beir" / "qrels").mkdir(parents=True)
    (files / "other.txt").write_text("topic-1 0 a 1\n")
    assert said in mistake(*arguments)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared data folder {SHARED} is not on this machine")
def test_robust04(invoke, files):
    data = SHARED / "robust04_runs"
    invoke(
        *("--run", f"bm25={data / 'bm25.test.run.gz'}", "--qrels", f"robust04={data / 'qrels_relevant_only.txt.gz'}"),
        *("--methods", "gapr,fixed", "--depth", "30", "--out", "o", "--emit", "cut"),
    )
    (cell,) = json.loads((files / "o" / "metrics.json").read_text())["cells"]
    assert (cell["coverage"]["lists"], cell["coverage"]["scored"], cell["coverage"]["unjudged"]) == (50, 49, 1)
    judged = ir_measures.read_trec_qrels(str(data / "qrels_relevant_only.txt.gz"))
    run = list(ir_measures.read_trec_run(str(files / "cut" / "robust04-bm25-gapr.run")))
    found = {item.query_id for item in run}
    qrels = [item for item in judged if item.query_id in found]
    theirs = ir_measures.calc_aggregate([SetP, SetR, SetF], qrels, run)
    row = cell["methods"][0]
    for measure, name in ((SetP, "precision"), (SetR, "recall"), (SetF, "f1")):
        assert theirs[measure] == pytest.approx(row[name]["mean"]), name
