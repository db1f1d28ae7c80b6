"""Does a stopping policy pay: no worse than the run that never stops, and cheaper, each beyond chance."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from engine.config.observe import MARGIN
from engine.stats import RESAMPLES, Interval, Paired, Values, paired_ci

SEED = 20260728
_QUALITY_SEED, _COST_SEED = 200, 300


@dataclass(frozen=True, slots=True)
class Decision:
    """Policy minus native in EM and in searches per question. The policy passes if it is not worse and it is cheaper.

    margin: the loss of EM that is still called "not worse", in [0, 1].
    """

    em: Paired
    searches: Paired
    margin: float

    @property
    def complete(self) -> bool:
        """Whether every question has both figures of both sides; nothing passes on a part of them."""
        return all(d.n == d.asked for d in (self.em.difference, self.searches.difference))

    @property
    def not_worse(self) -> bool:
        """The lower bound of the EM difference is above -margin."""
        low = self.em.difference.low
        return self.complete and low is not None and low > -self.margin

    @property
    def cheaper(self) -> bool:
        """The upper bound of the difference in searches is below 0."""
        high = self.searches.difference.high
        return self.complete and high is not None and high < 0

    @property
    def passes(self) -> bool:
        """Both."""
        return self.not_worse and self.cheaper

    @property
    def sentence(self) -> str:
        """The finding as a report prints it."""
        # Imported late: the report package prints decisions, so it may be what imports this module.
        from engine.report.wording import signed

        if not self.complete:
            least = min(self.em.difference.n, self.searches.difference.n)
            return f"Not decided: only {least} of {self.em.difference.asked} questions have both figures of both sides."
        if self.em.difference.low is None:
            return f"Not decided: {self.em.difference.n} questions are too few for an interval."
        margin = f"the margin of {signed(-self.margin, 100)}"
        em = f"above {margin}: not worse" if self.not_worse else f"not above {margin}: may be worse"
        searches = "below 0: cheaper" if self.cheaper else "not below 0: not shown to be cheaper"
        return (
            f"The policy {'passes' if self.passes else 'does not pass'}. "
            f"EM {_with_bounds(self.em.difference, 100, ' points')}, {em}. "
            f"Searches {_with_bounds(self.searches.difference, 1, ' per question')}, {searches}."
        )


def decide(
    native_em: Values,
    policy_em: Values,
    native_searches: Values,
    policy_searches: Values,
    *,
    margin: float = MARGIN,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Decision:
    """Non-inferiority in EM and superiority in searches, paired by question, both from 95 % bootstrap intervals.

    All four: [Q], the same questions in the same order; None and NaN are unscored. Both must pass, so no correction
    for two tests is due. Raises ValueError for unequal lengths or a margin outside [0, 1]. Source: METHODS B6.
    """
    if not 0 <= margin <= 1:
        raise ValueError(f"margin must be within [0, 1], got {margin}")
    em = paired_ci(native_em, policy_em, resamples=resamples, seed=seed + _QUALITY_SEED)
    searches = paired_ci(native_searches, policy_searches, resamples=resamples, seed=seed + _COST_SEED)
    if em.difference.asked != searches.difference.asked:
        raise ValueError(f"got EM of {em.difference.asked} questions and searches of {searches.difference.asked}")
    return Decision(em, searches, margin)


def _with_bounds(difference: Interval, scale: float, unit: str) -> str:
    from engine.report.wording import signed, signed_bounds

    return f"{signed(difference.mean, scale)}{unit} {signed_bounds(asdict(difference), scale)}"
