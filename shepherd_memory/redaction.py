"""Secrets found in text and replaced by a marker that names their kind."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count

Span = tuple[int, int]
Judge = Callable[[re.Match[str]], Span | None]


@dataclass(frozen=True)
class Finding:
    """A secret of `kind` at `text[start:end]`."""

    kind: str
    start: int
    end: int


def redact(text: str) -> str:
    """Replace every secret by `[redacted:KIND]`; doing it twice changes nothing more."""
    parts = []
    position = 0
    for finding in find_secrets(text):
        parts += [text[position : finding.start], f"[redacted:{finding.kind}]"]
        position = finding.end
    return "".join([*parts, text[position:]])


def redact_json(value: object) -> object:
    """Redact every string of nested dicts and lists, keys too, and whole values under telling keys."""
    holder: list[object] = []
    # A stack of our own: hostile JSON nests deeper than Python recurses.
    pending: list[_Level] = [([value], holder, None)]
    while pending:
        pending += _copy_level(*pending.pop())
    return holder[0]


def find_secrets(text: str) -> list[Finding]:
    """List the secrets of a text, in order and without overlaps."""
    found: list[Finding] = []
    pieces = [(0, len(text))]
    for _ in range(_MAX_ROUNDS):
        pieces = [gap for piece in _without_opaque(text, pieces) for gap in _search(text, piece, found)]
        if not pieces:
            break
    # Only a text built for it still yields secrets here; hiding the rest keeps the time linear.
    for start, end in _without_opaque(text, pieces):
        if _match_rules(text[start:end]):
            found.append(Finding("unreadable", start, end))
    return sorted(found, key=lambda finding: finding.start)


# Cutting out a secret gives its neighbours new borders, where another rule may match; each
# remaining piece is therefore searched again by itself, which is exactly what a second `redact`
# sees. Ordinary text settles in two rounds.
_MAX_ROUNDS = 6

_OPAQUE = re.compile(
    r"\[redacted:[a-z0-9-]{1,40}\]"
    r"|data:[\w/.+;=-]{0,100};base64,[A-Za-z0-9+/]{16,}+={0,2}+(?![\w.:@~=-])",
    re.ASCII,
)


def _without_opaque(text: str, pieces: list[Span]) -> Iterator[Span]:
    """Leave out our own markers and inline base64 files."""
    for start, end in pieces:
        part = text[start:end]
        if "[redacted:" in part or ";base64," in part:
            yield from _gaps(
                (start, end), [_shifted(match.span(), start) for match in _OPAQUE.finditer(part)]
            )
        elif part:
            yield start, end


def _search(text: str, piece: Span, found: list[Finding]) -> list[Span]:
    """Add a piece's secrets to `found`; return what is left to search, nothing if there were none."""
    hits = [
        Finding(hit.kind, *_shifted((hit.start, hit.end), piece[0])) for hit in _hits(text[slice(*piece)])
    ]
    found += hits
    return list(_gaps(piece, [(hit.start, hit.end) for hit in hits])) if hits else []


def _gaps(piece: Span, holes: list[Span]) -> Iterator[Span]:
    start, end = piece
    for hole_start, hole_end in [*holes, (end, end)]:
        if start < hole_start:
            yield start, hole_start
        start = hole_end


def _shifted(span: Span, offset: int) -> Span:
    return span[0] + offset, span[1] + offset


_ZERO_WIDTH = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def _hits(text: str) -> list[Finding]:
    """Match the rules as a reader sees the text: without zero-width characters."""
    if text.isascii() or not _ZERO_WIDTH.search(text):
        return _match_rules(text)
    kept = [index for index, char in enumerate(text) if not _ZERO_WIDTH.match(char)]
    hits = _match_rules("".join([text[index] for index in kept]))
    return [Finding(hit.kind, kept[hit.start], kept[hit.end - 1] + 1) for hit in hits]


# No secret of the token rules is shorter, and prose has few words as long.
_SHORTEST_TOKEN = 20


def _match_rules(text: str) -> list[Finding]:
    long_words = " ".join([word for word in text.split() if len(word) >= _SHORTEST_TOKEN])
    spans = _TOKENS.spans(text, text, within=long_words)
    # Lower-casing keeps every position, but for this one letter of all of Unicode.
    lowered = text.replace("\u0130", "i").lower()
    spans += _PHRASES.spans(text, lowered, within=lowered)
    return _merged(sorted(spans))


def _merged(spans: list[tuple[int, int, int, str]]) -> list[Finding]:
    """Join overlapping spans of start, end, rank and kind; the lowest rank names the whole."""
    merged: list[tuple[int, int, int, str]] = []
    for span in spans:
        if merged and span[0] < merged[-1][1]:
            last = merged[-1]
            merged[-1] = (last[0], max(last[1], span[1]), *min(last[2:], span[2:]))
        else:
            merged.append(span)
    return [Finding(kind, start, end) for start, end, _, kind in merged]


