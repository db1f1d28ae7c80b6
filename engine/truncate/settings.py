"""What the parameters of every truncation method are built on."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator


class Settings(BaseModel):
    """Parameters of one method: immutable, strict about their names; the field `kind` names the method.

    Where a method bounds its kept counts, the fields are called k_min and k_max.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        k_min, k_max = getattr(self, "k_min", 0), getattr(self, "k_max", None)
        if k_max is not None and k_min > k_max:
            raise ValueError(f"k_min {k_min} is above k_max {k_max}")
        return self

    @classmethod
    def checked(cls, **values: Any) -> Self:
        """As the constructor, with a ValueError of one line for a value out of range."""
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in (cls.model_fields["kind"].default, *first["loc"]))
            message = first["msg"].removeprefix("Value error, ")
            found = f", found {first['input']!r}" if first["loc"] else ""
            raise ValueError(f"{name}: {message[0].lower()}{message[1:]}{found}") from error
