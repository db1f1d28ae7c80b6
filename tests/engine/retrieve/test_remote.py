"""The remote retriever against a scripted server on loopback: protocol, retries, time-outs, malformed replies."""

import json
import pickle
import socket
import threading
import time
import traceback
from itertools import pairwise

import httpx  # noqa: F401  (its import must not count as waiting in a test)
import pytest
from pydantic import ValidationError
from stub_server import serving

from engine.config import RemoteConfig
from engine.errors import BackendError, CallTimeout, ConfigError, PreflightError
from engine.generate import pace
from engine.records import Hit, Passage
from engine.retrieve import remote_http
from engine.retrieve.index import build_index, is_built, open_index
from engine.retrieve.remote import RemoteRetriever

TOKEN = "tok-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(pace, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setenv("TEST_TOKEN", TOKEN)


def hit(name, score, **fields):
    return {"document": {"id": name, "contents": f'"T{name}"\ntext of {name}', **fields}, "score": score}


def results(*lists):
    return 200, {}, {"result": list(lists)}


@pytest.fixture
def retriever():
    made = []

    def make(url, **fields):
        made.append(RemoteRetriever(RemoteConfig(url=url, **fields)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def echo(n, body):
    """Two hits per query, named after it."""
    return results(*([hit(f"{query}1", 2.0), hit(f"{query}2", 1.0)] for query in body["queries"]))


def test_one_post_for_all_queries_and_what_comes_back(retriever):
    with serving(echo) as (url, seen):
        found = retriever(url).search(["a", "b"], 5)
    assert found == [
        [
            Hit(Passage(f"{query}1", f"T{query}1", f"text of {query}1"), 1, 2.0),
            Hit(Passage(f"{query}2", f"T{query}2", f"text of {query}2"), 2, 1.0),
        ]
        for query in "ab"
    ]
    (sent,) = seen
    assert (sent["method"], sent["path"]) == ("POST", "/retrieve")
    assert sent["body"] == {"queries": ["a", "b"], "topk": 5, "return_scores": True}
    assert "Authorization" not in sent["headers"]


@pytest.mark.parametrize("suffix", ["/", "/retrieve", "/retrieve/"])
def test_the_url_may_be_search_r1s_search_url(retriever, suffix):
    with serving(echo) as (url, seen):
        retriever(url + suffix).search(["a"], 1)
    assert seen[0]["path"] == "/retrieve"


def test_many_queries_go_in_several_posts_and_come_back_in_order(retriever):
    queries = [f"q{i}" for i in range(7)]
    with serving(echo) as (url, seen):
        found = retriever(url, max_batch=3).search(queries, 1)
    assert [hits[0].doc_id for hits in found] == [f"{query}1" for query in queries]
    assert [len(entry["body"]["queries"]) for entry in seen] == [3, 3, 1]


def test_blank_queries_and_k_zero_are_not_sent(retriever):
    with serving(echo) as (url, seen):
        one = retriever(url)
        assert [len(hits) for hits in one.search(["", "a", " \n"], 2)] == [0, 2, 0]
        assert one.search(["", " "], 2) == [[], []]
        assert one.search(["a"], 0) == [[]]
        assert one.search([], 3) == []
        with pytest.raises(ValueError, match="at least 0, found -1"):
            one.search(["a"], -1)
    assert [entry["body"]["queries"] for entry in seen] == [["a"]]


def test_topk_is_bounded_and_a_longer_list_is_cut(retriever):
    with serving(lambda n, body: results([hit(str(i), 9.0 - i) for i in range(9)])) as (url, seen):
        one = retriever(url, max_topk=4)
        assert len(one.search(["a"], 50)[0]) == 4
        assert [found.rank for found in one.search(["a"], 3)[0]] == [1, 2, 3]
    assert [entry["body"]["topk"] for entry in seen] == [4, 3]


def test_lists_are_put_in_order_and_twins_counted(retriever):
    entries = [hit("b", 1.0), hit("c", 3), hit("a", 1.0), hit("b", 7.0)]
    with serving(lambda n, body: results(entries)) as (url, _):
        one = retriever(url)
        (found,) = one.search(["q"], 10)
    assert [(entry.doc_id, entry.rank, entry.score) for entry in found] == [("c", 1, 3.0), ("a", 2, 1.0), ("b", 3, 1.0)]
    assert one.metrics() == {"duplicate_hits": 1}


def test_a_document_may_carry_its_score_itself(retriever):
    entry = {"id": "a", "contents": '"T"\nx', "score": 0.5}
    with serving(lambda n, body: results([entry])) as (url, _):
        assert retriever(url).search(["q"], 3) == [[Hit(Passage("a", "T", "x"), 1, 0.5)]]


def test_half_a_surrogate_pair_in_a_query_is_replaced(retriever):
    with serving(echo) as (url, seen):
        retriever(url).search(["a\ud83d"], 1)
    assert seen[0]["body"]["queries"] == ["a\ufffd"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([{"document": {"id": "x", "contents": "c"}}], "hit 1 has the score None, which is no finite number"),
        ([hit("x", 1.0), hit("y", float("nan"))], "hit 2 has the score nan"),
        ([hit("x", float("inf"))], "hit 1 has the score inf"),
        ([hit("x", "0.5")], "hit 1 has the score '0.5'"),
        ([hit("x", True)], "hit 1 has the score True"),
        ([{"document": {"id": "x"}, "score": 1.0}], "neither contents nor text"),
        ([5], "hit 1 is 5, not a document"),
        (None, "the list of hits is None"),
        ({"a": 1}, "the list of hits is {'a': 1}"),
    ],
)
def test_a_malformed_list_fails_its_query_alone(retriever, bad, said):
    def script(n, body):
        return results(*(bad if query == "bad" else [hit(query, 1.0)] for query in body["queries"]))

    with serving(script) as (url, seen):
        one = retriever(url)
        first, failed, last = one.search_each(["a", "bad", "b"], 3)
        with pytest.raises(BackendError, match="query 'bad'"):
            one.search(["a", "bad", "b"], 3)
    assert [first[0].doc_id, last[0].doc_id] == ["a", "b"]
    assert type(failed) is BackendError
    assert str(failed).startswith(f"{url}/retrieve, query 'bad': ")
    assert said in str(failed)
    assert len(seen) == 2


def test_a_score_beyond_every_float_fails_its_query(retriever):
    entry = json.dumps(hit("x", 0)).replace('"score": 0', f'"score": 1{"0" * 400}')
    with serving(lambda n, body: (200, {}, f'{{"result": [[{entry}]]}}'.encode())) as (url, _):
        (failed,) = retriever(url).search_each(["q"], 3)
    assert isinstance(failed, BackendError)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"result": [[]]}, "sent 1 lists for 2 queries"),
        ({"result": [[], [], []]}, "sent 3 lists for 2 queries"),
        ({"results": []}, "sent no list under 'result' for 2 queries"),
        (b"[]", "sent no list under 'result'"),
        (b"<html>", "sent no JSON"),
        (b"", "sent no JSON"),
        (b"[" * 100_000, "sent no JSON"),
    ],
)
def test_a_reply_that_fits_no_query_fails_all_and_is_not_asked_again(retriever, answer, said):
    with serving(lambda n, body: (200, {}, answer)) as (url, seen):
        failed = retriever(url).search_each(["a", "b"], 3)
    assert all(isinstance(error, BackendError) and said in str(error) for error in failed)
    assert len(failed) == 2
    assert "\n" not in str(failed[0])
    assert len(seen) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 429])
