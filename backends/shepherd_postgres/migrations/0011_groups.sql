-- What a group holds is the group's own: its name is part of every key that it scopes. What was stored before is of
-- the group main, which sees all groups.

-- By what they are, not by name: an index of an older database may have had the name that ours would get.
do $$
declare held record;
begin
    for held in
        select conrelid::regclass as of_table, conname from pg_constraint where contype = 'p' and conrelid in
            ('sessions'::regclass, 'facts'::regclass, 'tombstones'::regclass, 'responses'::regclass)
    loop
        execute format('alter table %s drop constraint %I', held.of_table, held.conname);
    end loop;
end $$;

update sessions set group_name = 'main' where group_name <> 'main';
alter table sessions add primary key (user_id, group_name, session_id);
drop index sessions_to_catch_up;
create index sessions_to_catch_up on sessions (user_id, group_name, session_id)
    where wanted_through > queued_through;

update documents set group_name = 'main' where group_name <> 'main';
drop index documents_by_message;
create unique index documents_by_message on documents (user_id, group_name, session_id, message_id);
drop index documents_by_session;
create index documents_by_session on documents (user_id, group_name, session_id, id);

alter table facts add column group_name text collate "C" not null default 'main';
alter table facts add primary key (user_id, group_name, key);

alter table fact_history add column group_name text collate "C" not null default 'main';
drop index fact_history_by_key;
create index fact_history_by_key on fact_history (user_id, group_name, key, stated_at);

alter table context add column group_name text collate "C" not null default 'main';
drop index context_by_digest;
create unique index context_by_digest on context (user_id, group_name, digest);

alter table tombstones add column group_name text collate "C" not null default 'main';
alter table tombstones add primary key (user_id, group_name, kind, session_id, key);

alter table rejections add column group_name text collate "C" not null default 'main';
alter table entries add column group_name text collate "C" not null default 'main';
alter table injections add column group_name text collate "C" not null default 'main';

alter table responses add column group_name text collate "C" not null default 'main';
alter table responses add primary key (user_id, group_name, response_id);
drop index responses_by_session;
create index responses_by_session on responses (user_id, group_name, session_id);

alter table transcript_files add column group_name text collate "C" not null default 'main';
drop index transcript_files_by_session;
create unique index transcript_files_by_session on transcript_files (user_id, group_name, session_id);
alter table transcript_conversations add column group_name text collate "C" not null default 'main';

-- The one group that a key is for; empty: any.
alter table api_keys add column group_name text collate "C" not null default '';
