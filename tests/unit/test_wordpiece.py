"""WordPiece gives the ids of the reference tokenizer; `make test-sentence-transformers` compares more."""

import pytest

from shepherd_memory.embedding.onnx import _vocabulary
from shepherd_memory.embedding.wordpiece import WordPiece, read_vocabulary

OURS = WordPiece(read_vocabulary(_vocabulary()))

EXPECTED = {
    "": [101, 102],
    "Hello, world!": [101, 7592, 1010, 2088, 999, 102],
    "I don't think so...": [101, 1045, 2123, 1005, 1056, 2228, 2061, 1012, 1012, 1012, 102],
    "Unbelievably, tokenization works: 42.5%": [
        101,
        4895,
        8671,
        2666,
        3567,
        6321,
        1010,
        19204,
        3989,
        2573,
        1024,
        4413,
        1012,
        1019,
        1003,
        102,
    ],
    "snake_case and camelCase": [101, 7488, 1035, 2553, 1998, 19130, 18382, 102],
    "na\xefve caf\xe9 Z\xfcrich": [101, 15743, 7668, 10204, 102],
    "\u039f\u0394\u039f\u03a3 \u03a3\u0391\u03a3": [101, 1169, 29722, 29730, 29733, 1173, 14608, 29733, 102],
    "\u0130stanbul": [101, 9960, 102],
    "\u6211\u7684\u732b\u53eb\u5c0f\u767d": [101, 1855, 1916, 100, 100, 1829, 1915, 102],
    "\u6771\u4eac\u30bf\u30ef\u30fc": [101, 1879, 1755, 1709, 30262, 30265, 102],
    "\uac00\uac01": [101, 1455, 30006, 29991, 30006, 30020, 102],
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440": [
        101,
        1194,
        16856,
        10325,
        25529,
        15290,
        22919,
        1010,
        1191,
        10325,
        16856,
        102,
    ],
    "e\u0301t\xe9": [101, 3802, 2063, 102],
    "a\x00b\x0bc\td\ne": [101, 5925, 1040, 1041, 102],
    "a\xa0b\u2028c\u200dd": [101, 1037, 1038, 3729, 102],
    "emoji \U0001f600!": [101, 7861, 29147, 2072, 100, 999, 102],
    "\U0002b820\U0002b920": [101, 100, 100, 102],
    "\ufb01ne \uff41\uff42": [101, 1984, 2638, 100, 102],
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": [
        101,
        100,
        102,
    ],
    "a-b/c\\d~e": [101, 1037, 1011, 1038, 1013, 1039, 1032, 1040, 1066, 1041, 102],
    "\u20bf \u20ac5": [101, 100, 1574, 2629, 102],
}


@pytest.mark.parametrize("text", EXPECTED)
def test_ids_are_those_of_the_reference(text: str) -> None:
    assert OURS.encode(text, 10**6) == EXPECTED[text]


def test_a_text_is_cut_to_the_limit_with_both_ends_marked() -> None:
    ids = OURS.encode("unbelievably " * 400, 256)
    assert (len(ids), ids[0], ids[-1]) == (256, 101, 102)
    assert OURS.encode("", 256) == [101, 102]


def test_the_vocabulary_has_a_line_for_each_piece() -> None:
    vocabulary = read_vocabulary(_vocabulary())
    assert len(vocabulary) == 30_522
    assert [vocabulary[name] for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "##s")] == [
        0,
        100,
        101,
        102,
        1996,
        2015,
    ]


def test_names_of_special_tokens_in_a_text_are_plain_words() -> None:
    assert OURS.encode("[MASK] [SEP]", 99)[1:-1].count(102) == 0
    assert 103 not in OURS.encode("[MASK]", 99)
