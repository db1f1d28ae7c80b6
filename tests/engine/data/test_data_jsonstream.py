"""JSON objects out of lines and arrays, whatever the chunk, and errors that name the spot."""

import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.data import jsonstream
from engine.data.jsonstream import records
from engine.data.place import Place
from engine.errors import DataError


def write(folder: Path, content: bytes | str) -> str:
    path = folder / "data.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def read(folder: Path, content: bytes | str) -> list[tuple[int, dict[str, object]]]:
    return [(place.number, record) for place, record in records(write(folder, content))]


def test_lines_keep_their_numbers_past_blank_ones(tmp_path: Path) -> None:
    assert read(tmp_path, '\n{"a": 1}\r\n  \t\r\n\n{"a": 2}') == [(2, {"a": 1}), (5, {"a": 2})]


def test_byte_order_mark_is_not_part_of_the_first_line(tmp_path: Path) -> None:
    assert read(tmp_path, b'\xef\xbb\xbf{"a": 1}\n') == [(1, {"a": 1})]
    assert read(tmp_path, b'\xef\xbb\xbf[{"a": 1}]') == [(0, {"a": 1})]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, separator: str) -> None:
    line = json.dumps({"a": f"one{separator}two"}, ensure_ascii=False)
    assert read(tmp_path, f"{line}\n{line}\n") == [
        (1, {"a": f"one{separator}two"}),
        (2, {"a": f"one{separator}two"}),
    ]


def test_array_elements_are_counted_from_zero(tmp_path: Path) -> None:
    assert read(tmp_path, ' \n[ {"a": [1, {}]} ,\n{"b": "]}"}\n]\n') == [(0, {"a": [1, {}]}), (1, {"b": "]}"})]
    assert read(tmp_path, gzip.compress(b'[{"a": 1}]')) == [(0, {"a": 1})]
    assert read(tmp_path, "[ ]") == []


def test_empty_and_blank_files_have_no_record(tmp_path: Path) -> None:
    assert read(tmp_path, "") == []
    assert read(tmp_path, " \n\n") == []


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(
    objects=st.lists(st.dictionaries(st.text(), _VALUES, max_size=3), max_size=4),
    chunk=st.integers(1, 40),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 0, 7]),
)
def test_array_in_chunks_equals_json_loads(
    objects: list[dict[str, object]], chunk: int, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(objects, ensure_ascii=ascii_only, indent=indent)
    stream = io.BufferedReader(io.BytesIO(text.encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonstream, "_CHUNK", chunk)
        found = [record for _, record in jsonstream._elements("p", stream)]
    assert found == json.loads(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n\n{"a": }\n', r"data\.jsonl, line 3: not JSON \(Expecting value, column 7\)"),
        ('{"a": 1}\n{"a": 1} {"a": 2}\n', r"line 2: not JSON \(Extra data, column 10\)"),
        ('{"a": 1}\n"text"\n', r"line 2: a JSON object was needed, found a string"),
        ('{"a": 1}\nnull\n', r"line 2: a JSON object was needed, found null"),
        ('{"a": 1}\n[1]\n', r"line 2: a JSON object was needed, found a list"),
        (b'{"a": 1}\n{"a": "\xff"}\n', r"line 2: not UTF-8 \(byte 0xff: invalid start byte\)"),
        ('{"a": ' + "9" * 5000 + "}", r"line 1: not JSON that can be read"),
        ('{"a": ' + "[" * 100_000 + "}", r"line 1: not JSON that can be read"),
        ('[{"a": 1}, {"a": }]', r"array index 1: not JSON \(Expecting value\), found '\}\]'"),
        ('[{"a": 1} {"a": 2}]', r"array index 0: ',' or '\]' was needed after this element, found '\{\"a\": 2\}\]'"),
        ('[{"a": 1}, 7]', r"array index 1: a JSON object was needed, found '7\]'"),
        ('[{"a": 1}, ]', r"array index 1: a JSON object was needed"),
        ('[{"a": 1}', r"array index 0: ',' or '\]' was needed after this element, but the file ends here"),
        ('[{"a": 1}, {"a": "cu', r"array index 1: not JSON \(Unterminated string"),
        ("[", r"array index 0: a JSON object was needed, but the file ends here"),
        ('[{"a": 1}] {}', r"more text follows the closing '\]'"),
        (b'[{"a": 1}, {"a": "\xff"}]', r"not UTF-8 \(byte 0xff"),
    ],
)
def test_errors_name_the_spot_and_the_fault(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)


def test_records_before_a_fault_are_given(tmp_path: Path) -> None:
    stream = records(write(tmp_path, '{"a": 1}\nnot\n'))
    assert next(stream) == (Place(str(tmp_path / "data.jsonl"), "line", 1), {"a": 1})
    with pytest.raises(DataError, match="line 2"):
        next(stream)


def test_a_fault_early_in_a_long_array_is_not_looked_for_to_the_end(tmp_path: Path) -> None:
    class Counting(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            found = super().read(size)
            self.taken += len(found)
            return found

    source = Counting(b'[{"a" 1}, ' + b'{"b": 2}, ' * 1_000_000 + b"{}]")
    with pytest.raises(DataError, match=r"array index 0: not JSON \(Expecting ':' delimiter\)"):
        list(jsonstream._elements("p", source))  # type: ignore[arg-type]
    assert source.taken <= 2 << 20
