"""`stopgap rollouts import`: its tables, its report and its errors."""

import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from engine.data.rollout_anomalies import ANOMALIES, DISAGREEMENTS
from engine.errors import DataError
from engine.stopping.states import read_states
from jobs.rollouts import import_rollouts, rollouts

SEARCHED = "<search> film </search>\n\n<information>Ana Bel</information>\n\n<answer> Ana Bel </answer>"


def file_of(tmp_path, *records):
    path = tmp_path / "rollouts.jsonl"
    path.write_text("".join(json.dumps({"question": "Q?", "golden_answers": ["Ana Bel"]} | r) + "\n" for r in records))
    return str(path)


def test_every_rollout_becomes_states_and_every_oddity_a_row(tmp_path):
    path = file_of(
        tmp_path,
        {"id": "1", "run": "a", "response": SEARCHED, "pred": "Ana Bel"},
        {"id": "1", "run": "b", "response": "<information>x", "pred": "y"},
        {"id": "2", "run": "a", "response": "<information>x<information>y"},
    )
    out = tmp_path / "new" / "tables"
    done = CliRunner().invoke(rollouts, ["import", path, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "a: 2 rollouts, 3 states" in done.output
    assert "self_written_information       2 rollouts      2 times" in done.output
    assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*.*")) == [
        "a/states.parquet",
        "anomalies.parquet",
        "b/states.parquet",
        "disagreements.parquet",
        "report.json",
    ]
    assert [(s.question_id, s.state) for s in read_states(out / "a" / "states.parquet")] == [
        ("1", 0),
        ("1", 1),
        ("2", 0),
    ]
    odd = pq.read_table(out / "anomalies.parquet")
    assert odd.schema == ANOMALIES
    assert [(row["run"], row["question_id"], row["kind"]) for row in odd.to_pylist()] == [
        ("b", "1", "self_written_information"),
        ("b", "1", "no_answer"),
        ("a", "2", "self_written_information"),
        ("a", "2", "no_answer"),
    ]
    differing = pq.read_table(out / "disagreements.parquet")
    assert differing.schema == DISAGREEMENTS
    assert [(row["field"], row["file"], row["transcript"]) for row in differing.to_pylist()] == [("pred", "y", "")]
    report = json.loads((out / "report.json").read_text())
    assert report["rollouts"] == {"a": 2, "b": 1}
    assert report["states"] == {"a": 3, "b": 1}
    assert report["anomalies"]["no_answer"]["times"] == 2
    assert report["disagreements"] == {"pred": 1}


def test_a_folder_in_use_and_a_file_without_rollouts_are_refused(tmp_path):
    path = file_of(tmp_path, {"id": "1", "response": SEARCHED})
    with pytest.raises(DataError, match="is not empty; name a new folder with --out"):
        import_rollouts(path, str(tmp_path))
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(DataError, match="holds no rollout"):
        import_rollouts(str(empty), str(tmp_path / "out"))
    with pytest.raises(DataError, match=r"run '\.\./x' cannot name a folder"):
        import_rollouts(file_of(tmp_path, {"id": "1", "run": "../x", "response": ""}), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
