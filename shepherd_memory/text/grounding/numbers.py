"""Numbers in text: digits with separators and scales, and words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from shepherd_memory.text.words import any_of


@dataclass(frozen=True)
class Number:
    """A plain number."""

    value: Decimal


_NUMBER_NAMES = """
0 zero cero
1 one first
2 two second twice couple pair zwei dos deux dois duas два две двое twee
3 three third drei tres trois tre три drie
4 four fourth vier cuatro quatre quattro quatro четыре
5 five fifth funf cinco cinq cinque пять vijf
6 six sixth sechs seis шесть zes
7 seven seventh sieben siete sette sete семь zeven
8 eight eighth ocho huit otto oito восемь
9 nine ninth neun nueve neuf nove девять negen
10 ten tenth zehn diez dieci dez десять tien
11 eleven eleventh
12 twelve twelfth dozen zwolf doce douze dodici
13 thirteen thirteenth
14 fourteen fourteenth
15 fifteen fifteenth quinze
16 sixteen sixteenth
17 seventeen seventeenth
18 eighteen eighteenth
19 nineteen nineteenth
20 twenty twentieth zwanzig veinte vingt venti vinte двадцать
30 thirty thirtieth dreissig treinta trente
40 forty fortieth vierzig cuarenta quarante
50 fifty fiftieth funfzig cincuenta cinquante
60 sixty sixtieth
70 seventy seventieth
80 eighty eightieth
90 ninety ninetieth
100 hundred hundert cien
"""
NUMBER_WORDS = {
    name: int(line.split()[0]) for line in _NUMBER_NAMES.strip().splitlines() for name in line.split()[1:]
}
_CJK_DIGITS = {
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "十": 10,
}
_SCALES = {
    "k": 1_000, "thousand": 1_000, "m": 1_000_000, "mio": 1_000_000, "million": 1_000_000,
    "millions": 1_000_000, "bn": 1_000_000_000, "billion": 1_000_000_000, "万": 10_000,
}  # fmt: skip
NUMBER_WORD, _SCALE = any_of(" ".join(NUMBER_WORDS)), any_of(" ".join(_SCALES))
ORDINAL = r"(?:st|nd|rd|th|er|\.|º)"
NUMBER_IN_WORDS = rf"\b({NUMBER_WORD})(?:[ -]({NUMBER_WORD}))?\b"
CJK_COUNT = r"([一二两三四五六七八九十])(?=[只个隻匹人名岁歳位条])"
NUMBER = rf"(\d[\d.,:]*\d|\d)({ORDINAL}(?![^\W\d_]))?(?:[ ]?(?P<scale>{_SCALE})(?![^\W_]))?"


def read_number_words(match: re.Match[str]) -> Iterator[Number]:
    first, second = NUMBER_WORDS[match[1]], NUMBER_WORDS.get(match[2] or "", 0)
    yield Number(Decimal(first * second if second == 100 else first + second))


def read_cjk_digit(match: re.Match[str]) -> Iterator[Number]:
    yield Number(Decimal(_CJK_DIGITS[match[1]]))


def read_number(match: re.Match[str]) -> Iterator[Number]:
    written, scale = match[1], _SCALES.get(match["scale"] or "", 1)
    for value in _decimals(written):
        yield Number((value * scale).normalize())
        # A lone "m" is as often metres as millions, so both are kept.
        if match["scale"] == "m":
            yield Number(value.normalize())


_POINTED = re.compile(r"\d+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+")
_COMMAED = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d{1,2}")


def _decimals(written: str) -> Iterator[Decimal]:
    # Longer ones are identifiers, and beyond the precision in which they would compare.
    if len(written) > 24:
        return
    if _POINTED.fullmatch(written):
        yield Decimal(written.replace(",", ""))
    if _COMMAED.fullmatch(written):
        yield Decimal(written.replace(".", "").replace(",", "."))
