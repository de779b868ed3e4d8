"""Which stretches of a message are not the user's own words: pastes, quotations, text to be worked on."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shepherd_memory.text.grounding.languages import Languages, any_phrase, pattern

PASTED, QUOTED = "pasted", "quoted"

# Beyond this, the middle of a message is a paste; people say what they want before or after it.
MAX_CHARACTERS = 100_000


@dataclass(frozen=True)
class Stretch:
    """A stretch of folded text that somebody else wrote."""

    start: int
    end: int
    why: str


_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|\|)(?!>>).*$", re.MULTILINE)
_PROMPT = r"(?:[\w.-]+@[\w.-]+[^\n$#%]{0,60}[$#%]|\$|>>>|ps [a-z]:\\[^\n>]*>|[a-z]:\\[^\n>]*>|%)"
# A command with what it printed, up to an empty line.
_TERMINAL = re.compile(rf"^[ \t]*{_PROMPT}[ \t]\S[^\n]*(?:\n(?![ \t]*\n)[^\n]+)*", re.MULTILINE)
_OUTPUT = re.compile(
    r"^[ \t]*(?:\[?\d{4}-\d\d-\d\d[t ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|(?:info|debug|warn(?:ing)?|error|trace|fatal)\b[ :\]]"
    r"|\[(?:info|debug|warn(?:ing)?|error|trace|fatal)\]|traceback \(|file \"[^\"\n]*\", line \d|at [\w.$]+\([^\n]*\)"
    r"|[\w.]*(?:error|exception): |[d-][rwx-]{9}[ .]|(?:commit|author|date): +\S|commit [0-9a-f]{7,}|diff --git|@@ |[+-]{3} [ab]/"
    r"|[a-z_][a-z0-9_]*=\S|\{\"|\}|\"\w+\": |total \d+$|(?:get|post|put|delete) /\S+ http|pid +\w|user +pid"
    r"|(?:def|class|import|from|const|let|var|function|public|private|#include|package|export) [\w{(\"'*.]+.*[:;{(]\s*$"
    r"|[\w.]+\([^\n]*\);|[\w.]+ = [\"'\[{\d][^\n]*$)[^\n]*$",
    re.MULTILINE,
)
_HEADER_NAMES = (
    "from to subject date sent cc reply-to von an betreff gesendet datum de para asunto enviado fecha à objet envoyé"
    " assunto data от кому тема дата 差出人 宛先 件名 日時 发件人 收件人 主题 日期 发送时间"
)
_HEADER = re.compile(rf"^[ \t*]*(?:{any_phrase(_HEADER_NAMES).pattern})[ \t*]*:[ \t*]*\S[^\n]*$", re.MULTILINE)
_FORWARDED = re.compile(
    r"^[^\n]{0,120}(?:forwarded message|original message|begin forwarded|weitergeleitete nachricht|ursprungliche nachricht"
    r"|mensaje (?:reenviado|original)|message (?:transfere|d'origine)|mensagem (?:encaminhada|original)"
    r"|пересылаемое сообщение|исходное сообщение|転送メッセージ|转发邮件|原始邮件"
    r"|\b(?:wrote|schrieb|escribio|a ecrit|escreveu|написал(?:а)?) ?:)[^\n]*$",
    re.MULTILINE,
)
_GREETING = re.compile(
    r"^[ \t]*(?:dear|hi|hello|hey|sehr geehrte[rs]?|liebe[rs]?|hallo|guten tag|estimad[oa]s?|querid[oa]s?|hola|ch[eè]re?s?"
    r"|bonjour|madame|monsieur|prezad[oa]s?|car[oa]s?|ol[aá]|exm[oa]|уважаем\w+|дорог\w+|здравствуйте|привет|尊敬的|亲爱的)"
    r"[ ,]+[^\n,]{2,60},?[ \t]*$|^[^\n]{1,30}(?:様|さん|先生|总|经理)[ \t]*[,、:]?[ \t]*$",
    re.MULTILINE,
)
_CLOSING = re.compile(
    r"^[ \t]*(?:best(?: regards| wishes)?|kind regards|warm regards|regards|sincerely|yours(?: \w+)?|cheers|many thanks|thanks"
    r"|sent from my|mit freundlichen grussen|(?:viele|liebe|beste|herzliche) grusse|lg|vg|mfg|(?:un )?saludos?(?: cordial\w*)?"
    r"|atentamente|un abrazo|cordialement|bien a vous|amicalement|bisous|atenciosamente|(?:um )?abracos?"
    r"|(?:com os melhores )?cumprimentos|с уважением|敬具|よろしくお願い\w*|此致|祝好|敬礼)[^\n]{0,40}$",
    re.MULTILINE,
)
_MARKS = re.compile(
    r"\"[^\"\n]{3,1000}\"|“[^“”\n]{3,1000}”|„[^“”\n]{3,1000}[“”]|«[^»\n]{3,1000}»|「[^」\n]{2,500}」|『[^』\n]{2,500}』"
    r"|(?<![\w'])'[^'\n]{12,1000}'(?!\w)"
)


def foreign_stretches(folded: str, languages: Languages) -> tuple[Stretch, ...]:
    """All of them; they may overlap."""
    return tuple([*_pasted(folded, languages), *_spoken(folded, languages)])


def _pasted(folded: str, languages: Languages) -> Iterator[Stretch]:
    for lines in (_FENCE, _QUOTED_LINE, _TERMINAL, _OUTPUT):
        yield from (Stretch(match.start(), match.end(), PASTED) for match in lines.finditer(folded))
    if len(folded) > MAX_CHARACTERS:
        yield Stretch(MAX_CHARACTERS // 2, len(folded) - MAX_CHARACTERS // 2, PASTED)
    mail = _mail_start(folded)
    if mail is not None:
        yield Stretch(mail, len(folded), PASTED)
    if work := _to_work_on(folded, languages):
        yield work


def _mail_start(folded: str) -> int | None:
    headers = [match.start() for match in _HEADER.finditer(folded)]
    if len(headers) > 1 and folded.count("\n", headers[0], headers[1]) < 4:
        return headers[0]
    if forwarded := _FORWARDED.search(folded):
        return forwarded.start()
    greeting = _GREETING.search(folded)
    if greeting and "\n" in folded[greeting.end() :] and _CLOSING.search(folded, greeting.end()):
        return greeting.start()
    return None


def _to_work_on(folded: str, languages: Languages) -> Stretch | None:
    """What follows "translate this:" and the like."""
    colon = folded.find(":")
    while 0 <= colon < 400:
        line = max(folded.rfind("\n", 0, colon), folded.rfind(". ", 0, colon), folded.rfind("。", 0, colon)) + 1
        asks = pattern("moods", "text_work", languages).search(folded, line, colon)
        # A code block has its own end.
        if asks and not re.match(r"\s*(?:\d|`{3}|~{3})", folded[colon + 1 : colon + 20]):
            return Stretch(colon + 1, len(folded), PASTED)
        colon = folded.find(":", colon + 1)
    return None


def _spoken(folded: str, languages: Languages) -> Iterator[Stretch]:
    """What stands in quotation marks because somebody says it; a title does not."""
    for match in _MARKS.finditer(folded):
        if _is_speech(folded, match, languages):
            yield Stretch(match.start(), match.end(), QUOTED)


def _is_speech(folded: str, match: re.Match[str], languages: Languages) -> bool:
    before = folded[max(0, match.start() - 50) : match.start()]
    after = folded[match.end() : match.end() + 20]
    said = pattern("moods", "said", languages)
    if said.search(before) or said.search(after):
        return True
    inside = match[0][1:-1]
    speaks = pattern("persons", "first", languages).search(inside) or pattern(
        "persons", "possessive", languages
    ).search(inside)
    return speaks is not None and (len(inside.split()) > 2 or len(inside) > 6 and " " not in inside)
