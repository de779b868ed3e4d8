"""What an extraction proposes to remember, and which proposals are refused for what they are about."""

import re
from dataclasses import dataclass

from shepherd_memory.words import fold, words

MAX_KEY_CHARACTERS = 64


@dataclass(frozen=True)
class FactCandidate:
    """A fact that a model proposes: `employer` → `ACME`."""

    key: str
    value: str


@dataclass(frozen=True)
class ContextCandidate:
    """A question and its answer that a model proposes."""

    question: str
    answer: str


_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KEY_WORD = re.compile(r"[^\W_]+(?:[^\w\s\x00-\x7f]+[^\W_]*)*")
_OWNER = re.compile(r"^(?:(?:the_)?users?(?:_s)?_|my_)+(?=.)")


def normalise_key(raw: str) -> str:
    """`raw` as the one form in which a key is stored; "" if nothing is left of it."""
    spaced = _CAMEL_HUMP.sub(" ", raw).replace("_", " ")
    key = "_".join(_KEY_WORD.findall(fold(spaced).replace("'s ", " ")))
    return _OWNER.sub("", key)[:MAX_KEY_CHARACTERS].rstrip("_")


_ASSISTANT = r"(?:ai|llm|chat ?bot|bot|(?:virtual|digital|ai|chat|coding|language) ?(?:assistant|model|bot))"
_ASSISTANT_KEY = re.compile(
    rf"(?:{_ASSISTANT}|assistant|(?:language|ai|chat) model|system prompt)"
    r"(?: (?:s|name|names|role|identity|persona|personality|capability|capabilities|version|model|type|creator|"
    r"tone|style|response|responses|language|purpose|task|instructions?|behaviou?r|gender|limitations?))*"
    r"|(?:name|role|identity|persona) of (?:the )?(?:assistant|ai|model|bot|chatbot)"
    r"|system prompt"
)
_ASSISTANT_SUBJECT = re.compile(
    rf"(?:the|this|your|its|an|a)? ?(?:{_ASSISTANT}|assistant|model|large language model)"
    r"(?: s \w+)? (?:is|was|are|can|cannot|has|had|will|should|must|could|would|does|did|named|called|goes|"
    r"said|says|told|suggested|recommended|provided|offered|helped|explained|answered|responded|agreed|promised|"
    r"prefers?|likes?|speaks|knows|uses)\b"
)
_ASSISTANT_SELF = re.compile(
    r"(?:i am|i m|as) (?:an? )?(?:ai|large )?(?:language model|ai assistant|assistant|chatbot|ai)\b"
)


def is_about_assistant(key: str, text: str) -> bool:
    """Whether a fact (`key`, value) or a context (question, answer) describes the assistant itself.

    The key as a whole must name the assistant, or the text must have it as the subject of its first sentence.
    An assistant who is a person (`personal_assistant`, "works as an executive assistant") is nobody's chat bot.
    """
    subject, said = _plain(key), _plain(text)
    return (
        _ASSISTANT_KEY.fullmatch(subject) is not None
        or _ASSISTANT_SUBJECT.match(said) is not None
        or _ASSISTANT_SELF.match(said) is not None
    )


_STATE = (
    r"time|date|day|datetime|timestamp|directory|dir|working directory|folder|path|file|branch|commit|task|step|"
    r"status|state|activity|error|errors|command|query|question|request|topic|conversation|session|prompt|mood|"
    r"weather|temperature|location of cursor|line|process|issue|bug|problem|output|window|tab|screen|page"
)
_TRANSIENT_KEY = re.compile(
    rf"(?:current|currently|todays?|now|latest|last|recent|active|open|present|this)(?: \w+)? (?:{_STATE})"
    r"|(?:current |process |parent )?(?:p?pid|process id|session id|request id|job id|thread id|trace id)"
    r"|(?:pwd|cwd|working directory|git branch|git status|exit code|return code|stack ?trace|trace ?back)"
    r"|(?:last |latest |recent )?(?:error|error message|error code|exception|log output|stdout|stderr)"
    r"|(?:in use |open |listening |local )?ports?(?: in use| number)?|listening on"
    r"|(?:total |prompt |completion |input |output |remaining )?tokens?(?: count| counts| used| usage| remaining)?"
    r"|(?:message|turn|token|line|word) counts?"
    r"|(?:cpu|memory|disk|ram|gpu) (?:usage|used|load|free)|uptime|load average|battery(?: level)?"
    r"|(?:todays? )?weather(?: today| now| forecast)?|time(?: now| of day)?|todays? date|date today"
    r"|currently (?:\w+ing|\w+)(?: \w+)?"
)
_TRANSIENT_TEXT = re.compile(
    r"\b(?:is|are|was|s|re|am|m) (?:currently|now|right now|presently|at the moment|just) (?:\w+ )?"
    r"(?:debugging|running|working on (?:a|an|the|this) (?:bug|error|issue|test|function|file|script|problem)|"
    r"testing|typing|waiting|compiling|installing|building|fixing|trying|looking|asking|reading|writing|getting|"
    r"seeing|viewing|editing|executing|deploying|downloading|restarting|logged in|in the directory)\b"
    r"|\b(?:at the moment|right now|at this moment)$"
    r"|\b(?:weather|temperature|it)(?: \w+){0,3} (?:is|was) (?:\w+ )?(?:today|raining|sunny|cloudy|snowing)\b"
    r"|\bweather today\b"
    r"|\b(?:asked|asks|is asking|wants to know|inquired) (?:about|for|how|what|why|whether|if|the assistant|me)\b"
    r"|\b(?:pid|process id|exit code|exit status) (?:is )?\d+"
    r"|\bport \d+ (?:is )?(?:already )?(?:in use|busy|taken|occupied)|\balready in use\b"
    r"|\btraceback most recent call last\b|\b(?:segmentation fault|core dumped)\b"
    r"|\b(?:got|gets|getting|received|encountered|hit|sees|seeing|has) (?:an? |the |this )?(?:\w+ )?"
    r"(?:error|exception|traceback|stack trace)\b"
)
_ERROR_VALUE = re.compile(
    r"^\s*(?:\w+\.)*\w*(?:Error|Exception|Warning)\b\s*:|\bTraceback \(|^\s*\[?Errno|^\s*E\d{3,}:"
)


def is_transient(key: str, text: str) -> bool:
    """Whether a fact (`key`, value) or a context (question, answer) will be stale within the day.

    Refused are, and nothing else: keys that name a passing state (`current_time`, `last_command`, `pid`,
    `tokens_used`, `error_message`), sentences about what somebody is doing right now, today's weather,
    questions that were asked, ports and processes in use, and error messages. `current_employer`,
    `current_project` and the like are lasting facts.
    """
    return (
        _TRANSIENT_KEY.fullmatch(_plain(key)) is not None
        or _TRANSIENT_TEXT.search(_plain(text)) is not None
        or _ERROR_VALUE.search(text) is not None
    )


def _plain(text: str) -> str:
    return " ".join(words(_CAMEL_HUMP.sub(" ", text)))
