"""Hugging Face data sets: how the path is read, streamed and refused. The hub itself is stood in for."""

from collections.abc import Iterator
from typing import Any

import datasets
import pytest

from engine.data import corpus_digest, read_corpus, read_questions
from engine.data.hub import is_hub, rows
from engine.errors import DataError

ROWS = [{"id": "q1", "question": "Who?", "golden_answers": ["A"]}, {"id": "q2", "question": "What?", "metadata": None}]


class Calls(list[tuple[Any, ...]]):
    """Arguments that load_dataset was called with."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()

    def load_dataset(name: str, config: str | None, *, split: str | None, streaming: bool) -> Any:
        calls.append((name, config, split, streaming))
        if name == "no/such":
            raise datasets.exceptions.DatasetNotFoundError("Dataset 'no/such' doesn't exist on the Hub\nor elsewhere")
        if name == "breaks/midway":
            return breaking()
        stream = datasets.Dataset.from_list(CORPUS if name == "a/corpus" else ROWS).to_iterable_dataset()
        if split is not None:
            return stream
        names = ["train", "dev"] if name == "two/splits" else ["test"]
        return datasets.IterableDatasetDict(dict.fromkeys(names, stream))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return calls


CORPUS = [{"_id": "d1", "title": "T", "text": "x"}, {"_id": "d2", "title": "U", "text": "y"}]


def breaking() -> Iterator[dict[str, Any]]:
    yield ROWS[0]
    raise ConnectionError("gone")


def test_which_paths_are_data_sets() -> None:
    assert is_hub("hf:a/b")
    assert not is_hub("hf://datasets/a/b/x.jsonl")
    assert not is_hub("data/hf:x")


@pytest.mark.parametrize(
    ("path", "split", "asked"),
    [
        ("hf:a/b", None, ("a/b", None, None, True)),
        ("hf:a/b:hotpotqa", "dev", ("a/b", "hotpotqa", "dev", True)),
        ("hf:a/b:hotpotqa:dev", None, ("a/b", "hotpotqa", "dev", True)),
        ("hf:a/b::dev", "dev", ("a/b", None, "dev", True)),
    ],
)
def test_path_and_split_reach_the_library(hub: Calls, path: str, split: str | None, asked: tuple[Any, ...]) -> None:
    found = list(read_questions(path, split=split))
    assert [question.id for question in found] == ["q1", "q2"]
    assert found[0].golden_answers == ("A",)
    assert set(hub) == {asked}


def test_rows_are_numbered_from_zero(hub: Calls) -> None:
    assert [str(place) for place, _ in rows("hf:a/b")] == ["hf:a/b, row 0", "hf:a/b, row 1"]


def test_several_splits_must_be_chosen_from(hub: Calls) -> None:
    with pytest.raises(DataError, match="has the splits dev, train; choose one"):
        read_questions("hf:two/splits")


def test_two_different_splits_are_refused(hub: Calls) -> None:
    with pytest.raises(DataError, match="asks for split 'dev' but the configuration for 'train'"):
        read_questions("hf:a/b:c:dev", split="train")


@pytest.mark.parametrize("path", ["hf:", "hf:a/b:c:d:e"])
def test_malformed_paths_show_the_form(path: str) -> None:
    with pytest.raises(DataError, match=r"hf:<dataset id>\[:config\[:split\]\] was needed"):
        list(rows(path))


def test_what_the_library_says_is_kept_in_one_line(hub: Calls) -> None:
    with pytest.raises(DataError, match=r"DatasetNotFoundError: Dataset 'no/such' doesn't exist on the Hub or elsewhe"):
        read_questions("hf:no/such")


def test_a_stream_that_breaks_is_an_error_not_a_short_set(hub: Calls) -> None:
    stream = read_questions("hf:breaks/midway:c:dev")
    assert next(stream).id == "q1"
    with pytest.raises(DataError, match="ConnectionError: gone"):
        next(stream)


def test_corpus_and_its_digest_stream_too(hub: Calls) -> None:
    assert [passage.id for passage in read_corpus("hf:a/corpus:corpus:corpus")] == ["d1", "d2"]
    digest = corpus_digest("hf:a/corpus:corpus:corpus")
    assert digest.n_passages == 2
    CORPUS.reverse()
    try:
        assert corpus_digest("hf:a/corpus:corpus:corpus").sha256 != digest.sha256
    finally:
        CORPUS.reverse()
