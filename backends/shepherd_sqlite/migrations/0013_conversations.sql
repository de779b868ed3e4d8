-- Conversations of live chats too, and sessions that came in both ways: through a server, and as a transcript.

alter table transcript_conversations rename to conversations;
drop index transcript_conversations_by_file;
drop index transcript_conversations_open;

alter table conversations add column source text not null default '';
alter table conversations add column cwd text not null default '';
alter table conversations add column provider text not null default '';
alter table conversations add column originator text not null default '';

-- The key of the session's work items: of one in main its id.
alter table conversations add column work_key text not null default '';

update conversations set work_key = case when group_name = 'main' and instr(session_id, char(31)) = 0
    then session_id else group_name || char(31) || session_id end;
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
alter table sessions add column provider text not null default '';
alter table sessions add column cwd text not null default '';
alter table sessions add column grouped_through integer not null default 0;
update sessions set grouped_through = last_document where exists (select 1 from transcript_files f
    where f.user_id = sessions.user_id and f.group_name = sessions.group_name
        and f.session_id = sessions.session_id);
create index sessions_to_group on sessions (updated_at) where last_document > grouped_through;

-- What the agent calls the session of a file: the UUID at the end of the file's name, if there is one.
alter table transcript_files add column thread text not null default '';
update transcript_files set thread = case when session_id like '%@________'
    then substr(session_id, 1, length(session_id) - 9) else session_id end;
update transcript_files set thread = case when substr(thread, -36) like '________-____-____-____-____________'
    then substr(thread, -36) else '' end;
create index transcript_files_by_thread on transcript_files (user_id, group_name, thread) where thread <> '';

-- Messages that came in both ways: of the one that came later only this is kept, and which one holds its words.
create table twins (
    user_id text not null,
    group_name text not null,
    session_id text not null,
    message_id text not null,
    stored_session text not null,
    stored_message text not null,
    is_part integer not null,
    said_at integer not null,
    primary key (user_id, group_name, session_id, message_id, stored_session, stored_message)
) without rowid;

create index twins_by_stored on twins (user_id, group_name, stored_session, stored_message);