def test_a_status_of_4xx_is_final(retriever, status):
    with serving(lambda n, body: (status, {}, {"detail": "no\nsuch thing"})) as (url, seen):
        (failed,) = retriever(url).search_each(["a"], 3)
    assert str(failed) == f"{url}/retrieve answered {status}: no such thing"
    assert len(seen) == 1


def test_a_query_that_the_server_rejects_fails_alone(retriever):
    def script(n, body):
        return (422, {}, {"detail": "too long"}) if "long" in body["queries"] else echo(n, body)

    with serving(script) as (url, seen):
        outcomes = retriever(url).search_each(["a", "b", "long", "c", "d"], 1)
    assert [isinstance(outcome, BackendError) for outcome in outcomes] == [False, False, True, False, False]
    assert [outcomes[0][0].doc_id, outcomes[4][0].doc_id] == ["a1", "d1"]
    assert [len(entry["body"]["queries"]) for entry in seen] == [5, 2, 3, 1, 2]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_status_of_5xx_is_asked_again(retriever, status):
    with serving(lambda n, body: echo(n, body) if n == 2 else (status, {}, b"not now")) as (url, seen):
        (found,) = retriever(url).search(["a"], 2)
    assert len(found) == 2
    assert len(seen) == 3


def test_retries_end_after_growing_pauses(retriever, monkeypatch):
    monkeypatch.setattr(pace, "FIRST_PAUSE_S", 0.2)
    with serving(lambda n, body: (500, {}, {"detail": [{"msg": "boom"}]})) as (url, seen):
        (failed,) = retriever(url, max_retries=2).search_each(["a"], 3)
    assert str(failed) == f'{url}/retrieve answered 500 after 3 attempts: [{{"msg": "boom"}}]'
    pauses = [later["at"] - earlier["at"] for earlier, later in pairwise(seen)]
    assert len(pauses) == 2
    assert pauses[0] >= 0.1
    assert pauses[1] >= 0.2


