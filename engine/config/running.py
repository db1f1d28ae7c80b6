"""What calls cost, and where a run happens."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from engine.config.node import Count, Node, Positive


class Price(Node):
    """Prices of one model, in `currency` of the cost table, per million tokens."""

    prompt_per_million: Annotated[float, Field(ge=0)] = 0.0
    completion_per_million: Annotated[float, Field(ge=0)] = 0.0


class CostConfig(Node):
    """What calls cost. Roles are priced by the model that plays them."""

    currency: str = "USD"
    models: dict[str, Price] = Field(default_factory=dict)
    per_retrieval: Annotated[float, Field(ge=0)] = 0.0


class ClusterConfig(Node):
    """Where the run happens and how much is in flight."""

    runners: Positive = 1
    runner_cpus: Annotated[float, Field(ge=0)] = 0.2
    shard_size: Annotated[int, Field(ge=1, le=1024)] = 32
    questions_in_flight: Positive = Field(128, description="per runner")
    call_retries: Count = Field(2, description="times a failed call is asked again before its question fails")
    init_timeout_s: Annotated[float, Field(gt=0)] = Field(
        1800.0, description="longest wait for models and indexes to load"
    )
    watchdog_s: Annotated[float, Field(gt=0)] = Field(
        900.0, description="stop the run when no question finishes for this long"
    )
