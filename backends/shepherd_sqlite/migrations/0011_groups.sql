-- What a group holds is the group's own: its name is part of every key that it scopes. What was stored before is of
-- the group main, which sees all groups. Tables whose primary key changes are made anew.

create table grouped_sessions (
    user_id text not null,
    group_name text not null default 'main',
    session_id text not null,
    last_document integer not null default 0,
    wanted_through integer not null default 0,
    queued_through integer not null default 0,
    extracted_through integer not null default 0,
    created_at integer not null,
    updated_at integer not null,
    extract_after integer not null default 0,
    primary key (user_id, group_name, session_id)
) without rowid;

insert into grouped_sessions (user_id, group_name, session_id, last_document, wanted_through, queued_through,
    extracted_through, created_at, updated_at, extract_after)
select user_id, 'main', session_id, last_document, wanted_through, queued_through, extracted_through, created_at,
    updated_at, extract_after from sessions;

drop table sessions;
alter table grouped_sessions rename to sessions;
create index sessions_to_catch_up on sessions (user_id, group_name, session_id)
    where wanted_through > queued_through;

update documents set group_name = 'main' where group_name <> 'main';
drop index documents_by_message;
create unique index documents_by_message on documents (user_id, group_name, session_id, message_id);
drop index documents_by_session;
create index documents_by_session on documents (user_id, group_name, session_id, id);

create table grouped_facts (
    user_id text not null,
    group_name text not null default 'main',
    key text not null,
    value text not null,
    stated_at integer not null,
    source text not null,
    session_id text not null default '',
    message_id text not null default '',
    created_at integer not null,
    updated_at integer not null,
    use_count integer not null default 0,
    last_used_at integer,
    id integer not null default 0,
    primary key (user_id, group_name, key)
) without rowid;

insert into grouped_facts (user_id, group_name, key, value, stated_at, source, session_id, message_id, created_at,
    updated_at, use_count, last_used_at, id)
select user_id, 'main', key, value, stated_at, source, session_id, message_id, created_at, updated_at, use_count,
    last_used_at, id from facts;

drop table facts;
alter table grouped_facts rename to facts;
create index facts_by_id on facts (user_id, id);

alter table fact_history add column group_name text not null default 'main';
drop index fact_history_by_key;
create index fact_history_by_key on fact_history (user_id, group_name, key, stated_at);

alter table context add column group_name text not null default 'main';
drop index context_by_digest;
create unique index context_by_digest on context (user_id, group_name, digest);

create table grouped_tombstones (
    user_id text not null,
    group_name text not null default 'main',
    kind text not null,
    session_id text not null default '',
    key text not null,
    deleted_at integer not null,
    primary key (user_id, group_name, kind, session_id, key)
) without rowid;

insert into grouped_tombstones (user_id, group_name, kind, session_id, key, deleted_at)
select user_id, 'main', kind, session_id, key, deleted_at from tombstones;

drop table tombstones;
alter table grouped_tombstones rename to tombstones;

alter table rejections add column group_name text not null default 'main';
alter table entries add column group_name text not null default 'main';
alter table injections add column group_name text not null default 'main';

create table grouped_responses (
    user_id text not null,
    group_name text not null default 'main',
    response_id text not null,
    session_id text not null,
    messages integer not null,
    block_key text not null default '',
    created_at integer not null,
    primary key (user_id, group_name, response_id)
) without rowid;

insert into grouped_responses (user_id, group_name, response_id, session_id, messages, block_key, created_at)
select user_id, 'main', response_id, session_id, messages, block_key, created_at from responses;

drop table responses;
alter table grouped_responses rename to responses;
create index responses_by_session on responses (user_id, group_name, session_id);
create index responses_by_time on responses (user_id, created_at);

alter table transcript_files add column group_name text not null default 'main';
drop index transcript_files_by_session;
create unique index transcript_files_by_session on transcript_files (user_id, group_name, session_id);
alter table transcript_conversations add column group_name text not null default 'main';

-- The one group that a key is for; empty: any.
alter table api_keys add column group_name text not null default '';
