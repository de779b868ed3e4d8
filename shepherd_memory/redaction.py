"""Secrets found in text and replaced by a marker that names their kind."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

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


def _match_rules(text: str) -> list[Finding]:
    lowered = text.lower()
    ranked = [
        (start, end, rank)
        for rank, rule in enumerate(_RULES)
        if any(probe in lowered for probe in rule.probes)
        for start, end in rule.spans(text)
    ]
    return [Finding(_RULES[rank].kind, start, end) for start, end, rank in _merged(sorted(ranked))]


def _merged(ranked: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Join overlapping spans; the rule that stands earlier in the table names the whole."""
    merged: list[tuple[int, int, int]] = []
    for start, end, rank in ranked:
        if merged and start < merged[-1][1]:
            last_start, last_end, last_rank = merged[-1]
            merged[-1] = (last_start, max(end, last_end), min(rank, last_rank))
        else:
            merged.append((start, end, rank))
    return merged


@dataclass(frozen=True)
class _Rule:
    """A pattern, tried only on texts that hold one of `probes`.

    `judge` gets each match and returns the span to hide, or None. Patterns either cannot start
    inside their own run of characters or repeat within bounds, so that no text takes quadratic time.
    """

    kind: str
    probes: tuple[str, ...]
    pattern: re.Pattern[str]
    judge: Judge

    def spans(self, text: str) -> Iterator[Span]:
        position = 0
        while match := self.pattern.search(text, position):
            span = self.judge(match)
            if span:
                yield span
            position = max(span[1] if span else _after_name(match), match.start() + 1)


def _after_name(match: re.Match[str]) -> int:
    """Resume behind a refused match, but inside its value: `password: token=...` names two."""
    return match.end("name") if "name" in match.re.groupindex else match.end()


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
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9;]m))"
# A long token copied from a terminal is broken at the edge of the window.
_WRAPPED = r"(?:[\w-]|(?<=[\w-]{60})\r?\n(?=[\w-]{12}))"
_URLSAFE = r"[\w-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-fA-F]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