@dataclass(frozen=True)
class _Rule:
    """A pattern, tried only where one of its anchors stands.

    The pattern starts at the anchor; that of a `floating` rule merely holds it, and searches the whole text.
    `judge` gets each match and returns the span to hide, or None. A pattern either cannot start inside its
    own run of characters or repeats within bounds, so that no text takes quadratic time.
    """

    kind: str
    anchors: frozenset[str]
    pattern: re.Pattern[str]
    judge: Judge
    floating: bool

    def spans(self, text: str, searched: str, anchors: Iterable[str]) -> Iterator[Span]:
        if self.floating:
            yield from filter(None, map(self.judge, self.pattern.finditer(text)))
            return
        for anchor in anchors:
            yield from self._anchored(text, searched, anchor)

    def _anchored(self, text: str, searched: str, anchor: str) -> Iterator[Span]:
        # str.find is many times faster than letting the pattern search.
        position = searched.find(anchor)
        while position >= 0:
            match = self.pattern.match(text, position)
            span = self.judge(match) if match else None
            if span:
                yield span
            position = searched.find(anchor, max(position + 1, _resume(match, span)))


def _resume(match: re.Match[str] | None, span: Span | None) -> int:
    """Go on behind a match, but inside a refused value: `password: password=...` names two."""
    if span:
        return span[1]
    return match.end() if match and "bare" not in match.re.groupindex else 0


@dataclass(frozen=True)
class _RuleTable:
    """Rules in order of rank; ranks start at `first_rank`."""

    first_rank: int
    rules: tuple[_Rule, ...]
    anchors: frozenset[str]

    def spans(self, text: str, searched: str, within: str) -> list[tuple[int, int, int, str]]:
        """Find anchors in `searched`, a text or its lower case, but only those that `within` has at all."""
        present = {anchor for anchor in self.anchors if anchor in within}
        return [
            (*span, rank, rule.kind)
            for rank, rule in enumerate(self.rules, self.first_rank)
            if (anchors := present & rule.anchors)
            for span in rule.spans(text, searched, anchors)
        ]


def _table(first_rank: int, *rules: _Rule) -> _RuleTable:
    return _RuleTable(first_rank, rules, frozenset().union(*(rule.anchors for rule in rules)))


def _rule(
    kind: str,
    anchors: str,
    pattern: str,
    judge: Judge | None = None,
    flags: int = re.ASCII,
    floating: bool = False,
) -> _Rule:
    return _Rule(
        kind, frozenset(anchors.split()), re.compile(pattern, flags), judge or _secret_span, floating
    )


def _secret_span(match: re.Match[str]) -> Span:
    return match.span("secret" if "secret" in match.re.groupindex else 0)


def _varied_span(match: re.Match[str]) -> Span | None:
    """Refuse `ghp_xxxxxxxx` and other fill-ins."""
    span = _secret_span(match)
    return span if len(set(match.string[slice(*span)])) > 8 else None


def _random_span(match: re.Match[str]) -> Span | None:
    """Refuse hyphenated words behind a prefix as short as `sk-`."""
    token = match[0]
    is_random = any(c.isdigit() for c in token) and re.search(
        r"[A-Za-z0-9]{16}|[a-z][A-Z]|[A-Z][a-z]*\d", token
    )
    return _varied_span(match) if is_random else None


# Not \b: a token may follow a letter that ends an escape (\n in JSON, %3D in a URL, a colour code).
_START = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm)|(?<=;\d\dm))"
)
# A long token copied from a terminal is broken at the edge of the window.
_WRAPPED = r"(?:[\w-]|(?<=[\w-]{60})\r?\n(?=[\w-]{12}))"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-fA-F]"
_BASE58_CLASS = "[1-9A-HJ-NP-Za-km-z]"
_UUID = rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"

