-- A session has a life from when somebody starts it: its status is empty before, then active, then ended. While it is
-- active, last_seen_at says when it was last used; handed_in is a transcript that its client began it with, as JSON.

alter table sessions add column status text collate "C" not null default '' check (status in ('', 'active', 'ended'));
alter table sessions add column name text collate "C" not null default '';
alter table sessions add column agent_name text collate "C" not null default '';
alter table sessions add column started_at bigint;
alter table sessions add column ended_at bigint;
alter table sessions add column end_reason text collate "C" not null default '';
alter table sessions add column previous_session text collate "C" not null default '';
alter table sessions add column handed_in text collate "C" not null default '';
alter table sessions add column last_seen_at bigint;

-- What to end when it has been silent for long.
create index sessions_active on sessions (last_seen_at) where status = 'active';

-- The one active session of each group. The holder is the process that it ends with, if there is one.
create table active_sessions (
    user_id text collate "C" not null,
    group_name text collate "C" not null,
    session_id text collate "C" not null,
    holder text collate "C" not null default '',
    primary key (user_id, group_name)
);

-- Sessions that were put aside under a name.
create table session_history (
    user_id text collate "C" not null,
    id bigint not null,
    group_name text collate "C" not null,
    session_id text collate "C" not null,
    name text collate "C" not null,
    created_at bigint not null,
    archived_at bigint not null,
    primary key (user_id, id)
);

create index session_history_by_group on session_history (user_id, group_name, id);
