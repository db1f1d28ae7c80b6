"""What a client may ask of the server, and Search-R1's retrieval protocol (METHODS E, "HTTP")."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from engine.records import Hit
from engine.retrieve.remote_document import document_of

DEFAULT_TOPK = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask, and how much may be under way.

    hits bounds queries times topk. query_chars bounds a query and a question. waiting counts the queries and
    questions of all requests that are not answered yet. timeout_s is the time for a body to come and, again, for what
    it asks to be answered.
    """

    topk: int = 1000
    queries: int = 4096
    query_chars: int = 16_384
    body_bytes: int = 16 * 2**20
    hits: int = 20_000
    waiting: int = 8192
    timeout_s: float = 60.0


RETRIEVER_LIMITS = Limits()
ANSWER_LIMITS = Limits(waiting=1024, timeout_s=300.0)


Body = TypeVar("Body", bound=BaseModel)


class RetrieveRequest(BaseModel):
    """The body of POST /retrieve; other keys are ignored."""

    queries: list[str]
    topk: Annotated[int, BeforeValidator(lambda given: DEFAULT_TOPK if given is None else given)] = DEFAULT_TOPK
    return_scores: bool = False


def validated(model: type[Body], body: bytes) -> Body:
    """A body as the model it should be. Raises ValueError, in one line, for what is malformed."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where or 'body'}: {first['msg']}") from error


def parse_request(body: bytes, limits: Limits) -> RetrieveRequest:
    """The request in a body. Raises ValueError, in one line, for what is malformed or over a limit."""
    asked = validated(RetrieveRequest, body)
    if not 1 <= asked.topk <= limits.topk:
        raise ValueError(f"topk: must be from 1 to {limits.topk}, found {asked.topk}")
    if len(asked.queries) > limits.queries:
        raise ValueError(f"queries: at most {limits.queries}, found {len(asked.queries)}")
    if asked.topk * len(asked.queries) > limits.hits:
        raise ValueError(f"queries times topk: at most {limits.hits}, found {asked.topk * len(asked.queries)}")
    for number, query in enumerate(asked.queries):
        if len(query) > limits.query_chars:
            raise ValueError(f"queries.{number}: at most {limits.query_chars} characters, found {len(query)}")
    return asked


def reply(lists: Sequence[Sequence[Hit]], return_scores: bool) -> bytes:
    """The JSON reply: one list per query of {document, score}, or of bare documents without scores."""
    if return_scores:
        result = [[{"document": document_of(hit.passage), "score": hit.score} for hit in hits] for hits in lists]
    else:
        result = [[document_of(hit.passage) for hit in hits] for hits in lists]
    return json.dumps({"result": result}, allow_nan=False).encode()
