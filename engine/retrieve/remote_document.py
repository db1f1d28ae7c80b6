"""A passage as the retrieval protocol of Search-R1 writes it, and as its servers' variants are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.data.context import paragraph
from engine.data.flashrag import title_and_text
from engine.records import Passage


def document_of(passage: Passage) -> dict[str, Any]:
    """The protocol's {id, contents} of a passage: title in quotes on the first line, then the text (METHODS E).

    Quotes inside the title are doubled, as in the wiki-18 corpus, and a line end in it becomes a blank, so that
    passage_of gives the same passage back. `sentences` is added where there are any; other clients ignore it.
    """
    title = " ".join(passage.title.splitlines()).replace('"', '""')
    document: dict[str, Any] = {"id": passage.id, "contents": f'"{title}"\n{passage.text}'}
    if passage.sentences:
        document["sentences"] = passage.sentences
    return document


def passage_of(document: Any) -> Passage:
    """The passage in a document of any form that servers of this protocol send.

    {contents} holds the title on its first line, which loses its quotes, and the text on the others (one line alone
    is text); a bare string is taken as contents; {title, text} is used where there are no contents. A document
    without an id gets the hash of its title and text, which is the same in every reply. Half a surrogate pair
    becomes a replacement character. Raises ValueError saying what is missing or of the wrong type.
    """
    fields = {"contents": document} if isinstance(document, str) else document
    if not isinstance(fields, dict):
        raise ValueError(f"a document is {_shown(document)}, not an object")
    if fields.get("contents") is not None:
        title, text = title_and_text(_text(fields, "contents"))
    elif fields.get("text") is not None:
        title, text = _text(fields, "title") if fields.get("title") is not None else "", _text(fields, "text")
    else:
        raise ValueError(f"a document has neither contents nor text; its fields are {sorted(fields)}")
    sentences = fields.get("sentences") or ()
    if not isinstance(sentences, (list, tuple)) or not all(isinstance(sentence, str) for sentence in sentences):
        raise ValueError("a document's sentences are no list of strings")
    passage = paragraph(title, text, tuple(encodable(sentence) for sentence in sentences))
    name = _identifier(fields.get("id"))
    return replace(passage, id=name) if name else passage


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON escapes can produce, joined or replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(fields: dict[str, Any], name: str) -> str:
    if not isinstance(fields[name], str):
        raise ValueError(f"a document's {name} is {_shown(fields[name])}, not a string")
    return encodable(fields[name])


def _identifier(value: Any) -> str:
    """The id as text; empty where there is none to use."""
    if isinstance(value, str):
        return encodable(value) if value.strip() else ""
    return str(value) if type(value) is int else ""


def _shown(value: Any) -> str:
    return repr(value)[:60]
