-- Files that agents write: how far each has been read, and the conversations in it. What was said in them is in
-- documents, with the file's key as source_file.

create table transcript_files (
    user_id text collate "C" not null,
    file_key text collate "C" not null,
    session_id text collate "C" not null,
    source text collate "C" not null,
    originator text collate "C" not null default '',
    cwd text collate "C" not null default '',
    subagent bigint not null default 0,
    status text collate "C" not null,
    token text collate "C" not null default '',
    lease_until bigint not null default 0,
    purging bigint not null default 0,
    read_through bigint not null default 0,
    size bigint not null default 0,
    modified_at bigint not null default 0,
    read_check text collate "C" not null default '',
    reader text collate "C" not null default '',
    last_entry_at bigint not null default 0,
    entries bigint not null default 0,
    skipped text collate "C" not null default '{}',
    problem text collate "C" not null default '',
    created_at bigint not null,
    updated_at bigint not null,
    primary key (user_id, file_key)
);

create unique index transcript_files_by_session on transcript_files (user_id, session_id);

create table transcript_conversations (
    user_id text collate "C" not null,
    id bigint not null,
    file_key text collate "C" not null,
    session_id text collate "C" not null,
    first_document bigint not null,
    last_document bigint not null,
    first_message_at bigint not null,
    last_message_at bigint not null,
    entries bigint not null,
    status text collate "C" not null,
    updated_at bigint not null,
    primary key (user_id, id)
);

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
    digest text collate "C" not null primary key,
    read_through bigint not null
);