# Kind, fixed beginnings, pattern of the rest. An earlier row names what two match.
_PREFIXED: tuple[tuple[str, str, str], ...] = (
    ("anthropic-key", "sk-ant-", rf"{_WRAPPED}{{20,}}"),
    ("openrouter-key", "sk-or-", r"[\w-]{20,}"),
    ("groq-key", "gsk_", rf"{_ALNUM}{{30,}}"),
    ("huggingface-token", "hf_ api_org_", rf"{_ALNUM}{{30,}}"),
    ("replicate-token", "r8_", rf"{_ALNUM}{{30,}}"),
    ("perplexity-key", "pplx-", rf"{_ALNUM}{{30,}}"),
    ("xai-key", "xai-", rf"{_ALNUM}{{40,}}"),
    ("cerebras-key", "csk-", rf"{_ALNUM}{{30,}}"),
    ("nvidia-key", "nvapi-", r"[\w-]{40,}"),
    ("tavily-key", "tvly-", r"[\w-]{20,}"),
    ("langsmith-key", "lsv2_pt_ lsv2_sk_", rf"{_HEX}{{20,}}(?:_{_HEX}+)?"),
    ("pinecone-key", "pcsk_", r"\w{30,}"),
    ("jina-key", "jina_", r"[\w-]{30,}"),
    ("firecrawl-key", "fc-", rf"{_HEX}{{32}}(?!{_ALNUM})"),
    ("elevenlabs-key", "sk_", rf"{_HEX}{{48}}(?!{_ALNUM})"),
    ("google-key", "AIza", r"[\w-]{35,}"),
    ("google-oauth", "GOCSPX-", r"[\w-]{20,}"),
    ("google-oauth", "ya29.", r"[\w.-]{20,}"),
    ("google-oauth", "1//0", r"[\w-]{40,}"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_ALNUM}{{30,}}"),
    ("github-token", "github_pat_", rf"{_WRAPPED}{{40,}}"),
    ("gitlab-token", "glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glimt- glagent- gloas-", r"[\w.-]{20,}"),
    ("gitlab-token", "GR1348941", r"[\w-]{20,}"),
    ("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"[\w%-]{15,}"),
    ("slack-token", "xoxe.xoxb- xoxe.xoxp-", r"[\w-]{20,}"),
    ("aws-key", "AKIA ASIA ABIA ACCA", rf"[A-Z0-9]{{16}}(?!{_ALNUM})"),
    ("aws-key", "ABSK", r"[A-Za-z0-9+/]{109,}={0,2}"),
    ("stripe-key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", rf"{_ALNUM}{{16,}}"),
    ("stripe-key", "whsec_", r"[A-Za-z0-9+/]{20,}=*"),
    ("twilio-key", "SK", rf"{_HEX}{{32}}(?!{_ALNUM})"),
    ("sendgrid-key", "SG.", r"[\w-]{16,}\.[\w-]{16,}"),
    ("npm-token", "npm_", rf"{_ALNUM}{{30,}}"),
    ("pypi-token", "pypi-AgE", rf"{_WRAPPED}{{40,}}"),
    ("docker-token", "dckr_pat_ dckr_oat_", r"[\w-]{20,}"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", rf"{_HEX}{{40,}}"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", rf"{_HEX}{{32,}}"),
    ("square-token", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}"),
    ("square-token", "EAAA", r"[\w-]{60,}"),
    ("facebook-token", "EAA", rf"{_ALNUM}{{100,}}"),
    ("mailgun-key", "key-", rf"{_HEX}{{32}}(?!{_ALNUM})"),
    ("brevo-key", "xkeysib-", rf"{_HEX}{{40,}}-{_ALNUM}+"),
    ("resend-key", "re_", rf"{_ALNUM}{{8}}_{_ALNUM}{{20,}}"),
    ("databricks-token", "dapi", rf"{_HEX}{{32}}(?:-\d)?(?!{_ALNUM})"),
    ("atlassian-token", "ATATT3 ATCTT3 ATSTT3 ATBB", r"[\w=-]{28,}"),
    ("linear-key", "lin_api_ lin_oauth_", rf"{_ALNUM}{{30,}}"),
    ("notion-token", "ntn_ secret_", rf"{_ALNUM}{{40,}}"),
    ("vault-token", "hvs. hvb. hvr.", r"[\w-]{20,}"),
    ("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    ("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[\w.-]{30,}"),
    ("postman-key", "PMAK-", r"[\w-]{40,}"),
    ("pulumi-token", "pul-", rf"{_HEX}{{40}}"),
    ("sentry-token", "sntryu_ sntrys_", r"[\w+/=]{40,}"),
    ("grafana-token", "glsa_ glc_", r"[\w+/=]{32,}"),
    ("newrelic-key", "NRAK-", r"[A-Z0-9]{20,}"),
    ("figma-token", "figd_", r"[\w-]{30,}"),
    ("airtable-token", "pat", rf"{_ALNUM}{{14}}\.{_HEX}{{64}}"),
    ("hubspot-token", "pat-na1- pat-na2- pat-eu1-", _UUID),
    ("supabase-key", "sbp_", rf"{_HEX}{{40}}"),
    ("supabase-key", "sb_secret_", r"[\w-]{20,}"),
    ("netlify-token", "nfp_", rf"{_ALNUM}{{30,}}"),
    ("fly-token", "fm2_", r"[A-Za-z0-9+/=,_]{60,}"),
    ("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.-]{30,}"),
    ("tailscale-key", "tskey-", r"[\w-]{20,}"),
    ("dynatrace-token", "dt0c01.", r"[A-Z0-9]{20,}\.[A-Z0-9]{60,}"),
    ("rubygems-key", "rubygems_", rf"{_HEX}{{40,}}"),
    ("cratesio-token", "cio", rf"{_ALNUM}{{32}}(?!{_ALNUM})"),
    ("sonar-token", "sqp_ squ_ sqa_", rf"{_HEX}{{40}}"),
    ("artifactory-key", "AKCp", rf"{_ALNUM}{{60,}}"),
    ("posthog-key", "phx_", rf"{_ALNUM}{{30,}}"),
    ("onepassword-token", "ops_eyJ", r"[\w=+/-]{60,}"),
    ("crypto-key", "xprv", rf"{_BASE58_CLASS}{{90,}}"),
)


def _prefix_rule(kind: str, prefixes: str, rest: str) -> _Rule:
    heads = "|".join(re.escape(prefix) for prefix in prefixes.split())
    return _rule(kind, prefixes, rf"{_START}(?:{heads}){rest}", _varied_span)


# Between the lines of a key: line ends, the same escaped once or twice, quoting and string joins.
_KEY_BREAK = r"(?:\s|\\+[nrt]|[\"'+>|,]){1,60}+"
_KEY_LINES = (
    rf"(?:{_KEY_BREAK}(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash)[: ][^\n\\]{{0,100}}"
    r"|[A-Za-z0-9+/]{16,}+={0,2}))++"
    rf"(?:{_KEY_BREAK}[A-Za-z0-9+/]{{1,15}}={{0,2}}(?={_KEY_BREAK}[=-]))?"
    rf"(?:{_KEY_BREAK}=[A-Za-z0-9+/]{{4}}(?={_KEY_BREAK}-))?"
)
_PEM = (
    rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_KEY_LINES}"
    rf"(?:{_KEY_BREAK}-----END [A-Z0-9 ]{{0,60}}-----)?"
)


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _bitcoin_span(match: re.Match[str]) -> Span | None:
    """A Bitcoin key carries its own checksum, so a match is certain."""
    number = 0
    for char in match[0]:
        number = number * 58 + _BASE58.index(char)
    raw = number.to_bytes(40, "big").lstrip(b"\0")
    return match.span() if sha256(sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:] else None


def _azure_client_span(match: re.Match[str]) -> Span:
    return match.start() - 3, match.end()


_TOKENS = _table(
    0,
    *(_prefix_rule(*row) for row in _PREFIXED),
    _rule("openai-key", "sk-", rf"{_START}sk-{_WRAPPED}{{16,}}", _random_span),
    _rule("jwt", "eyJ", rf"{_START}eyJ{_WRAPPED}{{8,}}\.{_WRAPPED}{{8,}}(?:\.{_WRAPPED}*){{0,3}}"),
    _rule(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{20,})",
    ),
    _rule("discord-webhook", "/api/webhooks/", r"/api/webhooks/\d{10,25}/(?P<secret>[\w-]{40,})"),
    _rule("azure-key", "AccountKey= SharedAccessKey=", r"\w+Key=(?P<secret>[A-Za-z0-9+/]{40,}=*)"),
    _rule("azure-key", "?sig= &sig=", r".sig=(?P<secret>[A-Za-z0-9%+/_-]{30,}=*)"),
    _rule("azure-key", "7Q~ 8Q~", r"[78]Q~(?<=[\w.~-]{6})[\w.~-]{31,36}", _azure_client_span),
    _rule("aws-signature", "X-Amz-Signature=", rf"X-Amz-Signature=(?P<secret>{_HEX}{{64}})"),
    _rule("terraform-token", ".atlasv1.", r"\.atlasv1\.(?P<secret>[\w-]{50,})"),
    _rule("totp-secret", "otpauth://", r"otpauth://[^\s\"']{0,300}?secret=(?P<secret>[A-Za-z2-7]{16,})"),
    _rule("url-credentials", "://", r"://(?P<secret>[A-Za-z0-9_-]{20,300})@(?=\w)", _random_span),
    _rule("telegram-token", ":AA", r"\d{8,11}:AA[\w-]{30,}", floating=True),
    _rule(
        "discord-token",
        ".",
        r"[MNO](?<![\w.-].)[\w-]{22,28}\.[\w-]{6}\.[\w-]{27,45}(?![\w.-])",
        floating=True,
    ),
    _rule("mailchimp-key", "-us", rf"{_HEX}{{32}}-us\d{{1,2}}(?!\d)", floating=True),
    _rule(
        "crypto-key",
        "5 K L",
        rf"[5KL](?<!{_ALNUM}.){_BASE58_CLASS}{{50,51}}(?!{_ALNUM})",
        _bitcoin_span,
        floating=True,
    ),
)


