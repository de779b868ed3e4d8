-- Conversations of live chats too, and sessions that came in both ways: through a server, and as a transcript.

alter table transcript_conversations rename to conversations;
drop index transcript_conversations_by_file;
drop index transcript_conversations_open;

alter table conversations add column source text collate "C" not null default '';
alter table conversations add column cwd text collate "C" not null default '';
alter table conversations add column provider text collate "C" not null default '';
alter table conversations add column originator text collate "C" not null default '';

-- The key of the session's work items: of one in main its id.
alter table conversations add column work_key text collate "C" not null default '';

update conversations set work_key = case when group_name = 'main' and position(chr(31) in session_id) = 0
    then session_id else group_name || chr(31) || session_id end;
update conversations set (source, cwd, originator) =
    (select f.source, f.cwd, f.originator from transcript_files f
        where f.user_id = conversations.user_id and f.file_key = conversations.file_key)
    where exists (select 1 from transcript_files f
        where f.user_id = conversations.user_id and f.file_key = conversations.file_key);

create index conversations_by_session on conversations (user_id, group_name, session_id, id);
create index conversations_open on conversations (status, last_message_at)
    where status in ('active', 'ready', 'processing');

-- Where a live session is chatted, and how far its messages are in conversations. What is read from a file is put
-- into conversations as it is read.
alter table sessions add column provider text collate "C" not null default '';
alter table sessions add column cwd text collate "C" not null default '';
alter table sessions add column grouped_through bigint not null default 0;
update sessions set grouped_through = last_document where exists (select 1 from transcript_files f
    where f.user_id = sessions.user_id and f.group_name = sessions.group_name
        and f.session_id = sessions.session_id);
create index sessions_to_group on sessions (updated_at) where last_document > grouped_through;

-- What the agent calls the session of a file: the UUID at the end of the file's name, if there is one.
alter table transcript_files add column thread text collate "C" not null default '';
update transcript_files set thread = case when session_id like '%@________'
    then substr(session_id, 1, length(session_id) - 9) else session_id end;
update transcript_files set thread = case when right(thread, 36) like '________-____-____-____-____________'
    then right(thread, 36) else '' end;
create index transcript_files_by_thread on transcript_files (user_id, group_name, thread) where thread <> '';

-- Messages that came in both ways: of the one that came later only this is kept, and which one holds its words.
create table twins (
    user_id text collate "C" not null,
    group_name text collate "C" not null,
    session_id text collate "C" not null,
    message_id text collate "C" not null,
    stored_session text collate "C" not null,
    stored_message text collate "C" not null,
    is_part bigint not null,
    said_at bigint not null,
    primary key (user_id, group_name, session_id, message_id, stored_session, stored_message)
);

create index twins_by_stored on twins (user_id, group_name, stored_session, stored_message);
