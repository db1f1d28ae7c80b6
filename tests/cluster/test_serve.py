"""A real server over a small Lucene index: Search-R1's client, Stopgap's own, many at once, and its own restart."""

import json
import multiprocessing
import threading
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from http_server import ask, retrieve, started

from engine.config import Bm25Config, RemoteConfig
from engine.retrieve.index import open_index
from engine.retrieve.remote import RemoteRetriever

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TITLES = ("Hullport", 'The "Great" Bridge', "River Ane", "Northmoor", "Saint Ursa")
QUERIES = ("bridge over the river", "founded harbour town", "who was born in Northmoor", "great abbey", "zzxqv")


def corpus():
    for number in range(120):
        title = f"{TITLES[number % 5]} {number}"
        sentences = (
            f"{title} was founded in {1500 + number * 3} near a river harbour.",
            f"Its bridge number {number} leads to the abbey of town {number % 7}.",
            f"Person{number} was born there.",
        )
        text = " ".join(sentences)
        yield {"id": f"p{number}", "title": title, "text": text, "sentences": sentences if number % 2 else ()}


@pytest.fixture(scope="module")
def retriever(tmp_path_factory):
    """The configuration of a retriever whose index is not built yet."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus())), encoding="utf-8")
    path = str(folder / "corpus.jsonl")
    return Bm25Config(corpus={"path": path}, index=str(folder / "index"), heap="256m", num_cpus=0.2, replicas=2)


@pytest.fixture(scope="module")
def server(retriever, tmp_path_factory):
    with started(tmp_path_factory.mktemp("server"), retriever.model_dump(mode="json")) as running:
        yield running.until_it_answers("/retrieve", "/health")


def test_while_the_index_is_built_and_loaded_it_answers_503_and_says_so(server):
    assert {path for path, _, _ in server.early} == {"/health", "/retrieve"}
    assert {(status, text) for _, status, text in server.early} == {(503, '{"detail":"the index is loading"}')}


def test_health_says_which_index_is_served(server, retriever):
    status, _, text = ask(server.port, "GET", "/health")
    assert (status, json.loads(text)) == (
        200,
        {"status": "ready", "kind": "bm25", "passages": 120, "digest": open_index(retriever).digest},
    )


class SearchR1:
    """What Search-R1's rollout does with a retrieval server: one POST for a batch, documents to text (METHODS E)."""

    def __init__(self, url, topk):
        self.url = url
        self.topk = topk

    def batch_search(self, queries):
        payload = json.dumps({"queries": queries, "topk": self.topk, "return_scores": True}).encode()
        request = urllib.request.Request(self.url, payload, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return [self.as_text(hits) for hits in json.loads(reply.read())["result"]]

    def as_text(self, hits):
        text = ""
        for number, hit in enumerate(hits, 1):
            title, _, body = hit["document"]["contents"].partition("\n")
            text += f"Doc {number}(Title: {title}) {body}\n"
        return text


def test_a_search_r1_client_reads_titles_and_texts(server):
    (found,) = SearchR1(f"http://127.0.0.1:{server.port}/retrieve", 3).batch_search(["Person41 born"])
    lines = found.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith('Doc 1(Title: "The ""Great"" Bridge 41") The "Great" Bridge 41 was founded in 1623 near')


def test_a_batch_gives_what_its_queries_give_alone(server):
    status, together = retrieve(server.port, QUERIES, topk=7, return_scores=True)
    alone = [retrieve(server.port, [query], topk=7, return_scores=True)[1]["result"][0] for query in QUERIES]
    assert status == 200
    assert together["result"] == alone
    assert [len(hits) for hits in alone] == [7, 7, 7, 7, 0]


def test_without_scores_the_documents_are_bare_and_three_by_default(server):
    _, scored = retrieve(server.port, QUERIES, topk=3, return_scores=True)
    for fields in ({}, {"topk": None}, {"return_scores": False}):
        _, bare = retrieve(server.port, QUERIES, **fields)
        assert bare["result"] == [[hit["document"] for hit in hits] for hits in scored["result"]]


def test_a_null_query_is_refused_and_the_next_is_served(server):
    statuses = [retrieve(server.port, [query])[0] for query in ("ok", None, "ok")]
    assert statuses == [200, 422, 200]
    assert retrieve(server.port, ["bridge", None])[0] == 422
    assert ask(server.port, "POST", "/retrieve", b"{")[0] == 422
    assert ask(server.port, "POST", "/retrieve", b" " * (2**24 + 1))[0] == 413
    assert ask(server.port, "GET", "/nothing")[0] == 404


def test_two_hundred_clients_at_once_get_each_their_own(server):
    queries = [f"Person{number % 120} born town {number}" for number in range(200)]
    _, expected = retrieve(server.port, queries, topk=4, return_scores=True)
    together = threading.Barrier(200)

    def client(query):
        together.wait(60)
        return retrieve(server.port, [query], topk=4, return_scores=True)

    with ThreadPoolExecutor(200) as clients:
        found = list(clients.map(client, queries))
    assert [status for status, _ in found] == [200] * 200
    assert [body["result"][0] for _, body in found] == expected["result"]


def local_hits(config, queries, k):
    from engine.retrieve.bm25 import Bm25

    return Bm25(config).search(queries, k)


def test_stopgaps_own_client_finds_what_the_local_retriever_finds(server, retriever):
    queries = [*QUERIES, "", "Person7", "\ud83d bridge", "bridge " * 500]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as java:
        expected = java.submit(local_hits, retriever, queries, 50).result()
    config = RemoteConfig(url=f"http://127.0.0.1:{server.port}", max_batch=4)
    remote = RemoteRetriever(config)
    assert remote.search(queries, 50) == expected
    assert [remote.search([query], 50)[0] for query in queries] == expected
    assert sum(map(len, expected)) > 200
    assert any(hit.passage.sentences for hits in expected for hit in hits)
    assert open_index(config).n_docs == 120


def test_an_ingress_that_dies_comes_back_serving(server):
    (ingress,) = [child for child in server.descendants() if "RetrievalIngress" in " ".join(child.cmdline())]
    ingress.kill()
    deadline = time.monotonic() + 120
    while ingress.is_running() or ask(server.port, "GET", "/health")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert retrieve(server.port, ["bridge"])[0] == 200