# What is written where a password would stand, but is none: types, verdicts, instructions.
_ORDINARY_WORDS = """
    a about above accepted active again all already also always an and any anymore anything array as
    ask async at auto await bad basic bearer because been before below blank bool boolean bytes
    callable case changed char click common compromised confidential config correct corrupted
    created default deleted denied different dict disabled empty enabled encrypted enter env
    environment error exactly exists expired exposed fail failed false field file fine five for
    forgotten four from gone good hard hashed here hidden hint if important in include incorrect
    input int integer invalid is it just keychain keyring known leaked length like list locked long
    lost mandatory masked missing must my needed never new next nil no none nope not nothing null
    number object of off ok okay old omit on one only open optional or our out passphrase password
    passwords path plain plaintext please private prompt protected public random read redacted
    required reset safe same saved secret secrets secretstr secure see sensitive sent set short
    shown simple six so some someone something still stored str strict string strong stronger test
    that the their then there these this three to today token tokens tomorrow too trivial true two
    type typed unchanged undefined unique unknown unsafe unset updated used user username valid
    value vault verified very visible void was weak what when where which who why wrong yes
    yesterday you your bitwarden keepass lastpass

    abgelaufen falsch korrekt muss nicht richtig sehr ungültig vergessen zu
    court courte expiré incorrecte oublié trop
    corta demasiado expirada incorrecta incorrecto larga muy vencida
    correta errada errado inválida muito
    corretta errata sbagliata scaduta troppo
    niet onjuist te verlopen błędne nieprawidłowe
    неверный неправильный истёк не слишком
"""
_ORDINARY = frozenset(_ORDINARY_WORDS.split())
_FUNCTION_WORDS = frozenset(
    (
        "and",
        "are",
        "can",
        "for",
        "from",
        "has",
        "have",
        "not",
        "than",
        "that",
        "the",
        "this",
        "too",
        "was",
        "with",
        "you",
    )
)
_TEMPLATE = re.compile(
    r"\$[({A-Za-z_]|!vault\b|\{\{|\{[A-Za-z_.]*\}|%[({A-Za-z_]+[)}%]|<[^>]*>?|@@|\.{3}|…"
    r"|(?:your|my|some|the|an?|enter|insert|put|add|replace|example|dummy|fake|sample)(?:[-_ ]|$)",
    re.IGNORECASE,
)
_MASKED = re.compile(r"[*xX•●·.#_?-]*")
_CODE = re.compile(
    r"[A-Za-z_][\w.]*(?:\(|\[|::|->)|[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+$|[A-Z]+(?:_[A-Z]+)+$|(?:self|this)\.|[(\[{:]|\w+\]"
)
_PLACE = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\]{1,2}\w|https?://|[\w.+-]+@[\w-]+\.\w")
_TECHNICAL = re.compile(
    r"#[0-9a-f]{3,8}$|(?:sha|md|aes|base|utf|bcrypt|argon|pbkdf|scrypt|oauth|rfc|iso|v|ascii|http"
    r"|\d+(?:fa|st|nd|rd|th|x|k|m|mb|ms|h|d)|\d+(?:-|$))-?\d*(?:[-_. /][a-z0-9]+)*$",
    re.IGNORECASE,
)
_WORDS = re.compile("(?:[^\\W\\d_]+|\\d{1,4})(?:[-_/.'\u2019:]+(?:[^\\W\\d_]+|\\d{1,4}))*$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d?[:.]\d\d")


