-- Forgetting goes by the statements that a memory rests on. A fact or pair that is said again keeps the statements that
-- said it before: `key` is the fact's key or the pair's digest.
create table restatements (
    user_id text collate "C" not null,
    id bigint not null,
    group_name text collate "C" not null default 'main',
    kind text collate "C" not null,
    key text collate "C" not null,
    value text collate "C" not null,
    stated_at bigint not null,
    source text collate "C" not null,
    session_id text collate "C" not null,
    message_id text collate "C" not null,
    primary key (user_id, id)
);

create index restatements_by_key on restatements (user_id, group_name, kind, key);

-- The message, of the same session, that a note was made of.
alter table documents add column made_of text collate "C" not null default '';
create index documents_made_of on documents (user_id, group_name, session_id, made_of) where made_of <> '';

-- How far the transcripts had been seen whose sessions were forgotten. Unlike transcript_stops it is the user's own:
-- it is exported, and goes with the user.
create table forgotten_transcripts (
    user_id text collate "C" not null,
    file_key text collate "C" not null,
    group_name text collate "C" not null default 'main',
    read_through bigint not null,
    primary key (user_id, file_key)
);
