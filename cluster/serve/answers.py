"""The ingress of a whole experiment: each chat request is one question, run by the same loop as in a batch."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from cluster.exchange import ExchangeClient
from cluster.replica import named_client
from cluster.serve.chat import (
    ChatRequest,
    answer_events,
    completion,
    error_body,
    error_event,
    models,
    parse_chat,
    round_event,
)
from cluster.serve.ingress import RetrievalIngress
from cluster.serve.protocol import Limits
from engine.config import ExperimentConfig
from engine.endpoint import Endpoint
from engine.errors import BackendDead
from engine.loop import answer
from engine.loop.episode import Episode
from engine.records import Question
from engine.services import Services, endpoint_services, pools_of

Watch = Callable[[Episode], None]


class AnswerIngress(RetrievalIngress):
    """GET /v1/models and POST /v1/chat/completions beside what the retriever's ingress serves.

    At most cluster.questions_in_flight questions are open at once; others wait, as part of the queue. A question
    whose client is gone is given up.
    """

    def __init__(self, config: ExperimentConfig, limits: Limits, token: str | None) -> None:
        super().__init__(config.retriever, config.cluster.call_retries, limits, token)
        self._unavailable = "index and models are loading"
        self._config = config
        self._pools = pools_of(config)
        self._services: Services | None = None
        self._open = asyncio.Semaphore(config.cluster.questions_in_flight)
        self._started = time.time()

    def __serve_build_asgi_app__(self) -> FastAPI:
        app = super().__serve_build_asgi_app__()
        app.get("/v1/models")(self.models)
        app.post("/v1/chat/completions")(self.chat)
        app.exception_handler(HTTPException)(_refusal)
        return app

    def _client(self, pool: str, names: list[str]) -> ExchangeClient:
        return named_client(pool, names, self._pools[pool].timeout_s, self._call_retries)

    def _connect(self, clients: Mapping[str, Endpoint]) -> None:
        super()._connect(clients)
        self._services = endpoint_services(self._config, clients)

    async def models(self, request: Request) -> Response:
        """The experiment, by its name."""
        self._admit(request)
        return JSONResponse(models(self._config.name, self._started))

    async def chat(self, request: Request) -> Response:
        """The answer to the last message, whole or streamed round by round."""
        self._admit(request)
        with self._places(1):
            asked = await self._parsed(request, parse_chat)
        if asked.model not in (None, self._config.name):
            raise HTTPException(404, f"model '{asked.model}' is not served, '{self._config.name}' is")
        if asked.stream:
            rounds: asyncio.Queue[Episode | None] = asyncio.Queue()
            return StreamingResponse(
                self._stream(self._begin(asked, rounds.put_nowait), rounds), media_type="text/event-stream"
            )
        return JSONResponse(completion(self._config.name, await self._finished(self._begin(asked))))

    def _begin(self, asked: ChatRequest, watch: Watch | None = None) -> asyncio.Task[Episode]:
        """The question, under way; it has its place in the queue until it is done."""
        self._take(1)
        task = asyncio.create_task(self._ask(Question(uuid.uuid4().hex, asked.question), watch))
        task.add_done_callback(lambda done: self._leave(1))
        return task

    async def _ask(self, question: Question, watch: Watch | None) -> Episode:
        assert self._services is not None, "a request is admitted only once the services are there"
        async with asyncio.timeout(self._limits.timeout_s), self._open:
            return await answer(question, self._config, self._services, watch)

    async def _finished(self, task: asyncio.Task[Episode]) -> Episode:
        """The answered question. Raises HTTPException where it could not be answered."""
        try:
            episode = await task
        except TimeoutError as error:
            raise HTTPException(504, f"no answer within {self._limits.timeout_s:g} s") from error
        except BackendDead as error:
            raise self._gone(error) from error
        finally:
            task.cancel()
        if episode.error:
            raise HTTPException(502, f"{episode.error.type}: {episode.error.message}")
        return episode

    async def _stream(self, task: asyncio.Task[Episode], rounds: asyncio.Queue[Episode | None]) -> AsyncIterator[bytes]:
        """A chunk per round as it ends, then the answer, or why there is none."""
        name, told = self._config.name, 0
        task.add_done_callback(lambda done: rounds.put_nowait(None))
        try:
            while episode := await rounds.get():
                for turn in episode.turns[told:]:
                    yield round_event(name, episode, turn)
                told = len(episode.turns)
            episode = await self._finished(task)
        except HTTPException as error:
            yield error_event(error.status_code, error.detail)
            return
        finally:
            task.cancel()
        for turn in episode.turns[told:]:
            yield round_event(name, episode, turn)
        yield answer_events(name, episode)


async def _refusal(request: Request, error: Exception) -> Response:
    """A refused request, told in the form of the protocol it was made in."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/v1/"):
        return JSONResponse(error_body(error.status_code, error.detail), error.status_code, error.headers)
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)