# Kind, fixed beginning, pattern of the rest. An earlier row wins where two match.
_PREFIXED: tuple[tuple[str, str, str], ...] = (
    ("anthropic-key", "sk-ant-", rf"{_WRAPPED}{{20,}}"),
    ("openrouter-key", "sk-or-", rf"{_URLSAFE}{{20,}}"),
    ("groq-key", "gsk_", rf"{_ALNUM}{{30,}}"),
    ("huggingface-token", "hf_", rf"{_ALNUM}{{30,}}"),
    ("huggingface-token", "api_org_", rf"{_ALNUM}{{30,}}"),
    ("replicate-token", "r8_", rf"{_ALNUM}{{30,}}"),
    ("perplexity-key", "pplx-", rf"{_ALNUM}{{30,}}"),
    ("xai-key", "xai-", rf"{_ALNUM}{{40,}}"),
    ("cerebras-key", "csk-", rf"{_ALNUM}{{30,}}"),
    ("nvidia-key", "nvapi-", rf"{_URLSAFE}{{40,}}"),
    ("voyage-key", "pa-", rf"{_URLSAFE}{{40,}}"),
    ("tavily-key", "tvly-", rf"{_URLSAFE}{{20,}}"),
    ("langsmith-key", "lsv2_", rf"(?:pt|sk)_{_HEX}{{20,}}(?:_{_HEX}+)?"),
    ("pinecone-key", "pcsk_", rf"\w{{30,}}"),
    ("jina-key", "jina_", rf"{_URLSAFE}{{30,}}"),
    ("firecrawl-key", "fc-", rf"{_HEX}{{32}}(?!{_ALNUM})"),
    ("elevenlabs-key", "sk_", rf"{_HEX}{{48}}(?!{_ALNUM})"),
    ("google-key", "AIza", rf"{_URLSAFE}{{35,}}"),
    ("google-oauth", "GOCSPX-", rf"{_URLSAFE}{{20,}}"),
    ("google-oauth", "ya29.", rf"[\w.-]{{20,}}"),
    ("google-oauth", "1//0", rf"{_URLSAFE}{{40,}}"),
    *(("github-token", f"gh{letter}_", rf"{_ALNUM}{{30,}}") for letter in "pousr"),
    ("github-token", "github_pat_", rf"{_WRAPPED}{{40,}}"),
    *(
        ("gitlab-token", prefix, rf"{_URLSAFE}{{20,}}")
        for prefix in "glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glimt- glagent- gloas- GR1348941".split()
    ),
    *(("slack-token", f"xox{letter}-", rf"{_URLSAFE}{{10,}}") for letter in "abeoprsd"),
    ("slack-token", "xapp-", rf"{_URLSAFE}{{20,}}"),
    ("slack-token", "xoxe.xox", rf"[bp]-{_URLSAFE}{{20,}}"),
    *(("aws-key", prefix, rf"[A-Z0-9]{{16}}(?!{_ALNUM})") for prefix in ("AKIA", "ASIA", "ABIA", "ACCA")),
    ("aws-key", "ABSK", rf"[A-Za-z0-9+/]{{109,}}={{0,2}}"),
    *(
        ("stripe-key", f"{kind}_{mode}_", rf"{_ALNUM}{{16,}}")
        for kind in ("sk", "rk")
        for mode in ("live", "test", "prod")
    ),
    ("stripe-key", "whsec_", rf"[A-Za-z0-9+/]{{20,}}=*"),
    ("twilio-key", "SK", rf"{_HEX}{{32}}(?!{_ALNUM})"),
    ("sendgrid-key", "SG.", rf"{_URLSAFE}{{16,}}\.{_URLSAFE}{{16,}}"),
    ("npm-token", "npm_", rf"{_ALNUM}{{30,}}"),
    ("pypi-token", "pypi-AgE", rf"{_URLSAFE}{{40,}}"),
    ("docker-token", "dckr_pat_", rf"{_URLSAFE}{{20,}}"),
    ("docker-token", "dckr_oat_", rf"{_URLSAFE}{{20,}}"),
    *(("digitalocean-token", f"do{letter}_v1_", rf"{_HEX}{{40,}}") for letter in "por"),
    *(("shopify-token", f"shp{kind}_", rf"{_HEX}{{32,}}") for kind in ("at", "ca", "pa", "ss")),
    *(("square-token", f"sq0{kind}-", rf"{_URLSAFE}{{22,}}") for kind in ("atp", "csp", "idp")),
    ("square-token", "EAAA", rf"{_URLSAFE}{{60,}}"),
    ("facebook-token", "EAA", rf"{_ALNUM}{{100,}}"),
    ("mailgun-key", "key-", rf"{_HEX}{{32}}(?!{_ALNUM})"),
    ("brevo-key", "xkeysib-", rf"{_HEX}{{40,}}-{_ALNUM}+"),
    ("resend-key", "re_", rf"{_ALNUM}{{8}}_{_ALNUM}{{20,}}"),
    ("databricks-token", "dapi", rf"{_HEX}{{32}}(?:-\d)?(?!{_ALNUM})"),
    *(("atlassian-token", prefix, rf"[\w=-]{{30,}}") for prefix in ("ATATT3", "ATCTT3", "ATSTT3")),
    ("atlassian-token", "ATBB", rf"[\w=-]{{28,}}"),
    ("linear-key", "lin_api_", rf"{_ALNUM}{{30,}}"),
    ("linear-key", "lin_oauth_", rf"{_ALNUM}{{30,}}"),
    ("notion-token", "ntn_", rf"{_ALNUM}{{40,}}"),
    ("notion-token", "secret_", rf"{_ALNUM}{{40,}}"),
    *(("vault-token", f"hv{letter}.", rf"{_URLSAFE}{{20,}}") for letter in "sbr"),
    ("age-key", "AGE-SECRET-KEY-1", rf"[A-Z0-9]{{50,}}"),
    ("doppler-token", "dp.", rf"(?:pt|st|ct|sa|scim|audit)\.[\w.-]{{30,}}"),
    ("postman-key", "PMAK-", rf"[\w-]{{40,}}"),
    ("pulumi-token", "pul-", rf"{_HEX}{{40}}"),
    *(("sentry-token", prefix, rf"[\w+/=]{{40,}}") for prefix in ("sntryu_", "sntrys_")),
    ("grafana-token", "glsa_", rf"\w{{32,}}"),
    ("grafana-token", "glc_", rf"[\w+/=]{{32,}}"),
    ("newrelic-key", "NRAK-", rf"[A-Z0-9]{{20,}}"),
    ("figma-token", "figd_", rf"{_URLSAFE}{{30,}}"),
    ("airtable-token", "pat", rf"{_ALNUM}{{14}}\.{_HEX}{{64}}"),
    ("hubspot-token", "pat-", rf"(?:na|eu)\d-{_UUID}"),
    ("supabase-key", "sbp_", rf"{_HEX}{{40}}"),
    ("supabase-key", "sb_secret_", rf"{_URLSAFE}{{20,}}"),
    ("netlify-token", "nfp_", rf"{_ALNUM}{{30,}}"),
    ("fly-token", "fm2_", rf"[A-Za-z0-9+/=,_]{{60,}}"),
    ("planetscale-token", "pscale_", rf"(?:tkn|pw|oauth)_[\w.-]{{30,}}"),
    ("tailscale-key", "tskey-", rf"[\w-]{{20,}}"),
    ("dynatrace-token", "dt0c01.", rf"[A-Z0-9]{{20,}}\.[A-Z0-9]{{60,}}"),
    ("rubygems-key", "rubygems_", rf"{_HEX}{{40,}}"),
    ("cratesio-token", "cio", rf"{_ALNUM}{{32}}(?!{_ALNUM})"),
    *(("sonar-token", f"sq{letter}_", rf"{_HEX}{{40}}") for letter in "pua"),
    ("artifactory-key", "AKCp", rf"{_ALNUM}{{60,}}"),
    ("posthog-key", "phx_", rf"{_ALNUM}{{30,}}"),
    ("onepassword-token", "ops_eyJ", rf"[\w=+/-]{{60,}}"),
    ("crypto-key", "xprv", rf"[1-9A-HJ-NP-Za-km-z]{{90,}}"),
)


