"""How a passage is written into a Lucene index and read back from it."""

from __future__ import annotations

import json

from engine.records import Passage


def passage_to_json(passage: Passage) -> str:
    """One line of Anserini's JsonCollection.

    The indexed field `contents` is title and text joined by a space (METHODS A4); the text itself is not written
    twice. Pure ASCII, so no character of a text can be taken for a line end.
    """
    return json.dumps(
        {
            "id": passage.id,
            "contents": f"{passage.title} {passage.text}",
            "title": passage.title,
            "sentences": passage.sentences,
        }
    )


def json_to_passage(raw: str) -> Passage:
    """The passage that passage_to_json wrote, whatever white space its JSON gained on the way."""
    fields = json.loads(raw)
    title = fields["title"]
    return Passage(fields["id"], title, fields["contents"][len(title) + 1 :], tuple(fields["sentences"]))
