-- Files that agents write: how far each has been read, and the conversations in it. What was said in them is in
-- documents, with the file's key as source_file.

create table transcript_files (
    user_id text not null,
    file_key text not null,
    session_id text not null,
    source text not null,
    originator text not null default '',
    cwd text not null default '',
    subagent integer not null default 0,
    status text not null,
    token text not null default '',
    lease_until integer not null default 0,
    purging integer not null default 0,
    read_through integer not null default 0,
    size integer not null default 0,
    modified_at integer not null default 0,
    read_check text not null default '',
    reader text not null default '',
    last_entry_at integer not null default 0,
    entries integer not null default 0,
    skipped text not null default '{}',
    problem text not null default '',
    created_at integer not null,
    updated_at integer not null,
    primary key (user_id, file_key)
) without rowid;

create unique index transcript_files_by_session on transcript_files (user_id, session_id);

create table transcript_conversations (
    user_id text not null,
    id integer not null,
    file_key text not null,
    session_id text not null,
    first_document integer not null,
    last_document integer not null,
    first_message_at integer not null,
    last_message_at integer not null,
    entries integer not null,
    status text not null,
    updated_at integer not null,
    primary key (user_id, id)
) without rowid;

create index transcript_conversations_by_file on transcript_conversations (user_id, file_key, id);
create index transcript_conversations_open on transcript_conversations (status, last_message_at)
    where status in ('active', 'ready', 'processing');

-- A session is read in its order, and a hit with its neighbours.
create index documents_by_session on documents (user_id, session_id, id);

-- Recall within a project or source reads these instead of the documents. Longer names than Postgres takes in an
-- index are very rare, and found by themselves.
create index documents_by_place on documents (user_id, cwd, id) where cwd <> '' and length(cwd) <= 400;
create index documents_in_long_places on documents (user_id, id) where length(cwd) > 400;
create index documents_by_source on documents (user_id, source, id)
    where source <> 'live' and length(source) <= 400;

-- Which items are about a conversation.
create index jobs_of_key on jobs (user_id, kind, key, watermark_from);

-- How far the files of erased users had been read, so that a later scan does not bring them back: digests only,
-- of a user and a file, which say nothing to who does not know both.
create table transcript_stops (
    digest text not null primary key,
    read_through integer not null
) without rowid;