def _prefix_rule(kind: str, prefix: str, rest: str) -> _Rule:
    return _Rule(
        kind, (prefix.lower(),), re.compile(_START + re.escape(prefix) + rest, re.ASCII), _varied_span
    )


def _rule(kind: str, probes: str, pattern: str, judge: Judge = _secret_span, flags: int = re.ASCII) -> _Rule:
    return _Rule(kind, tuple(probes.split(" ")), re.compile(pattern, flags), judge)


# Between the lines of a key: line ends, the same escaped once or twice, quoting and string joins.
_KEY_BREAK = r"(?:\s|\\+[nrt]|[\"'+>|,]){1,60}+"
_KEY_LINES = (
    rf"(?:{_KEY_BREAK}(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash)[: ][^\n\\]{{0,100}}|[A-Za-z0-9+/]{{16,}}+={{0,2}}))++"
    rf"(?:{_KEY_BREAK}[A-Za-z0-9+/]{{1,15}}={{0,2}}(?={_KEY_BREAK}[=-]))?"
    rf"(?:{_KEY_BREAK}=[A-Za-z0-9+/]{{4}}(?={_KEY_BREAK}-))?"
)
_PEM = (
    rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_KEY_LINES}"
    rf"(?:{_KEY_BREAK}-----END [A-Z0-9 ]{{0,60}}-----)?"
)


