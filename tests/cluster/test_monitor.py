"""The run's pulse: totals over runners that come and go."""

from cluster import monitor
from cluster.monitor import Counters, Monitor


def test_a_runner_that_died_keeps_its_work_and_has_nothing_in_flight(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(monitor.time, "monotonic", lambda: now[0])
    pulse = Monitor()
    pulse.report("dead", Counters(done=3, in_flight=12, calls=9), ["a"], None)
    pulse.report("alive", Counters(done=1, in_flight=2), [], "busy")
    first = pulse.snapshot()
    assert (first.totals.done, first.totals.in_flight, first.totals.calls) == (4, 14, 9)
    assert (first.stories, first.last_error) == (("a",), "busy")
    now[0] += monitor.SILENT_S + 1
    pulse.report("alive", Counters(done=2, in_flight=1), [], None)
    later = pulse.snapshot()
    assert (later.totals.done, later.totals.in_flight, later.stories) == (5, 1, ())