def test_retry_after_is_honoured_up_to_the_pools_time_out(retriever):
    def script(n, body):
        return echo(n, body) if n else (503, {"Retry-After": "0.5"}, {"detail": "the queue is full"})

    with serving(script) as (url, seen):
        retriever(url).search(["a"], 1)
        assert seen[1]["at"] - seen[0]["at"] >= 0.5
    with serving(lambda n, body: (503, {"Retry-After": "3600"}, {"detail": "full"})) as (url, seen):
        (failed,) = retriever(url, timeout_s=30).search_each(["a"], 1)
    assert str(failed) == f"{url}/retrieve answered 503: full; it asks to wait 3600 s"
    assert len(seen) == 1


def test_no_reply_in_time_is_asked_again_then_a_time_out(retriever):
    release = threading.Event()

    def script(n, body):
        release.wait(20)
        return echo(n, body)

    with serving(script) as (url, seen):
        (failed,) = retriever(url, request_timeout_s=0.3, max_retries=1).search_each(["a"], 3)
        release.set()
    assert type(failed) is CallTimeout
    assert str(failed) == f"{url}/retrieve gave no reply within 0.3 s after 2 attempts"
    assert len(seen) == 2


def test_a_reply_that_only_trickles_is_a_time_out(retriever):
    with serving(lambda n, body: (200, {}, [b" "] * 40)) as (url, _):
        began = time.monotonic()
        (failed,) = retriever(url, request_timeout_s=0.5, max_retries=0).search_each(["a"], 3)
        took = time.monotonic() - began
    assert type(failed) is CallTimeout
    assert took < 5  # the whole reply takes 6 s


def test_a_reply_that_is_too_large_is_not_read_to_its_end(retriever, monkeypatch):
    monkeypatch.setattr(remote_http, "MAX_REPLY_BYTES", 10_000)

    def script(n, body):
        return results(
            *([hit(query, 1.0, contents="x" * (20_000 if query == "big" else 10))] for query in body["queries"])
        )

    with serving(script) as (url, seen):
        found, failed = retriever(url).search_each(["a", "big"], 3)
    assert found[0].doc_id == "a"
    assert str(failed) == f"{url}/retrieve sent more than 10000 bytes: ask for fewer hits at a time"
    assert len(seen) == 3


def test_a_redirect_is_not_followed(retriever):
    with serving(echo) as (other, reached):
        with serving(lambda n, body: (307, {"Location": f"{other}/retrieve"}, b"")) as (url, seen):
            (failed,) = retriever(url).search_each(["a"], 3)
        assert reached == []
    assert f"{url}/retrieve answered 307: redirects to {other}/retrieve" in str(failed)
    assert len(seen) == 1


def test_a_server_that_is_not_there_is_asked_again_then_named(retriever):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        (failed,) = retriever(url, max_retries=1).search_each(["a"], 3)
    assert str(failed).startswith(f"{url}/retrieve after 2 attempts: not reached")