def _is_luhn(digits: str) -> bool:
    doubled = [int(d) * 2 if i % 2 else int(d) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _card_span(match: re.Match[str]) -> Span | None:
    digits = re.sub(r"\D", "", match[0])
    return match.span() if len(set(digits)) > 2 and _is_luhn(digits) else None


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _bitcoin_span(match: re.Match[str]) -> Span | None:
    """A Bitcoin key carries its own checksum, so a match is certain."""
    number = 0
    for char in match[0]:
        number = number * 58 + _BASE58.index(char)
    raw = number.to_bytes(40, "big").lstrip(b"\0")
    return match.span() if sha256(sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:] else None


def _url_password_span(match: re.Match[str]) -> Span | None:
    return None if _is_placeholder(match["secret"]) else match.span("secret")


# What is written where a secret would stand, but is none: types, verdicts, instructions.
_ORDINARY = frozenset(
    """
    a about above accepted active again all already also always an and any anymore anything array as ask async at auto
    await bad basic bearer because been before below blank bool boolean bytes callable case changed char click common
    compromised config correct corrupted created default denied deleted different disabled empty enabled encrypted enter
    env environment error exactly exists expired exposed fail failed falsch false field file fine five for forgotten four
    from gone good hard hashed here hidden hint if important in include incorrect incorrecta incorrecto input int integer
    invalid is it just keychain known leaked length like locked long lost masked missing must mandatory my needed never
    new next nil no none nope not nothing null number object of off ok okay old omit on one only open optional or our out
    password passwords passphrase path plain plaintext please private prompt protected public random read redacted required
    reset resetted safe same saved secret secrets secure see sensitive sent set short shown simple six so some someone
    something sound still stored str strict string strong stronger test that the their then there these this three to
    today token tokens tomorrow too trivial true two type typed unchanged undefined unique unknown unset unsafe updated
    used user username valid value verified very visible void was weak what when where which who why wrong yes yesterday
    you your vergessen abgelaufen ungültig korrekt richtig zu nicht sehr muss court courte incorrect expiré oublié trop
    demasiado muy larga corta expirada vencida errada errado inválida correta scaduta sbagliata errata troppo corretta
    verlopen onjuist te niet błędne nieprawidłowe неверный неправильный истёк слишком не secretstr optional dict list any
    same-origin keyring bitwarden lastpass keepass vault
    """.split()
)
_FUNCTION_WORDS = frozenset(
    "and are can for from has have not than that the this too was will with you your".split()
)
_TEMPLATE = re.compile(
    r"\$[({A-Za-z_]|!vault\b|\{\{|\{[A-Za-z_.]*\}|%[({A-Za-z_]+[)}%]|<[^>]*>?|@@|\.{3}|…"
    r"|(?:your|my|some|the|an?|enter|insert|put|add|replace|example|dummy|fake|sample)(?:[-_ ]|$)",
    re.IGNORECASE,
)
_MASKED = re.compile(r"[*xX•●·.#_?-]*")
_CODE = re.compile(
    r"[A-Za-z_][\w.]*(?:\(|\[|::|->)|[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+$|[A-Z]+(?:_[A-Z]+)+$|(?:self|this|cls)\.|\(|\[|\{"
)
_PLACE = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\]{1,2}\w|https?://|[\w.+-]+@[\w-]+\.\w")
_TECHNICAL = re.compile(
    r"(?:sha|md|aes|base|utf|bcrypt|argon|pbkdf|scrypt|oauth|rfc|iso|v|ascii|http|\d+(?:fa|st|nd|rd|th|x|k|m|mb|ms|h|d)"
    r"|\d+(?:-|$))-?\d*(?:[-_. /][a-z0-9]+)*$",
    re.IGNORECASE,
)
_WORDS = re.compile(r"(?:[^\W\d_]+|\d{1,4})(?:[-_/.'’:]+(?:[^\W\d_]+|\d{1,4}))*$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d?[:.]\d\d")


def _is_placeholder(value: str) -> bool:
    return bool(_TEMPLATE.match(value) or _MASKED.fullmatch(value)) or value.lower() in _ORDINARY