def _is_placeholder(value: str) -> bool:
    return bool(_TEMPLATE.match(value) or _MASKED.fullmatch(value)) or value.lower() in _ORDINARY


def _has_letter_and_digit(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_key_like(value: str) -> bool:
    """Random enough for `token = ...`, where most values are code or words."""
    if len(value) < 6 or any(known.match(value) for known in (_WORDS, _TECHNICAL, _DATE, _PLACE, _CODE)):
        return False
    looks_random = _has_letter_and_digit(value) or len(re.findall("[a-z][A-Z]", value)) > len(value) / 8
    return looks_random and not _is_placeholder(value)


def _is_password_like(value: str) -> bool:
    """Plainly no word: four digits or more, or letters with digits or symbols among them."""
    if value.isdigit():
        return len(value) > 3
    if len(value) < 4 or not _has_substance(value) or _is_placeholder(value):
        return False
    if _PLACE.match(value) or _TECHNICAL.match(value):
        return False
    return _has_letter_and_digit(value) or not _WORDS.match(value.rstrip("!?"))


_SPACED_LETTER = re.compile("[^\\W_\u2e80-\U0010ffff]")


def _has_substance(value: str) -> bool:
    """Refuse punctuation, such as the `}],` between two JSON strings, and words of scripts without spaces."""
    return len(_SPACED_LETTER.findall(value, 0, 40)) > 2


def _is_word_password(value: str) -> bool:
    """A single word that may well be a password, such as `swordfish`."""
    return len(value) > 4 and value.isalpha() and _has_substance(value) and not _is_placeholder(value)


def _is_quoted_password(value: str) -> bool:
    if not _has_substance(value) or _is_placeholder(value) or _PLACE.match(value):
        return False
    return not any(word.strip(".,:!?").lower() in _ORDINARY for word in value.split(" "))


_MAX_VALUE = 200
_REST = re.compile(r"[^\s\"'`<>,;&|\\]*")
_CLAUSE_END = re.compile(r"[*_`\"'”)\]]{0,3}[ \t]*(?:[.,;!?)](?:\s|$)|[\r\n]|[,;]|\\+[nr]|$)")
_OPENING = {")": "(", "]": "[", "}": "{"}


def _bare_span(match: re.Match[str]) -> Span:
    start, end = match.span("bare")
    return start, _trimmed(match.string, start, end)


def _extended(match: re.Match[str], span: Span) -> Span:
    """Take in what the bounded pattern left of a very long value."""
    rest = _REST.match(match.string, span[1]) if span[1] - span[0] >= _MAX_VALUE else None
    return span[0], rest.end() if rest else span[1]


def _trimmed(text: str, start: int, end: int) -> int:
    """Leave the sentence its full stop and the call its bracket."""
    while end > start and text[end - 1] in ".,;:)]}*":
        opening = _OPENING.get(text[end - 1])
        if opening and opening in text[start:end]:
            break
        end -= 1
    return end


def _value(match: re.Match[str], span: Span) -> str:
    return match.string[slice(*span)]


def _assigned_password(match: re.Match[str]) -> Span | None:
    if match["quoted"] is not None:
        return match.span("quoted") if _is_quoted_password(match["quoted"]) else None
    span = _bare_span(match)
    value = _value(match, span)
    if _CODE.match(value) or _NAMES_SECRET.search(value[-40:]):
        return None
    is_password = _is_password_like(value) or _is_assigned_word(match, value, span[1])
    return _extended(match, span) if is_password else None


def _is_assigned_word(match: re.Match[str], value: str, end: int) -> bool:
    """`password: swordfish` at the end of a line, `password=swordfish` unless a call goes on."""
    if ":" in match["separator"]:
        is_whole = bool(_CLAUSE_END.match(match.string, end))
    else:
        is_whole = match.string[end : end + 1] not in {",", ")", "(", "[", "."}
    return is_whole and _is_word_password(value)


def _assigned_key(match: re.Match[str]) -> Span | None:
    span = _bare_span(match) if match["quoted"] is None else match.span("quoted")
    return _extended(match, span) if _is_key_like(_value(match, span)) else None


def _option_span(match: re.Match[str]) -> Span | None:
    """`--token abc123`; without the dashes, only what is as long as a key."""
    span = _told_span(match)
    before = match.string[max(0, match.start() - 40) : match.start()]
    is_sure = span and (span[1] - span[0] >= 16 or re.search(r"--[\w-]*$", before))
    return span if is_sure else None


_STRICT_KEY = re.compile(r"(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{20,}", re.ASCII)


def _plain_key_span(match: re.Match[str]) -> Span | None:
    """A mere `key` names anything; its value must be random beyond doubt."""
    span = _assigned_key(match)
    return span if span and _STRICT_KEY.fullmatch(_value(match, span)) else None


def _element_span(match: re.Match[str]) -> Span | None:
    before = match.string[max(0, match.start() - 40) : match.start()]
    is_element = re.search(r"<[\w:.-]*$", before)
    return None if not is_element or _is_placeholder(match["bare"]) else match.span("bare")


def _spoken_password(match: re.Match[str]) -> Span | None:
    if match["quoted"] is not None:
        return match.span("quoted") if _is_quoted_password(match["quoted"]) else None
    span = _bare_span(match)
    value = _value(match, span)
    if _CODE.match(value):
        return None
    return span if _is_password_like(value) or _is_final_word(match, value, span[1]) else None


def _is_final_word(match: re.Match[str], value: str, end: int) -> bool:
    """`My password is swordfish.`, not `my password is swordfish related`, nor `... is compromised`."""
    is_predicate = re.search(r"(?:ed|ing|ly|able|ible|less|ful|ial|ous|ive|ic|ent|ant|er|est)$", value)
    return not is_predicate and _is_word_password(value) and bool(_CLAUSE_END.match(match.string, end))


def _spoken_key(match: re.Match[str]) -> Span | None:
    span = _assigned_key(match)
    return span if span and span[1] - span[0] > 7 else None


def _told_span(match: re.Match[str]) -> Span | None:
    """Without a verb between (`password hunter2`) only what is plainly no word counts."""
    span = match.span("quoted") if match["quoted"] is not None else _bare_span(match)
    value = _value(match, span)
    return span if " " not in value and _has_letter_and_digit(value) and _is_key_like(value) else None


_SAID_BEFORE = re.compile(r"(\S{4,100})\s+as\s+(?:(?:the|my|your|an?|our)\s+)?(?:\w{1,20}\s+)?$")


def _said_before_span(match: re.Match[str]) -> Span | None:
    """`use hunter2 as the password`: the secret is the word before."""
    offset = max(0, match.start() - 160)
    before = match.string[offset : match.start()]
    said = _SAID_BEFORE.search(before) if " as " in before[-40:] else None
    if not said or not _is_password_like(said[1].strip("\"'`,")) or _CODE.match(said[1]):
        return None
    return _shifted(said.span(1), offset)


def _unless_placeholder(match: re.Match[str]) -> Span | None:
    return None if _is_placeholder(match["secret"]) else match.span("secret")


def _if_key(match: re.Match[str]) -> Span | None:
    return match.span("secret") if _is_key_like(match["secret"]) else None


def _if_quoted_password(match: re.Match[str]) -> Span | None:
    return match.span("secret") if _is_quoted_password(match["secret"]) else None


def _phrase_span(match: re.Match[str]) -> Span | None:
    words = set(match["secret"].lower().split())
    return None if words & _FUNCTION_WORDS else match.span("secret")


def _card_span(match: re.Match[str]) -> Span | None:
    digits = re.sub(r"\D", "", match[0])
    is_issued = _CARD_ISSUER.match(digits)
    return match.span() if is_issued and len(set(digits)) > 2 and _is_luhn(digits) else None


_CARD_ISSUER = re.compile(
    r"4\d{15}$|5[1-5]\d{14}$|2[2-7]\d{14}$|6(?:011|5\d\d)\d{12}$|35\d{14}$|3[47]\d{13}$"
)


def _is_luhn(digits: str) -> bool:
    doubled = [int(d) * 2 if i % 2 else int(d) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _preceded(words: str) -> str:
    """A look-behind for any of the words, directly before or one separator away."""
    return "(?:" + "|".join(rf"(?<={word})|(?<={word}[_\-. ])" for word in words.split()) + ")"


_PASSWORD_NAME = (
    r"(?:pass(?:word|wd|phrase|code|wort)|passe(?<=mot de passe)|(?<![^\W_])(?:pass|pwd?|psw)(?![^\W_])"
    r"|(?-i:(?:Pass|Pwd)(?<=[a-z]....))(?![^\W_])|kennwort|contrase[ñn]a|senha|пароль|密码|密碼|パスワード|비밀번호"
    r"|wachtwoord|hasło|lösenord)"
)
_PASSWORD_ANCHORS = (
    "pass pw psw kennwort contrase senha пароль 密码 密碼 パスワード 비밀번호 wachtwoord hasło lösenord"
)
_KEY_OWNERS = _preceded(
    "api access secret private encrypt encryption signing auth master account app application shared storage"
    " service consumer subscription hmac webhook deploy admin root jwt cipher crypto aes license ssh server"
)
_KEY_NAME = (
    rf"(?:{_KEY_OWNERS}key|token|secret|credentials?|(?<![^\W_])(?:auth|creds?)(?![^\W_])|authorization)"
)
_KEY_ANCHORS = "key token secret cred auth"
_NAME_SUFFIX = r"(?:[_-]?(?:\d{1,2}|prod|production|dev|staging|test|live|old|new|b64|base64|value))?"
_NAMES_SECRET = re.compile(rf"(?:{_PASSWORD_NAME}|{_KEY_NAME})$", re.IGNORECASE)
_QUOTED = (
    rf"(?P<quote>\\{{0,3}}[\"'`])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\r\n])){{1,{_MAX_VALUE}}}?)(?P=quote)"
)
# A comma or ampersand ends a value where the next `name=` begins; otherwise it may be part of it.
_BARE = (
    r"(?P<bare>[^\s\"'`<>,;&|=\\](?:[^\s\"'`<>,;&|\\]|[,;&|](?!\s|$|[A-Za-z_][\w .-]{0,40}=)"
    rf"|\\(?![nrtu\"'\\])){{0,{_MAX_VALUE}}})"
)
_VALUE = rf"(?:[bfru]{{0,2}}{_QUOTED}|\\{{0,3}}[\"'`]?{_BARE})"
_SEPARATOR = (
    r"[\\\"'`*_\])]{0,6}[ \t]{0,8}(?P<separator>:=|=>|={1,3}|:|" "\uff1a" r"|(?<=\s)\|(?=\s))[ \t*]{0,8}"
)
_WHERE = r"(?:\s+(?:for|to|of|on|at|in|from|für|von|vom|zum|para|de|del|du|per|для|от)\s+[^.,;:=\n]{1,60}?)?"
_APOSTROPHE = "['\u2019]"
_VERB = (
    rf"(?:{_APOSTROPHE}s\s+|\s+(?:is|was|are|will be|ist|lautet|war|es|est|è|é|jest|это)(?::|\s)\s*"
    "|\\s*[—\u2013→]\\s*|\\s+-\\s+|\\s*(?:是|为|は|는|은)\\s*)"
    r"(?:(?:now|currently|still|just|simply|literally|jetzt|ahora|maintenant)\s+)?(?::\s*)?[*_]{0,3}"
)
_CODE_OWNERS = _preceded(
    "alarm door gate safe garage lock access entry security unlock keypad lockbox locker verification login"
    " confirmation one-time otp 2fa mfa authentication backup"
)
_IGNORE_CASE = re.ASCII | re.IGNORECASE


def _named_rules(kind: str, name: str, anchors: str, assigned: Judge, spoken: Judge) -> Iterator[_Rule]:
    """The ways in which a value is given to a name."""
    element = rf">(?P<bare>[^<\n]{{1,{_MAX_VALUE}}})</"
    for rest, judge in (
        (rf"{_NAME_SUFFIX}{_SEPARATOR}{_VALUE}", assigned),
        (rf"(?<!\bpass){_WHERE}{_VERB}{_VALUE}", spoken),
        (rf"(?<!\bpass)[ \t]+{_VALUE}", _option_span),
        (element, _element_span),
    ):
        yield _rule(kind, anchors, name + rest, judge, re.IGNORECASE)


_PHRASES = _table(
    len(_TOKENS.rules),
    _rule("private-key", "-----begin", _PEM),
    _rule("private-key", "private-lines:", rf"Private-Lines: \d+{_KEY_LINES}"),
    _rule(
        "aws-secret",
        "akia asia",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}[^A-Za-z0-9]{1,12}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    _rule(
        "password-hash",
        "$2 $5$ $6$ $y$ $argon2",
        r"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{50,}|[56y]\$[^\s:]{20,200}|argon2id?\$[^\s:\"']{20,300})",
    ),
    _rule(
        "url-credentials",
        "://",
        r"://[^\s:/?#@\"'<>]{0,100}:(?P<secret>[^\s/?\"'<>]{1,300})@(?=[^\s@])",
        _unless_placeholder,
    ),
    _rule(
        "bearer",
        "bearer",
        r"bearer[\s:]{1,4}\\{0,3}[\"'`]?(?P<secret>[\w.~+/=-]{12,})",
        _if_key,
        _IGNORE_CASE,
    ),
    _rule(
        "basic-auth",
        "authorization",
        r"authorization[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}(?:basic|token|apikey|digest|negotiate|key)\s{1,4}"
        r"(?P<secret>[\w.~+/=-]{8,})",
        _unless_placeholder,
        _IGNORE_CASE,
    ),
    _rule(
        "basic-auth",
        "curl",
        r"curl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =]?\s{0,3}[\"']?[\w.@+-]{1,80}:(?P<secret>[^\s\"']{1,200})",
        _unless_placeholder,
    ),
    _rule("password", "sshpass", r"sshpass\s+-p\s*[\"']?(?P<secret>[^\s\"']{1,200})"),
    _rule(
        "password", "mysql", r"mysql\w{0,20}\s(?:[^\n|;]{0,200}?\s)?-p(?P<secret>[^\s\"'-][^\s\"']{0,200})"
    ),
    _rule("password", "login", r"login[ \t]+\S{1,100}[ \t]+password[ \t]+(?P<secret>\S{1,200})"),
    _rule("password", ":5432:", r":5432:[^:\s]{1,80}:[^:\s]{1,80}:(?P<secret>[^\s:]{1,200})"),
    _rule(
        "password",
        "identified password",
        r"(?:identified\s+by|password)\s+(?:by\s+)?(?P<quote>['\"])(?P<secret>[^'\"\s]{3,200})(?P=quote)",
        _if_quoted_password,
        re.IGNORECASE,
    ),
    _rule(
        "card-number",
        "2 3 4 5 6",
        r"[2-6]\d{3}(?<![\w.,/+=-].{4})(?:([ -]?)\d{4}\1\d{4}\1\d{4}|([ -]?)\d{6}\2\d{5})(?![\w/+=-]|[.,]\d)",
        _card_span,
        floating=True,
    ),
    _rule(
        "card-code",
        "cvv cvc",
        r"cv[vc]2?(?:\s+(?:code|number))?\s*(?:is|:|=|\s)\s*(?P<secret>\d{3,4})(?!\w)",
        flags=_IGNORE_CASE,
    ),
    _rule(
        "seed-phrase",
        "seed recovery backup mnemonic",
        r"(?:\w{4,8}[ _-]?(?:phrase|words)|mnemonic)[\"']?(?:\s+(?:is|are|was))?\s*[:=]?\s*[\"']?"
        r"(?P<secret>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23})",
        _phrase_span,
        _IGNORE_CASE,
    ),
    _rule(
        "pin",
        "pin",
        rf"(?<![A-Za-z])(?:pin|PIN|Pin)(?:\s+(?:number|no\.?))?{_WHERE}"
        rf"(?:\s*(?:[:=]|is|was|ist|lautet|es|to)\s*|{_APOSTROPHE}s\s+|(?<=PIN)\s+)"
        r"(?P<secret>\d{4,8})(?![\w.:/%-]?\d|\w)",
    ),
    _rule("pin", "pin", r"(?<![A-Za-z])(?i:pin)[ -]?code(?:\s*[:=]|\s+is)?\s*(?P<secret>\d{4})(?![\w-])"),
    _rule(
        "pin",
        "code combination",
        rf"{_CODE_OWNERS}(?:code|combination){_WHERE}(?:\s*[:=]\s*|\s+(?:is|was)\s+|{_APOSTROPHE}s\s+)"
        r"(?P<secret>\d{3,8}(?:[- ]\d{1,6}){0,3}#?)(?![\w%])",
        flags=_IGNORE_CASE,
    ),
    _rule("pin", "otp", r"(?<!\w)OTP(?:\s+code)?(?:\s*[:=]\s*|\s+is\s+)(?P<secret>\d{4,8})(?!\w)"),
    _rule(
        "password",
        "pass",
        rf"pass ?phrase{_WHERE}(?:\s*[:=]\s*|\s+(?:is|was)\s+)[\"'“]?"
        r"(?P<secret>[a-z]{3,15}(?:[ -][a-z]{3,15}){2,11})(?=[\"'”.,;!?)]|\s*(?:\n|$))",
        _phrase_span,
        _IGNORE_CASE,
    ),
    *_named_rules("password", _PASSWORD_NAME, _PASSWORD_ANCHORS, _assigned_password, _spoken_password),
    *_named_rules("secret", _KEY_NAME, _KEY_ANCHORS, _assigned_key, _spoken_key),
    _rule(
        "password",
        _PASSWORD_ANCHORS,
        rf"(?!pass\b){_PASSWORD_NAME}(?:\s+(?:to|as|auf|a|à|на)|:)?\s+{_VALUE}",
        _told_span,
        re.IGNORECASE,
    ),
    _rule(
        "secret",
        "key",
        rf"(?<![^\W_])(?<!public.)key{_NAME_SUFFIX}(?:{_SEPARATOR}|{_VERB}){_VALUE}",
        _plain_key_span,
        re.IGNORECASE,
    ),
    _rule("password", "pass", r"pass(?:word|phrase|code)", _said_before_span, re.IGNORECASE),
)

_WHOLE_NAME = re.compile(
    rf"(?:(?P<password>{_PASSWORD_NAME})s?|{_KEY_OWNERS}keys?|secrets?|authorization"
    r"|(?:access|auth|refresh|bearer|session|api|bot|security|id|private)[_\-. ]?tokens?|(?:set-)?cookie"
    rf"|(?:recovery|backup)[_-]?codes|seed[_-]?phrase|mnemonic){_NAME_SUFFIX}$",
    re.IGNORECASE,
)
_LIKELY_NAME = re.compile(rf"{_KEY_NAME}{_NAME_SUFFIX}$", re.IGNORECASE)

_Level = tuple[object, dict[object, object] | list[object], str | None]


def _copy_level(
    source: object, target: dict[object, object] | list[object], kind: str | None
) -> list[_Level]:
    """Copy one level of JSON; return the levels below it."""
    below: list[_Level] = []
    if isinstance(source, dict) and isinstance(target, dict):
        for name, value in source.items():
            target[_free_name(name, target)] = _copied(value, _kind_of_name(name, value), below)
    elif isinstance(source, list | tuple) and isinstance(target, list):
        target += [_copied(value, kind, below) for value in source]
    return below


def _copied(value: object, kind: str | None, below: list[_Level]) -> object:
    if isinstance(value, str):
        return _redact_whole(value, kind) if value and kind else redact(value)
    if isinstance(value, dict | list | tuple):
        copy: dict[object, object] | list[object] = {} if isinstance(value, dict) else []
        below.append((value, copy, kind))
        return copy
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return "[redacted:password]" if is_number and kind == "password" else value


def _redact_whole(value: str, kind: str) -> str:
    redacted = redact(value)
    is_marker = re.fullmatch(r"(?:Bearer |Basic )?\[redacted:[a-z0-9-]{1,40}\]", redacted)
    return redacted if is_marker else f"[redacted:{kind}]"


def _free_name(name: object, taken: dict[object, object]) -> object:
    """A redacted key, numbered where two keys would become one."""
    redacted = redact(name) if isinstance(name, str) else name
    if redacted not in taken:
        return redacted
    return next(free for number in count(len(taken)) if (free := f"{redacted}#{number}") not in taken)


def _kind_of_name(name: object, value: object) -> str | None:
    """The kind of secret that a key promises; None for an ordinary key."""
    if not isinstance(name, str):
        return None
    match = _WHOLE_NAME.search(name[-100:])
    if match:
        return "password" if match["password"] else "secret"
    is_likely = isinstance(value, str) and len(value) > 7 and _is_key_like(value)
    return "secret" if is_likely and _LIKELY_NAME.search(name[-100:]) else None
