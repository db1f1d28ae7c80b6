"""The retriever's ingress: HTTP requests to searches in its pool."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from cluster.exchange import ExchangeClient
from cluster.replica import named_client
from cluster.serve.protocol import Limits, RetrieveRequest, parse_request, reply
from engine.config import RetrieverConfig
from engine.endpoint import Endpoint, SearchItem
from engine.errors import BackendDead, BackendError, CallTimeout
from engine.records import Hit
from engine.retrieve.compose import compose

RETRY_AFTER_S = 2

Asked = TypeVar("Asked")


def token_digest(token: str) -> str:
    """What the ingress is told of a token: Serve keeps a deployment's arguments where others may read them."""
    return hashlib.sha256(token.encode()).hexdigest()


class RetrievalIngress:
    """GET /health and POST /retrieve over the replicas of one retriever.

    It starts before the retriever does, so that requests meet a 503 with a reason and no closed port while the index
    loads; `open` then names the replicas. One copy of it is enough: it only moves bytes, and its queue is then the
    whole queue.
    """

    def __init__(self, retriever: RetrieverConfig, call_retries: int, limits: Limits, token: str | None) -> None:
        self._retriever = retriever
        self._call_retries = call_retries
        self._limits = limits
        self._token = token
        self._search: Endpoint | None = None
        self._index: dict[str, Any] = {}
        self._unavailable: str | None = "the index is loading"
        self._waiting = 0

    def __serve_build_asgi_app__(self) -> FastAPI:
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        app.get("/health")(self.health)
        app.post("/retrieve")(self.retrieve)
        return app

    async def open(self, replicas: dict[str, list[str]], index: dict[str, Any]) -> str | None:
        """Takes requests from now on, over the named actors of each pool; the same again changes nothing.

        index is what /health tells. Returns why requests are refused, None where they are not.
        """
        if self._search is None:
            self._connect({pool: self._client(pool, names) for pool, names in replicas.items()})
            self._index = index
            self._unavailable = None
        return self._unavailable

    def _connect(self, clients: Mapping[str, Endpoint]) -> None:
        self._search = compose(self._retriever, clients)

    def _client(self, pool: str, names: list[str]) -> ExchangeClient:
        return named_client(pool, names, self._limits.timeout_s, self._call_retries)

    async def drain(self) -> None:
        """Refuses new requests from now on, and returns once those under way are answered."""
        self._unavailable = "the server is shutting down"
        while self._waiting:
            await asyncio.sleep(0.05)

    async def health(self, request: Request) -> Response:
        """200 with what is served, or 503 with the reason why nothing is yet."""
        self._admit(request)
        return JSONResponse({"status": "ready", **self._index})

    async def retrieve(self, request: Request) -> Response:
        """The ranked lists of a RetrieveRequest, in query order."""
        search = self._admit(request)
        with self._places(1):
            asked = await self._parsed(request, parse_request)
            with self._places(len(asked.queries)):
                lists = await self._answer(asked, search)
        return Response(reply(lists, asked.return_scores), media_type="application/json")

    def _gone(self, error: BackendDead) -> HTTPException:
        """Refuses every request from now on, this one first: nothing will answer any more."""
        self._unavailable = str(error)
        return _busy(str(error))

    def _admit(self, request: Request) -> Endpoint:
        """The retriever, for a request that may be made now."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if self._token and not (scheme.lower() == "bearer" and hmac.compare_digest(token_digest(given), self._token)):
            raise HTTPException(401, "a valid bearer token is needed", {"WWW-Authenticate": "Bearer"})
        if self._search is None or self._unavailable:
            raise _busy(str(self._unavailable))
        return self._search

    def _take(self, count: int) -> None:
        """Counts so many as waiting; refuses them where the queue is full."""
        if self._waiting + count > self._limits.waiting:
            raise _busy(f"the queue is full: {self._waiting} wait, {self._limits.waiting} may")
        self._waiting += count

    def _leave(self, count: int) -> None:
        self._waiting -= count

    @contextmanager
    def _places(self, count: int) -> Iterator[None]:
        """So many are waiting while the block runs."""
        self._take(count)
        try:
            yield
        finally:
            self._leave(count)

    async def _parsed(self, request: Request, parse: Callable[[bytes, Limits], Asked]) -> Asked:
        """What a request asks; refuses what is malformed or over a limit."""
        try:
            return parse(await self._body(request), self._limits)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    async def _body(self, request: Request) -> bytes:
        """The whole body, of which never much more than the limit is read."""
        limit = self._limits.body_bytes
        too_large = HTTPException(413, f"the body may have at most {limit} bytes")
        if int(request.headers.get("content-length", 0)) > limit:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise too_large
        except TimeoutError as error:
            raise HTTPException(408, f"the body did not come within {self._limits.timeout_s:g} s") from error
        except ClientDisconnect as error:
            raise HTTPException(400, "the connection broke off") from error
        return bytes(body)

    async def _answer(self, asked: RetrieveRequest, search: Endpoint) -> list[list[Hit]]:
        searches = [asyncio.ensure_future(search(SearchItem(query, asked.topk))) for query in asked.queries]
        try:
            lists: list[list[Hit]] = await asyncio.gather(*searches)
            return lists
        except CallTimeout as error:
            raise HTTPException(504, str(error)) from error
        except BackendDead as error:
            raise self._gone(error) from error
        except BackendError as error:
            raise HTTPException(502, f"the retriever failed: {error}") from error
        finally:
            for task in searches:
                task.cancel()


def _busy(reason: str) -> HTTPException:
    return HTTPException(503, reason, {"Retry-After": str(RETRY_AFTER_S)})
