"""Many lists on Ray Data give what they give in this process."""

import json

import numpy as np
import pyarrow as pa
import pytest

import cluster.truncation as truncation
from engine.errors import DataError
from engine.score.truncation_compare import Request, compare
from engine.score.truncation_lists import LISTS, Coverage
from engine.score.truncation_settings import methods


def batches(n=90, size=10):
    """n lists in record batches: two rankers, gold at random ranks."""
    rng = np.random.default_rng(4)
    rows = []
    for number in range(n):
        scores = np.sort(rng.gamma(2.0, size=12))[::-1]
        gold = rng.random(12) < 0.3
        rows.append(
            {
                "dataset": "d",
                "ranker": "ab"[number * 2 // n],
                "split": None,
                "question_id": f"q{number}",
                "list_id": f"q{number}",
                "doc_ids": [f"x{i}" for i in range(12)],
                "scores": scores.tolist(),
                "gold": gold.tolist(),
                "n_gold": int(gold.sum()),
                "weight": float(gold.any()),
                "tokens": [3] * 12,
            }
        )
    table = pa.Table.from_pylist(rows, schema=LISTS)
    return table.to_batches(max_chunksize=size)


COVERAGE = {("d", ranker): {None: Coverage(lists=45, scored=45)} for ranker in "ab"}
REQUEST = Request(methods(["gapr", "score_threshold", "oracle_f1"], ["score_threshold.threshold=1.5"]), depth=10)


def figures(blocks):
    kept = []
    found = compare(blocks, COVERAGE, REQUEST, keep=lambda part, plan: kept.append(part)).figures
    for cell in found["cells"]:
        for row in [*cell["methods"], *(point for grid in cell["frontier"].values() for point in grid)]:
            row.pop("seconds_per_list")
    return json.loads(json.dumps(found), parse_float=lambda text: round(float(text), 9)), pa.concat_tables(kept)


@pytest.fixture
def many(monkeypatch):
    """A world in which few lists are already many."""
    monkeypatch.setattr(truncation, "IN_PROCESS_LISTS", 20)
    monkeypatch.setattr(truncation, "BATCHES_PER_FILE", 2)


def test_few_lists_start_no_ray(tmp_path):
    import ray

    before = ray.is_initialized()
    with truncation.list_blocks(batches(), [], tmp_path / "lists") as blocks:
        assert len(figures(blocks)[0]["cells"]) == 2
    assert ray.is_initialized() == before
    assert not (tmp_path / "lists").exists()


def test_ray_gives_the_same_figures_in_the_same_order(tmp_path, many, ray_local):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "lists-00099.parquet").write_text("from an earlier comparison")
    with truncation.list_blocks(batches(), [], tmp_path / "lists") as blocks:
        assert isinstance(blocks, truncation.RayBlocks)
        on_ray, rows = figures(blocks)
        assert sum(table.num_rows for table in blocks.tables()) == 90
    written = sorted(path.name for path in (tmp_path / "lists").iterdir())
    assert written == [f"lists-{i:05d}.parquet" for i in range(4)]
    assert rows["list_id"].to_pylist() == [f"q{i}" for i in range(90)]

    files = [str(tmp_path / "lists" / name) for name in written]
    assert truncation._gather([], files, tmp_path / "none") == ([], files)
    here, here_rows = figures(truncation.MemoryBlocks(batches()))
    assert on_ray == here
    assert rows.combine_chunks() == here_rows.combine_chunks()


def test_an_error_in_a_list_is_told_as_in_this_process(tmp_path, many, ray_local):
    table = pa.Table.from_batches(batches())
    scores = table["scores"].to_pylist()
    scores[50] = scores[50][::-1]
    broken = table.set_column(table.column_names.index("scores"), LISTS.field("scores"), [scores])
    with (
        truncation.list_blocks(broken.to_batches(max_chunksize=10), [], tmp_path / "lists") as blocks,
        pytest.raises(DataError, match="list 'q50': the scores must be finite and never rise"),
    ):
        figures(blocks)