def test_errors_cross_process_borders(retriever):
    with serving(lambda n, body: (404, {}, b"")) as (url, _):
        (failed,) = retriever(url).search_each(["a"], 3)
    assert str(pickle.loads(pickle.dumps(failed))) == str(failed) == f"{url}/retrieve answered 404: no reason given"


def test_the_token_is_sent_and_shown_nowhere(retriever):
    with serving(lambda n, body: (401, {}, {"detail": f"bad token {TOKEN}"})) as (url, seen):
        (failed,) = retriever(url, api_key_env="TEST_TOKEN").search_each(["a"], 3)
    assert seen[0]["headers"]["Authorization"] == f"Bearer {TOKEN}"
    assert str(failed).endswith("answered 401: bad token ***")
    assert TOKEN not in "".join(traceback.format_exception(failed))


def test_a_missing_token_is_named_in_one_line(monkeypatch):
    monkeypatch.setenv("TEST_TOKEN", " ")
    with pytest.raises(PreflightError, match="environment variable TEST_TOKEN, which is not set"):
        RemoteRetriever(RemoteConfig(url="http://127.0.0.1:1", api_key_env="TEST_TOKEN"))


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://h", "http://me:secret@h", "http://h/retrieve?x=1", "http:// h"]
)
def test_a_url_of_another_form_is_refused(url):
    with pytest.raises(ValidationError):
        RemoteConfig(url=url)


def test_a_url_without_a_port_number_is_refused():
    with pytest.raises(ConfigError, match="Invalid port"):
        RemoteRetriever(RemoteConfig(url="http://h:none"))


HEALTH = {"status": "ready", "kind": "bm25", "passages": 42, "digest": "abc"}


def test_the_servers_own_word_identifies_the_index_whatever_the_url():
    with (
        serving(lambda n, body: (200, {}, HEALTH)) as (one, seen),
        serving(lambda n, body: (200, {}, HEALTH)) as (two, _),
    ):
        first, second = open_index(RemoteConfig(url=one)), open_index(RemoteConfig(url=f"{two}/retrieve"))
        assert (seen[0]["method"], seen[0]["path"]) == ("GET", "/health")
    with serving(lambda n, body: (200, {}, {**HEALTH, "digest": "abd"})) as (three, _):
        third = open_index(RemoteConfig(url=three))
    assert first.digest == second.digest != third.digest
    assert (first.n_docs, first.path) == (42, one)


def test_a_configured_fingerprint_is_not_asked_for():
    nobody = [RemoteConfig(url=f"http://127.0.0.1:{port}", fingerprint="abc") for port in (1, 2)]
    other = RemoteConfig(url="http://127.0.0.1:1", fingerprint="wiki18-e5")
    assert is_built(nobody[0])
    assert open_index(nobody[0]).digest == open_index(nobody[1]).digest == build_index(nobody[0]).digest
    assert open_index(other).digest != open_index(nobody[0]).digest
    with serving(lambda n, body: (200, {}, HEALTH)) as (url, _):
        assert open_index(RemoteConfig(url=url)).digest == open_index(nobody[0]).digest


def test_a_server_that_still_loads_is_waited_for():
    def script(n, body):
        return (200, {}, HEALTH) if n == 2 else (503, {}, {"detail": "the index is loading"})

    with serving(script) as (url, _):
        assert open_index(RemoteConfig(url=url)).n_docs == 42
    loading = serving(lambda n, body: (503, {}, {"detail": "the index is loading"}))
    with loading as (url, _), pytest.raises(PreflightError) as caught:
        open_index(RemoteConfig(url=url, max_retries=1))
    assert str(caught.value) == f"{url}/health answered 503 after 2 attempts: the index is loading"


@pytest.mark.parametrize(
    "answer", [(404, {}, {"detail": "Not Found"}), (200, {}, {"status": "healthy"}), (200, {}, b"ok"), (200, {}, b"[]")]
)
def test_a_server_that_does_not_say_what_it_serves_needs_a_fingerprint(answer):
    with serving(lambda n, body: answer) as (url, _), pytest.raises(PreflightError) as caught:
        open_index(RemoteConfig(url=url))
    assert f"{url}/health does not say which index it serves: set retriever.fingerprint" in str(caught.value)
