"""What calls cost in money: tokens of every role at the price of the model that plays it, plus retrievals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.config import CostConfig, Price, RolesConfig
from engine.records import Usage

RETRIEVER = "retriever"
"""The role under which loops book searches; priced per retrieval, not by tokens."""

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """A bill. Money is None where it has no price, so that "not priced" is never read as free.

    total is the sum over every role that was called, the judge included, plus retrievals where those have a price;
    it is None, and priced False, as soon as one called model has no price. unpriced names what is not in the total.
    per_question is total / questions, None for no questions.
    """

    priced: bool
    currency: str
    by_role: Mapping[str, float | None]
    retrieval: float | None
    total: float | None
    per_question: float | None
    unpriced: tuple[str, ...] = field(default=())


def role_price(role: str, cost: CostConfig, roles: RolesConfig) -> Price | None:
    """The price of the model that plays a role; None if no price, or only zeros, are configured for it."""
    model = getattr(roles, role) if role in RolesConfig.model_fields else None
    price = cost.models.get(model) if model is not None else None
    if price is None or not (price.prompt_per_million or price.completion_per_million):
        return None
    return price


def asks_model(role: str, usage: Usage) -> bool:
    """Whether a role's calls go to a priced model: a role of RolesConfig, or any other that used tokens."""
    named = role in RolesConfig.model_fields and usage.calls > 0
    return named or usage.prompt_tokens > 0 or usage.completion_tokens > 0


def token_cost(usage: Usage, price: Price) -> float:
    """Money for the tokens of one role."""
    return (
        usage.prompt_tokens * price.prompt_per_million + usage.completion_tokens * price.completion_per_million
    ) / MILLION


def bill(usage: Mapping[str, Usage], retrievals: int, questions: int, *, cost: CostConfig, roles: RolesConfig) -> Cost:
    """The bill of a question or a run.

    usage: counts by role; retriever and encoder, which no price is kept for, have no bill of their own. retrievals:
    searches made. questions: how many questions the bill is for. A model that was called but reported no tokens is
    not priced. With no usage at all the total is 0 if prices exist.
    """
    by_role = {
        role: _role_cost(used, role_price(role, cost, roles))
        for role, used in sorted(usage.items())
        if asks_model(role, used)
    }
    unpriced = [role for role, money in by_role.items() if money is None]
    retrieval = retrievals * cost.per_retrieval if cost.per_retrieval else None
    known = [money for money in by_role.values() if money is not None]
    anything = bool(known) or retrieval is not None or (not by_role and bool(cost.models))
    priced = not unpriced and anything
    total = sum(known) + (retrieval or 0.0) if priced else None
    return Cost(
        priced=priced,
        currency=cost.currency,
        by_role=by_role,
        retrieval=retrieval,
        total=total,
        per_question=total / questions if total is not None and questions else None,
        unpriced=(*unpriced, *([RETRIEVER] if retrieval is None and retrievals else [])),
    )


def _role_cost(usage: Usage, price: Price | None) -> float | None:
    if price is None or not (usage.prompt_tokens or usage.completion_tokens):
        return None
    return token_cost(usage, price)
