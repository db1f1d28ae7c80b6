"""Hashed bag-of-words vectors."""

from __future__ import annotations

import hashlib

import numpy as np

from engine.config import HashingConfig
from engine.encode.hashing import HashingEncoder


def test_a_word_is_its_hashed_place_and_sign() -> None:
    number = int.from_bytes(hashlib.blake2b(b"paris", digest_size=8).digest(), "little")
    want = np.zeros(64, dtype=np.float32)
    want[(number >> 1) % 64] = 1 if number % 2 else -1
    got = HashingEncoder(HashingConfig(dim=64)).encode(["Paris", "paris?"])
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [want, want])


def test_similarity_is_word_overlap() -> None:
    encoder = HashingEncoder(HashingConfig(dim=4096))
    query = encoder.encode(["who directed the film Jaws"], kind="query")[0]
    near, far = encoder.encode(["The film Jaws: directed by Spielberg", "a museum in Lyon"])
    assert query @ near > 0.5
    assert abs(query @ far) < 0.2


def test_rows_are_unit_and_equal_for_composed_and_decomposed_text() -> None:
    rows = HashingEncoder(HashingConfig()).encode(["Ångström", "A\u030angstro\u0308m", "a a b", "", "?!"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[3], rows[4])


def test_no_texts_give_no_rows() -> None:
    assert HashingEncoder(HashingConfig(dim=8)).encode([]).shape == (0, 8)
