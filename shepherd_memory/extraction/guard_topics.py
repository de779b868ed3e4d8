"""Which proposals of an extraction are refused for what they are about."""

import re

from shepherd_memory.memory.fact_keys import CAMEL_HUMP
from shepherd_memory.text.words import any_of, words

_MODEL = (
    r"(?:(?:virtual|digital|ai|chat|coding|language) ?(?:assistant|model|bot)|ai|llm|chat ?bot|bot|assistant)"
)
_TRAIT = any_of(
    r"""
    names? role identity persona personality capabilit(?:y|ies) version model type creator tone style
    responses? language purpose task instructions? behaviou?r gender limitations?
    """
)
_ASSISTANT_KEY = re.compile(
    rf"{_MODEL}(?: {_TRAIT})*|(?:name|role|identity|persona) of (?:the )?(?:{_MODEL}|model)|system prompt"
)
_DOES = any_of(
    r"""
    is was are can cannot has had will should must could would does did named called goes said says told
    suggested recommended provided offered helped explained answered responded agreed promised prefers? likes?
    speaks knows uses
    """
)
_ASSISTANT_SUBJECT = re.compile(
    rf"(?:(?:the|this|your|its|an?) )?(?:{_MODEL}|model|large language model)(?: s \w+)? {_DOES}\b"
)
_ASSISTANT_SELF = re.compile(
    rf"(?:i am|i m|as) (?:an? )?(?:large )?(?:{_MODEL})\b(?! (?:at|in|for|to|engineer))"
)


def is_about_assistant(key: str, text: str) -> bool:
    """Whether a fact (`key`, value) or a context (question, answer) describes the assistant itself.

    The key as a whole must name the assistant, or the text must have it as the subject of its first sentence.
    An assistant who is a person (`personal_assistant`, "works as an executive assistant") is no chat bot.
    """
    subject, said = _plain(key), _plain(text)
    return (
        _ASSISTANT_KEY.fullmatch(subject) is not None
        or _ASSISTANT_SUBJECT.match(said) is not None
        or _ASSISTANT_SELF.match(said) is not None
    )


_STATE = any_of(
    """
    time date day datetime timestamp directory dir folder path file branch commit task step status state
    activity errors? command query question request topic conversation session prompt mood weather temperature
    line process issue bug problem output window tab screen page
    """
)
_NOW = any_of("current currently todays? now latest last recent active open present this")
_READING = any_of(
    """
    p?pid (?:process|session|request|job|thread|trace)_id pwd cwd working_directory git_branch git_status
    (?:exit|return|error)_code stack_?trace trace_?back error error_message exception log_output stdout stderr
    ports? port_in_use port_number (?:cpu|memory|disk|ram|gpu)_(?:usage|used|load|free) uptime load_average
    battery(?:_level)? weather(?:_today|_now|_forecast)? time(?:_now|_of_day)? date_today
    (?:message|turn|token|line|word)_counts?
    (?:(?:total|prompt|completion|input|output|remaining)_)?tokens?(?:_used|_usage|_remaining)?
    """
)
_TRANSIENT_KEY = re.compile(rf"{_NOW}(?: \w+)? {_STATE}|(?:{_NOW} )?{_READING}|currently \w+(?: \w+)?")
_DOING = any_of(
    """
    debugging running testing typing waiting compiling installing building fixing trying looking asking
    reading writing getting seeing viewing editing executing deploying downloading restarting logged_in
    """
)
_TRANSIENT_TEXT = re.compile(
    rf"\b(?:is|are|was|s|re|am|m) (?:currently|now|right now|at the moment|just) (?:\w+ )?{_DOING}\b"
    r"|\b(?:right now|at (?:the|this) moment)$"
    r"|\bweather today\b|\bit (?:is|s|was) (?:\w+ )?(?:raining|sunny|cloudy|snowing)\b"
    r"|\buser (?:asked|asks|is asking|wants to know|inquired)\b"
    r"|\b(?:pid|process id|exit code|exit status) (?:is )?\d+"
    r"|\bport \d+ (?:is )?(?:already )?(?:in use|busy|taken|occupied)\b"
    r"|\btraceback most recent call last\b|\b(?:segmentation fault|core dumped)\b"
    r"|\b(?:got|gets|getting|received|encountered|hit|sees|seeing) (?:an? |the |this )?(?:\w+ )?"
    r"(?:error|exception|traceback|stack trace)\b"
)
_ERROR_VALUE = re.compile(r"^\s*[\w.]*(?:Error|Exception|Warning)\s*:|\bTraceback \(|^\s*\[?Errno")


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
    return " ".join(words(CAMEL_HUMP.sub(" ", text)))
