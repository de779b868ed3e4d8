"""What agents write in a person's name, told from what the person typed."""

import pytest

from shepherd_memory.intake.messages import last_user_message, typed_by_user
from shepherd_memory.text.block_seal import GLOBAL_NOTE, RECORD_NOTE
from shepherd_memory.text.program_text import WAKE_UP, ProgramText, is_asked_by_program, typed_text

AGENTS_MD = "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\nUse tabs.\n\n</INSTRUCTIONS>"
RECORD = f"{RECORD_NOTE}\n<previous-session x>\n[human]: I\n  do &lt;\n</previous-session>"
SHARED = f"{GLOBAL_NOTE}\n<global-memory x>\n  Be kind &lt;\n</global-memory>"
REMINDER = "<system-reminder>\nAlways use tabs.\n</system-reminder>"


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("My bike is green.", "My bike is green."),
        (f"{REMINDER}\nMy bike is green.", "My bike is green."),
        (f"My bike {REMINDER}is green.", "My bike is green."),
        ("a < b </ c", "a < b </ c"),
        ("<bash-input>ls</bash-input>", "!ls"),
        ("<command-name>/model</command-name>\n<command-args>opus</command-args>", "/model opus"),
        (REMINDER, ProgramText.META),
        (RECORD, ProgramText.META),
        (SHARED, ProgramText.META),
        (f"{SHARED}\n\n{RECORD}\n\nMy bike is green.", "My bike is green."),
        (f"{GLOBAL_NOTE}\n<global-memory x>\nMy bike is green.",) * 2,
        (f"{RECORD}\n\nMy bike is green.", "My bike is green."),
        (f"My bike is green.\n\n{RECORD}", "My bike is green."),
        (f"Why does it say {RECORD_NOTE}?",) * 2,
        (f"{RECORD_NOTE}\n<previous-session x>\nMy bike is green.",) * 2,
        (f"{RECORD} is what it says.",) * 2,
        (f"{WAKE_UP} Greet them briefly.", ProgramText.META),
        ("<local-command-stdout>done</local-command-stdout>\n", ProgramText.TOOL_OUTPUT),
        ("[Request interrupted by user for tool use]", ProgramText.BOOKKEEPING),
        (
            "This session is being continued from a previous conversation that ran out of context.",
            ProgramText.SUMMARY,
        ),
        (" \n", ProgramText.EMPTY),
        (f"{AGENTS_MD}\n", ProgramText.META),
        ("# AGENTS.md instructions are long. What do they say?",) * 2,
        ("<environment_context>\n<cwd>/work</cwd>\n</environment_context>", ProgramText.BOOKKEEPING),
        ("<environment_context> is what Codex writes. Why?",) * 2,
        ("<turn_aborted>\nThe user interrupted.\n</turn_aborted>", ProgramText.BOOKKEEPING),
        ("<user_shell_command>\n<command>ls</command>\n</user_shell_command>", ProgramText.TOOL_OUTPUT),
        ('<codex_internal_context source="goal">\nGo on.\n</codex_internal_context>', ProgramText.META),
        ('<hook_prompt hook_run_id="1">Go on.</hook_prompt>', ProgramText.META),
        ("<external_slack>\nHi\n</external_slack>", ProgramText.META),
        ("<skill>\n<name>x</name>\n</skill>", ProgramText.META),
        ("<skill> What is this tag?",) * 2,
        (
            "Another language model started to solve this problem and produced a summary of its thinking"
            " process. Here it is:\nThe bike is green.",
            ProgramText.SUMMARY,
        ),
        ('<image name=[Image #1] path="p.png">', ProgramText.META),
        ("<image>", ProgramText.META),
        ("</image>", ProgramText.META),
        ("<image> is a tag",) * 2,
        (
            "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix it.",
            "Fix it.",
        ),
        ("# Selected text:\nThe bike is green.",) * 2,
        ("## My request: a bell",) * 2,
    ],
)
def test_what_a_person_typed_is_told_from_what_a_program_wrote(text: str, typed: str | ProgramText) -> None:
    assert typed_text(text) == typed


def test_of_several_parts_only_what_was_typed_is_the_users() -> None:
    parts = [{"type": "text", "text": REMINDER}, {"type": "text", "text": "My bike is green. "}]
    assert typed_by_user(parts) == "My bike is green. "
    assert typed_by_user([*parts, {"type": "image", "source": {}}, {"type": "text", "text": "See?"}]) == (
        "My bike is green. \nSee?"
    )


def test_the_prompt_that_a_slash_command_stands_for_was_not_typed() -> None:
    command = "<command-message>init</command-message>\n<command-name>/init</command-name>\n"
    texts = [REMINDER, command, "Please analyze this codebase and create a CLAUDE.md file", "And be brief."]
    assert typed_by_user([{"type": "text", "text": text} for text in texts]) == "/init\nAnd be brief."
    printing = "<command-name>/cost</command-name>\n<command-message>cost</command-message>\n"
    assert typed_by_user([printing, "<local-command-stdout>0 $</local-command-stdout>", "Hi"]) == "/cost\nHi"


def test_a_message_that_a_program_wrote_is_not_the_last_one_of_the_user() -> None:
    messages = [
        {"role": "user", "content": "My bike is green."},
        {"role": "user", "content": REMINDER},
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": "x"}, {"type": "text", "text": REMINDER}],
        },
    ]
    assert last_user_message(messages) == 0
    assert last_user_message(messages[1:]) is None


@pytest.mark.parametrize(
    ("instructions", "prompt", "max_tokens", "is_program"),
    [
        (["You are Claude Code.", "Generate a concise, sentence-case title (3-7 words)"], "Hi", 64, True),
        (
            ["You are Claude Code."],
            "Your task is to create a detailed summary of the conversation so far",
            64,
            True,
        ),
        (["You are Claude Code."], "[SUGGESTION MODE: Suggest what the user might type]", 64, True),
        (["You are Codex."], "You are performing a CONTEXT CHECKPOINT COMPACTION. Create", None, True),
        (["## Memory Writing Agent: Phase 1 (Single Rollout)"], "Analyze this rollout", None, True),
        ([], "<next_prompt_suggestion>\n[SUGGESTION MODE: Suggest]", None, True),
        (["You are Codex."], "What is a context checkpoint compaction?", None, False),
        ([], "quota", 1, True),
        ([], "quota", 64, False),
        ([], "What is a quota?", 1, False),
        (["You write titles."], "Please summarize what I said.", 64, False),
        ([], "Web page content: how do I read it?", 64, False),
    ],
)
def test_what_a_program_asks_for_itself_is_no_conversation(
    instructions: list[str], prompt: str, max_tokens: int | None, is_program: bool
) -> None:
    assert is_asked_by_program(instructions, prompt, max_tokens) is is_program
