"""Memory files over HTTP: listed, read, searched, edited, and what changed in them."""

from typing import Any

from starlette.responses import Response

from shepherd_memory.frontends.api.file_shapes import (
    EditedText,
    FileChanged,
    FileDeleted,
    FileDiff,
    FileDiffOf,
    FileHistory,
    FileHistoryOf,
    FileLines,
    FileName,
    FileOf,
    FilePage,
    FilesDeleted,
    FileSearch,
    FilesOf,
    FilesReset,
    LinesOf,
    MatchPage,
    NoteText,
)
from shepherd_memory.frontends.api.operations import BodyInput, Operation, OperationInput
from shepherd_memory.frontends.web.json_body import json_response

ROOT = "/v1/memory/files"
CREATED, CONFLICT = 201, 409


def list_files(given: BodyInput[FilesOf, None]) -> FilePage:
    asked, version = given.parameters, _version(given)
    found = given.service.memory_files(
        given.user_id, path=asked.path, cursor=asked.cursor, max_results=asked.limit, group=given.group
    )
    return FilePage(found.path, list(found.entries), found.next_cursor or None, version)


def read_file(given: BodyInput[LinesOf, None]) -> FileLines:
    # The version first: of a change in between an edit with it is refused.
    asked, version = given.parameters, _version(given)
    found = given.service.memory_file(
        given.user_id,
        asked.path,
        line_offset=asked.line_offset,
        max_lines=asked.max_lines,
        group=given.group,
    )
    following = found.next_line or None
    return FileLines(found.path, found.text, found.start_line, found.line_count, following, version)


def search(given: BodyInput[FileSearch, None]) -> MatchPage:
    return _search(given, given.parameters)


def search_by_body(given: BodyInput[OperationInput, FileSearch]) -> MatchPage:
    return _search(given, given.body)


def _search(
    given: BodyInput[FileSearch, None] | BodyInput[OperationInput, FileSearch], asked: FileSearch
) -> MatchPage:
    found = given.service.search_memory_files(
        given.user_id,
        asked.queries,
        match_mode=asked.match_mode,
        path=asked.path,
        cursor=asked.cursor,
        context_lines=asked.context_lines,
        case_sensitive=asked.case_sensitive,
        normalized=asked.normalized,
        max_results=asked.limit,
        line_count=asked.line_count,
        group=given.group,
    )
    return MatchPage(list(found.matches), found.next_cursor or None)


def add_note(given: BodyInput[OperationInput, NoteText]) -> Response:
    asked = given.body
    path = given.service.add_memory_note(given.user_id, asked.note, name=asked.name, group=given.group)
    return json_response(FileChanged(path, _version(given)), CREATED)


def edit_file(given: BodyInput[FileName, EditedText]) -> FileChanged:
    path, asked = given.parameters.path, given.body
    version = given.service.edit_memory_file(
        given.user_id, path, asked.text, version=asked.version, group=given.group
    )
    return FileChanged(path, version)


def delete_file(given: BodyInput[FileOf, None]) -> FileDeleted:
    path = given.parameters.path
    given.service.delete_memory_file(given.user_id, path, group=given.group)
    return FileDeleted(path, True, _version(given))


def reset(given: BodyInput[OperationInput, FilesReset]) -> FilesDeleted:
    gone = given.service.reset_memory_files(
        given.user_id, everything=given.body.everything, group=given.group
    )
    return FilesDeleted(gone, _version(given))


def history(given: BodyInput[FileHistoryOf, None]) -> FileHistory:
    asked, version = given.parameters, _version(given)
    found = given.service.memory_file_history(
        given.user_id, limit=asked.limit, before=asked.before, group=given.group
    )
    more = len(found) == asked.limit and found[-1].version > 1
    return FileHistory(found, found[-1].version if more else None, version)


def diff(given: BodyInput[FileDiffOf, None]) -> FileDiff:
    asked = given.parameters
    text = given.service.memory_file_diff(given.user_id, asked.old, asked.new, group=given.group)
    return FileDiff(asked.old, asked.new, text)


def _version(given: BodyInput[Any, Any]) -> int:
    return given.service.memory_file_version(given.user_id, group=given.group)


FILE_OPERATIONS = [
    Operation("GET", ROOT, "List memory files.", FilePage, list_files, FilesOf, refusals=(404,)),
    Operation(
        "GET", f"{ROOT}/search", "Search memory files.", MatchPage, search, FileSearch, refusals=(404,)
    ),
    Operation(
        "POST",
        f"{ROOT}/search",
        "The same, by a body.",
        MatchPage,
        search_by_body,
        body=FileSearch,
        refusals=(404,),
    ),
    Operation("POST", f"{ROOT}/notes", "Add a note.", FileChanged, add_note, body=NoteText, status=CREATED),
    Operation(
        "POST",
        f"{ROOT}/reset",
        "Delete what consolidation wrote, and begin anew.",
        FilesDeleted,
        reset,
        body=FilesReset,
    ),
    Operation(
        "GET", f"{ROOT}/history", "The changes of the memory files.", FileHistory, history, FileHistoryOf
    ),
    Operation(
        "GET",
        f"{ROOT}/diff",
        "What changed between two versions.",
        FileDiff,
        diff,
        FileDiffOf,
        refusals=(404,),
    ),
    Operation("GET", f"{ROOT}/{{path:path}}", "Read a memory file.", FileLines, read_file, LinesOf),
    Operation(
        "PUT",
        f"{ROOT}/{{path:path}}",
        "Replace the text of a memory file, which pins what changes.",
        FileChanged,
        edit_file,
        FileName,
        EditedText,
        refusals=(CONFLICT,),
    ),
    Operation(
        "DELETE",
        f"{ROOT}/{{path:path}}",
        "Delete a memory file with its history.",
        FileDeleted,
        delete_file,
        FileOf,
    ),
]
"""In this order: no file has a name that is one of these words."""