def _has_letter_and_digit(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_key_like(value: str) -> bool:
    """Random enough for `token = ...`, where most values are code or words."""
    if len(value) < 6 or _WORDS.match(value) or _TECHNICAL.match(value) or _DATE.match(value):
        return False
    if _PLACE.match(value) or _CODE.match(value) or _is_placeholder(value):
        return False
    return _has_letter_and_digit(value) or len(re.findall("[a-z][A-Z]", value)) > len(value) / 8


def _is_password_like(value: str) -> bool:
    """Not a word: has digits or inner symbols, or is a run of at least four digits."""
    if len(value) < 4 or _PLACE.match(value) or _TECHNICAL.match(value) or _is_placeholder(value):
        return value.isdigit() and len(value) > 3
    if _has_letter_and_digit(value) or value.isdigit():
        return True
    return len(value) > 5 and not _WORDS.match(value.rstrip("!?…’'\""))


def _is_word_password(value: str) -> bool:
    """A single word that a password may well be, such as `swordfish`."""
    return (
        len(value) > 4 and value.isalpha() and value.lower() not in _ORDINARY and not _TECHNICAL.match(value)
    )


def _is_quoted_password(value: str) -> bool:
    if _is_placeholder(value) or len(value) < 3 or _PLACE.match(value):
        return False
    return not any(word.strip(".,:!?").lower() in _ORDINARY for word in value.split(" "))


_REST = re.compile(r"[^\s\"'`<>,;&|\\]*")
_CLAUSE_END = re.compile(r"[*_`\"'”)\]]{0,3}[ \t]*(?:[.,;!?)](?:\s|$)|[\r\n]|[,;]|\\+[nr]|\||$)")


def _trimmed(text: str, start: int, end: int) -> int:
    """Leave the sentence its full stop and the call its bracket."""
    while end > start and text[end - 1] in ".,;:)]}*":
        if text[end - 1] in ")]}" and text.count("([{"[")]}".index(text[end - 1])], start, end):
            break
        end -= 1
    return end


def _bare_span(match: re.Match[str]) -> Span:
    """An unquoted value, with what the bounded pattern could not take."""
    start, end = match.span("bare")
    if end - start >= _MAX_VALUE:
        end = _REST.match(match.string, end).end()  # type: ignore[union-attr]  # an empty match is one
    return start, _trimmed(match.string, start, end)


def _assigned_password(match: re.Match[str]) -> Span | None:
    if match["quoted"] is not None:
        return match.span("quoted") if _is_quoted_password(match["quoted"]) else None
    span = _bare_span(match)
    value = match.string[slice(*span)]
    if _CODE.match(value) or _NAMES_SECRET.search(value):
        return None
    return span if _is_password_like(value) or _is_assigned_word(match, value, span[1]) else None


def _is_assigned_word(match: re.Match[str], value: str, end: int) -> bool:
    if ":" in match["separator"]:
        is_whole = bool(_CLAUSE_END.match(match.string, end))
    else:
        is_whole = match.string[end : end + 1] not in {",", ")", "(", "[", "."}
    return is_whole and _is_word_password(value)


def _assigned_key(match: re.Match[str]) -> Span | None:
    span = _bare_span(match) if match["quoted"] is None else match.span("quoted")
    return span if _is_key_like(match.string[slice(*span)]) else None


def _spoken_password(match: re.Match[str]) -> Span | None:
    if match["quoted"] is not None:
        return match.span("quoted") if _is_quoted_password(match["quoted"]) else None
    start, end = _bare_span(match)
    value = match.string[start:end]
    if _CODE.match(value):
        return None
    return (start, end) if _is_password_like(value) or _is_final_word(match, value, end) else None


def _spoken_key(match: re.Match[str]) -> Span | None:
    span = _assigned_key(match)
    return span if span and span[1] - span[0] > 7 else None


def _is_final_word(match: re.Match[str], value: str, end: int) -> bool:
    """`My password is swordfish.`, not `my password is swordfish related`, nor `... is compromised`."""
    is_predicate = re.search(r"(?:ed|ing|ly|able|ible|less|ful|ial|ous|ive|ic|ent|ant|er|est)$", value)
    return not is_predicate and _is_word_password(value) and bool(_CLAUSE_END.match(match.string, end))


def _told_span(match: re.Match[str]) -> Span | None:
    """Without a verb between (`password hunter2`) only what is plainly no word counts."""
    start, end = _bare_span(match)
    value = match.string[start:end]
    is_secret = len(value) > 5 and _has_letter_and_digit(value) and _is_key_like(value)
    return (start, end) if is_secret else None


def _said_before_span(match: re.Match[str]) -> Span | None:
    """`use hunter2 as the password`: the secret is the word before."""
    head = match.string[max(0, match.start() - 200) : match.start()].rstrip()
    words = head.split()
    word = words[-1].strip("\"'`“”") if words else ""
    if not (_is_password_like(word) and _is_key_like(word)):
        return None
    start = match.string.rindex(word, 0, match.start())
    return start, start + len(word)


def _phrase_span(match: re.Match[str]) -> Span | None:
    words = set(match["secret"].lower().split())
    return None if words & _FUNCTION_WORDS else match.span("secret")


_MAX_VALUE = 400
_PASSWORD_NAME = (
    r"pass(?:word|wd|phrase|code|wort)|(?<![^\W_])(?:pass|pwd|psw|pw)|(?-i:(?<=[a-z])(?:Pass|Pwd))|kennwort|contrase[ñn]a"
    r"|mot de passe|senha|пароль|密码|密碼|パスワード|비밀번호|wachtwoord|hasło|lösenord"
)
_KEY_OWNER = (
    "api|access|secret|private|encrypt(?:ion)?|signing|auth|master|account|app(?:lication)?|shared|storage|service"
    "|consumer|subscription|hmac|webhook|deploy|admin|root|jwt|cipher|crypto|aes|license|ssh|server"
)
_KEY_NAME = rf"(?:{_KEY_OWNER})[_\-. ]?key|token|secret|credentials?|(?<![^\W_])(?:auth|creds?)|authorization"
_NAME_SUFFIX = r"(?:[_-]?(?:\d{1,2}|prod|production|dev|staging|test|live|old|new|b64|base64|value))?"
_NAMES_SECRET = re.compile(rf"(?:{_PASSWORD_NAME}|{_KEY_NAME})$", re.IGNORECASE)
_QUOTED = (
    rf"(?P<quote>\\{{0,3}}[\"'`])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\r\n])){{1,{_MAX_VALUE}}}?)(?P=quote)"
)
# A comma or ampersand ends a value where the next `name=` begins, otherwise it may be part of it.
_BARE = (
    rf"(?P<bare>[^\s\"'`<>,;&|=\\](?:[^\s\"'`<>,;&|\\]|[,;&|](?!\s|$|[A-Za-z_][\w .-]{{0,40}}=)"
    rf"|\\(?![nrtu\"'\\])){{0,{_MAX_VALUE}}})"
)
_VALUE = rf"(?:[bfru]{{0,2}}{_QUOTED}|\\{{0,3}}[\"'`]?{_BARE})"
_SEPARATOR = r"[\\\"'`*_\])]{0,6}[ \t]{0,8}(?P<separator>:=|=>|={1,3}|:|：|\|)[ \t*]{0,8}"
_WHERE = r"(?:\s+(?:for|to|of|on|at|in|from|für|von|vom|zum|para|de|del|du|per|для|от)\s+[^.,;:=\n]{1,60}?)?"
_VERB = (
    r"(?:['’]s\s+|\s+(?:is|was|are|will be|ist|lautet|war|es|est|è|é|jest|это)\s+|\s*[—–→]\s*|\s+-\s+|\s*(?:是|为|は|는|은)\s*)"
    r"(?:(?:now|currently|still|just|simply|literally|jetzt|ahora|maintenant)\s+)?(?::\s*)?[*_]{0,3}"
)
_PASSWORD_PROBES = (
    "pass pwd pw psw kennwort contrase senha пароль 密码 密碼 パスワード 비밀번호 wachtwoord hasło lösenord"
)
_DIGITS = r"(?P<secret>\d{4,8})(?![\w.:/%-]?\d|\w)"


def _named_rules(kind: str, name: str, probes: str, assigned: Judge, spoken: Judge) -> Iterator[_Rule]:
    """The ways in which a value is given to a name: assignment, option, XML element, sentence."""
    named = rf"(?P<name>{name})"
    element = rf"(?P<bare>[^<\n]{{1,{_MAX_VALUE}}})(?P<quoted>(?!))?(?=</)"
    for probe, pattern, judge in (
        (probes, rf"{named}{_NAME_SUFFIX}{_SEPARATOR}{_VALUE}", assigned),
        ("--", rf"--[a-z-]{{0,30}}?{named}(?P<separator>[ =]){_VALUE}", assigned),
        ("</", rf"<[\w:.-]{{0,40}}?{named}(?P<separator>>){element}", assigned),
        (probes, rf"{named}{_WHERE}{_VERB}{_VALUE}", spoken),
        (probes, rf"{named}\s+(?:to|as|auf|a|à|на)\s+{_VALUE}", _told_span),
    ):
        yield _rule(kind, probe, pattern, judge, re.IGNORECASE)


_RULES: tuple[_Rule, ...] = (
    _rule("private-key", "-----begin", _PEM),
    _rule("private-key", "private-lines:", rf"Private-Lines: \d+{_KEY_LINES}"),
    *(_prefix_rule(*row) for row in _PREFIXED),
    _rule("openai-key", "sk-", rf"{_START}sk-{_WRAPPED}{{16,}}", _random_span),
    _rule("jwt", "eyj", rf"{_START}eyJ{_WRAPPED}{{8,}}\.{_WRAPPED}{{8,}}(?:\.{_WRAPPED}*){{0,3}}"),
    _rule(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{20,})",
    ),
    _rule("discord-webhook", "/api/webhooks/", r"/api/webhooks/\d{10,25}/(?P<secret>[\w-]{40,})"),
    _rule(
        "aws-secret",
        "akia asia",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}[^A-Za-z0-9]{1,12}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    _rule(
        "azure-key",
        "accountkey= sharedaccesskey=",
        r"(?i:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}=*)",
    ),
    _rule("azure-key", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%+/_-]{30,}=*)"),
    _rule("azure-key", "8q~", rf"{_START}[\w.~-]{{3}}[78]Q~[\w.~-]{{31,36}}"),
    _rule("aws-signature", "x-amz-signature=", rf"(?i:X-Amz-Signature)=(?P<secret>{_HEX}{{64}})"),
    _rule("telegram-token", ":aa", rf"(?<!\d)\d{{8,11}}:AA{_URLSAFE}{{30,}}"),
    _rule(
        "discord-token",
        ".",
        rf"(?<![\w.-])[MNO]{_URLSAFE}{{22,28}}\.{_URLSAFE}{{6}}\.{_URLSAFE}{{27,45}}(?![\w.-])",
    ),
    _rule("terraform-token", ".atlasv1.", rf"{_ALNUM}{{14}}\.atlasv1\.[\w-]{{50,}}"),
    _rule("mailchimp-key", "-us", rf"(?<!{_ALNUM}){_HEX}{{32}}-us\d{{1,2}}(?!\d)"),
    _rule(
        "crypto-key", "5 k l", rf"(?<!{_ALNUM})[5KL][1-9A-HJ-NP-Za-km-z]{{50,51}}(?!{_ALNUM})", _bitcoin_span
    ),
    _rule(
        "password-hash",
        "$2 $5$ $6$ $y$ $argon2",
        r"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{50,}|[56y]\$[^\s:]{20,200}|argon2id?\$[^\s:\"']{20,300})",
    ),
    _rule("totp-secret", "otpauth://", r"otpauth://[^\s\"']{0,300}?secret=(?P<secret>[A-Za-z2-7]{16,})"),
    _rule(
        "url-credentials",
        "://",
        r"://[^\s:/?#@\"'<>]{0,100}:(?P<secret>[^\s/?\"'<>]{1,300})@(?=[^\s@])",
        _url_password_span,
    ),
    _rule("url-credentials", "://", r"://(?P<secret>[A-Za-z0-9_-]{20,300})@(?=\w)", _random_span),
    _rule(
        "bearer",
        "bearer",
        r"bearer[\s:]{1,4}\\{0,3}[\"'`]?(?P<secret>[\w.~+/=-]{12,})",
        lambda match: _secret_span(match) if _is_key_like(match["secret"]) else None,
        re.ASCII | re.IGNORECASE,
    ),
    _rule(
        "basic-auth",
        "authorization",
        r"authorization[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}(?:basic|token|apikey|digest|negotiate|key)\s{1,4}"
        r"(?P<secret>[\w.~+/=-]{8,})",
        lambda match: None if _is_placeholder(match["secret"]) else _secret_span(match),
        re.ASCII | re.IGNORECASE,
    ),
    _rule(
        "basic-auth",
        "curl",
        r"\bcurl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =]?\s{0,3}[\"']?[\w.@+-]{1,80}:(?P<secret>[^\s\"']{1,200})",
        lambda match: None if _is_placeholder(match["secret"]) else _secret_span(match),
    ),
    _rule("password", "sshpass", r"\bsshpass\s+-p\s*[\"']?(?P<secret>[^\s\"']{1,200})"),
    _rule("password", "mysql", r"\bmysql\w*\s[^\n|;]{0,200}?\s-p(?P<secret>[^\s\"'-][^\s\"']{0,200})"),
    _rule("password", "login", r"\blogin\s+\S{1,100}\s+password\s+(?P<secret>\S{1,200})"),
    _rule("password", ":5432:", r":5432:[^:\s]{1,80}:[^:\s]{1,80}:(?P<secret>[^\s:]{1,200})"),
    _rule(
        "password",
        "identified password",
        r"(?:identified\s+by|password)\s+(?:by\s+)?(?P<quote>['\"`])(?P<secret>[^'\"`\s]{3,200})(?P=quote)",
        lambda match: _secret_span(match) if _is_quoted_password(match["secret"]) else None,
        re.IGNORECASE,
    ),
    _rule(
        "card-number",
        "3 4 5 6",
        r"(?<![\w.,/+=-])(?:(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6(?:011|5\d\d)|35\d\d)([ -]?)\d{4}\1\d{4}\1\d{4}"
        r"|3[47]\d\d([ -]?)\d{6}\2\d{5})(?![\w/+=-]|[.,]\d)",
        _card_span,
    ),
    _rule(
        "card-code",
        "cvv cvc",
        r"\bcv[vc]2?(?:\s+(?:code|number))?\s*(?:is|:|=|\s)\s*(?P<secret>\d{3,4})(?!\w)",
        flags=re.ASCII | re.IGNORECASE,
    ),
    _rule(
        "seed-phrase",
        "seed recovery mnemonic",
        r"(?:(?:seed|recovery|backup|mnemonic)[ _-]?(?:phrase|words)|mnemonic)[\"']?(?:\s+(?:is|are|was))?\s*[:=]?\s*[\"']?"
        r"(?P<secret>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23})",
        flags=re.ASCII | re.IGNORECASE,
    ),
    _rule(
        "pin",
        "pin",
        rf"(?<![A-Za-z])(?:pin|PIN|Pin)(?:\s+(?:number|no\.?))?{_WHERE}(?:\s*(?:[:=]|is|was|ist|lautet|es|to)\s*|['’]s\s+){_DIGITS}",
    ),
    _rule("pin", "pin", rf"(?<![A-Za-z])PIN\s+{_DIGITS}"),
    _rule("pin", "pin", r"(?<![A-Za-z])(?i:pin)[ -]?code(?:\s*[:=]|\s+is)?\s*(?P<secret>\d{4})(?![\w-])"),
    _rule(
        "pin",
        "code combination",
        r"\b(?:alarm|door|gate|safe|garage|lock|access|entry|security|unlock|keypad|lockbox|locker|verification|login"
        r"|confirmation|one-time|otp|2fa|mfa|authentication|backup)\s+(?:code|combination)"
        rf"{_WHERE}(?:\s*[:=]\s*|\s+(?:is|was)\s+|['’]s\s+)(?P<secret>\d{{3,8}}(?:[- ]\d{{1,6}}){{0,3}}#?)(?![\w%])",
        flags=re.ASCII | re.IGNORECASE,
    ),
    _rule("pin", "otp", r"\bOTP(?:\s+code)?(?:\s*[:=]\s*|\s+is\s+)(?P<secret>\d{4,8})(?!\w)"),
    _rule(
        "password",
        "phrase",
        rf"pass ?phrase{_WHERE}(?:\s*[:=]\s*|\s+(?:is|was)\s+)[\"'“]?"
        r"(?P<secret>[a-z]{3,15}(?:[ -][a-z]{3,15}){2,11})(?=[\"'”.,;!?)]|\s*(?:\n|$))",
        _phrase_span,
        re.ASCII | re.IGNORECASE,
    ),
    *_named_rules("password", _PASSWORD_NAME, _PASSWORD_PROBES, _assigned_password, _spoken_password),
    *_named_rules("secret", _KEY_NAME, "token secret key cred auth", _assigned_key, _spoken_key),
    _rule("password", _PASSWORD_PROBES, rf"(?P<name>{_PASSWORD_NAME})\s+{_BARE}", _told_span, re.IGNORECASE),
    _rule(
        "password",
        "password passphrase",
        r"\s+as\s+(?:the\s+|my\s+|your\s+|a\s+)?(?:\w+\s+)?pass(?:word|phrase)",
        _said_before_span,
    ),
)


_WHOLE_NAME = re.compile(
    rf"(?:(?P<password>{_PASSWORD_NAME})s?|(?:{_KEY_OWNER})[_\-. ]?keys?|secrets?|authorization"
    r"|(?:access|auth|refresh|bearer|session|api|bot|security|id|private)[_\-. ]?tokens?|(?:set-)?cookie"
    rf"|(?:recovery|backup)[_-]?codes|seed[_-]?phrase|mnemonic){_NAME_SUFFIX}$",
    re.IGNORECASE,
)
_LIKELY_NAME = re.compile(rf"(?:{_KEY_NAME}){_NAME_SUFFIX}$", re.IGNORECASE)

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
    if redacted == name or redacted not in taken:
        return redacted
    return f"{redacted}#{len(taken)}"


def _kind_of_name(name: object, value: object) -> str | None:
    """The kind of secret that a key promises; None for an ordinary key."""
    if not isinstance(name, str):
        return None
    match = _WHOLE_NAME.search(name[-100:])
    if match:
        return "password" if match["password"] else "secret"
    is_likely = isinstance(value, str) and len(value) > 7 and _is_key_like(value)
    return "secret" if is_likely and _LIKELY_NAME.search(name[-100:]) else None
