-- A text that every session of the user begins with, whatever its group. It keeps its id until it is deleted, so that what
-- was told of it can be taken back; its version is the user's seq when it was written last.
create table global_memory (
    user_id text collate "C" not null,
    group_name text collate "C" not null default 'global' check (group_name = 'global'),
    id bigint not null,
    version bigint not null default 0,
    text text collate "C" not null,
    updated_at bigint not null,
    primary key (user_id, group_name)
);

-- The newest conversations of a group, and those of no project; a folder may be longer than an index takes.
create index conversations_by_age on conversations (user_id, group_name, last_message_at);
create index conversations_of_no_project on conversations (user_id, group_name, last_message_at) where cwd = '';
