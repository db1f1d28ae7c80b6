"""How a run shows itself: a live line on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from cluster.run import Progress

PLAIN_EVERY_S = 5.0
STORY_EVERY_S = 1.0


class Display:
    """Prints what Progress says. Stories of finished questions are shown at most once a second."""

    def __init__(self, stories: bool = True, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._stories = stories
        self._began = time.monotonic()
        self._stage = ""
        self._line_at = 0.0
        self._story_at = 0.0
        self._first_shown = False
        self._done_before: int | None = None

    def __call__(self, progress: Progress) -> None:
        if progress.stage != self._stage:
            self._stage = progress.stage
            words = {"starting": "starting Ray", "loading": "loading models and index", "running": "answering"}
            self.say(f"{self._clock()} {words[progress.stage]}: {progress.done} of {progress.total} questions done")
        if progress.snapshot is None:
            return
        if self._done_before is None:
            self._done_before = progress.done - progress.snapshot.totals.done
        self._tell(progress)
        now = time.monotonic()
        if self._terminal:
            self._stream.write(f"\r\x1b[2K{self._line(progress)}")
            self._stream.flush()
        elif now - self._line_at >= PLAIN_EVERY_S or progress.done == progress.total:
            self._line_at = now
            self.say(f"{self._clock()} {self._line(progress)}")

    def close(self) -> None:
        """Leaves the cursor on a line of its own."""
        if self._terminal:
            self._stream.write("\n")

    def _tell(self, progress: Progress) -> None:
        snapshot = progress.snapshot
        if snapshot is None:
            return
        if snapshot.first_done_at and not self._first_shown:
            self._first_shown = True
            self.say(f"{self._clock()} first question answered, {progress.elapsed_s:.0f} s after the models were ready")
        now = time.monotonic()
        if self._stories and snapshot.stories and now - self._story_at >= STORY_EVERY_S:
            self._story_at = now
            self.say(snapshot.stories[-1])

    def _line(self, progress: Progress) -> str:
        snapshot = progress.snapshot
        if snapshot is None:
            return ""
        totals, elapsed = snapshot.totals, max(progress.elapsed_s, 1e-9)
        left = progress.total - progress.done
        eta = f"{left * elapsed / totals.done:.0f} s" if totals.done else "-"
        tokens = totals.prompt_tokens + totals.completion_tokens
        errors = f", {totals.errors} errors" if totals.errors else ""
        return (
            f"{progress.done}/{progress.total} questions{errors}, {totals.in_flight} in flight, "
            f"{totals.rounds} rounds, {totals.calls / elapsed:.1f} calls/s, {tokens / elapsed:.0f} tokens/s, ETA {eta}"
        )

    def say(self, text: str) -> None:
        """One line above the live one."""
        self._stream.write(("\r\x1b[2K" if self._terminal else "") + text + "\n")
        self._stream.flush()

    def _clock(self) -> str:
        return f"[{time.monotonic() - self._began:6.1f} s]"
