"""One upstream as a worker holds it: how it is spoken to, its slots, and its health and that of its models."""

import asyncio
from collections import defaultdict

from gateway.contract.pools import Target, UpstreamSpec, UpstreamState
from workers.engines.upstream.failures import UpstreamFailed
from workers.engines.upstream.health import BreakerState, Health, RetryBudget
from workers.engines.upstream.link import Link
from workers.engines.upstream.protocol import Wire

UNTOLD_S = 1.0
"""How long a model is left alone that takes no more calls, where the upstream does not say for how long."""
UNPAID_S = 30.0
"""The same, where the operator's balance there is used up, or the key is wrong."""


class Trial:
    """A call on its way, as the two breakers count it."""

    __slots__ = ("_model", "_model_trial", "_whole", "_whole_trial")

    def __init__(self, whole: Health, model: Health) -> None:
        self._whole, self._model = whole, model
        self._whole_trial, self._model_trial = whole.begin(), model.begin()

    def succeeded(self, latency_s: float) -> None:
        """Note a success."""
        self._whole.succeeded(latency_s, trial=self._whole_trial)
        self._model.succeeded(latency_s, trial=self._model_trial)

    def failed(self, error: UpstreamFailed) -> None:
        """Note a failure: of the whole upstream, of the model, or of neither."""
        if error.wide:
            self._whole.failed(trial=self._whole_trial, retry_after_s=error.retry_after_s or _unpaid(error))
            self._model.left(trial=self._model_trial)
        elif error.sick:
            limited = error.reason == "upstream_limited"
            retry_after_s = error.retry_after_s if error.retry_after_s is not None else (UNTOLD_S if limited else None)
            self._whole.answered(trial=self._whole_trial)
            self._model.failed(trial=self._model_trial, retry_after_s=retry_after_s)
        else:
            self.answered()

    def answered(self) -> None:
        """Note that the upstream is alive: it has refused an input, or has taken a job, which others need not await."""
        self._whole.answered(trial=self._whole_trial)
        self._model.answered(trial=self._model_trial)
        self._whole_trial = self._model_trial = False

    def left(self) -> None:
        """Note that it was cancelled, or that it is a job which was taken long ago."""
        self._whole.left(trial=self._whole_trial)
        self._model.left(trial=self._model_trial)
        self._whole_trial = self._model_trial = False


def _unpaid(error: UpstreamFailed) -> float | None:
    """Give how long an upstream is left alone that will not serve this account: nothing here can change that."""
    return UNPAID_S if error.detail.startswith(("HTTP 401", "HTTP 402", "HTTP 403")) else None


class Provider:
    """One upstream that has a key."""

    def __init__(self, spec: UpstreamSpec, wire: Wire, link: Link) -> None:
        self.spec = spec
        self.wire = wire
        self.link = link
        self.budget = RetryBudget()
        self.slots = asyncio.Semaphore(spec.concurrency)
        self._whole = Health()
        self._models: defaultdict[str, Health] = defaultdict(Health)

    def may_try(self, target: Target) -> bool:
        """Say whether its breakers let a call out now."""
        return self._whole.may_try() and self._models[target.model].may_try()

    def begin(self, target: Target) -> Trial:
        """Note that a call goes out."""
        return Trial(self._whole, self._models[target.model])

    def wait_s(self, target: Target) -> float:
        """How long until its breakers let a call out."""
        return max(self._whole.wait_s, self._models[target.model].wait_s)

    def is_limited(self, target: Target) -> bool:
        """Say whether the upstream has asked to be left alone."""
        return self._whole.limited_s > 0 or self._models[target.model].limited_s > 0

    def error_rate(self, target: Target) -> float:
        """The recent error rate of a model there, or of the whole upstream where that is worse."""
        return max(self._whole.error_rate, self._models[target.model].error_rate)

    def state(self) -> UpstreamState:
        """Say how it stands: the worst of its models where the upstream as a whole is well."""
        rows = {name: health for name, health in self._models.items() if health.state != "closed"}
        state: BreakerState = self._whole.state
        detail = ""
        if state == "closed" and rows:
            detail = "; ".join(f"{name}: {health.state}" for name, health in sorted(rows.items())[:8])
            if len(rows) == len(self._models):
                state = "open" if all(health.state == "open" for health in rows.values()) else "half_open"
        elif self._whole.limited_s:
            detail = f"asked to be left alone for {self._whole.limited_s:.0f} s"
        worst = max((health.error_rate for health in self._models.values()), default=0.0)
        latency_ms = self._whole.latency_ms
        return UpstreamState(
            state=state, detail=detail, error_rate=round(max(worst, self._whole.error_rate), 4), latency_ms=latency_ms
        )
