"""Errors a person can act on: one line that says what was needed, what was found, where, and what to do."""


class StopgapError(Exception):
    """Base of every error that is the user's to fix; shown as one line, without a traceback."""


class ConfigError(StopgapError):
    """A configuration file or override is wrong."""


class DataError(StopgapError):
    """A data file is wrong; the message names file, line and field."""


class IndexMismatch(StopgapError):
    """An index directory does not fit the corpus or the configuration."""


class PreflightError(StopgapError):
    """Something the run needs is missing from this machine or cluster."""


class RunError(StopgapError):
    """A run could not start, go on or be read."""


class BackendError(StopgapError):
    """A model or retriever failed on one request; becomes that question's error row."""


class CallTimeout(BackendError):
    """A request got no answer within its time."""


class BackendDead(StopgapError):
    """A model engine can serve nothing any more; its actor must exit and be restarted."""


class PromptTooLong(BackendError):
    """A prompt does not fit the model: the caller may shorten it and ask again.

    Attributes: tokens (measured length of the prompt) and limit (longest prompt accepted).
    """

    def __init__(self, tokens: int, limit: int) -> None:
        super().__init__(f"prompt of {tokens} tokens is over the limit of {limit}")
        self.tokens = tokens
        self.limit = limit

    def __reduce__(self) -> tuple[type["PromptTooLong"], tuple[int, int]]:
        return PromptTooLong, (self.tokens, self.limit)
