-- What recall finds things by. An entry is one fact, context pair or document; its id is that row's id,
-- which comes from users.seq, so that entries newer than a cache are those with greater ids.

alter table facts add column id bigint not null default 0;
create index facts_by_id on facts (user_id, id);

alter table documents add column use_count bigint not null default 0;
alter table documents add column last_used_at bigint;

create table entries (
    user_id text collate "C" not null,
    id bigint not null,
    kind text collate "C" not null,
    session_id text collate "C" not null,
    role text collate "C" not null,
    speaker_name text collate "C" not null,
    stated_at bigint not null,
    length bigint not null,
    primary key (user_id, id)
);

-- By the user's number, not name: there is one row for each word of each entry.
create table postings (
    user_number bigint not null,
    term text collate "C" not null,
    id bigint not null,
    count bigint not null,
    primary key (user_number, term, id)
);

-- Entries that wait to be embedded, with the text that will be.
create table unembedded (
    user_id text collate "C" not null,
    id bigint not null,
    queued_at bigint not null,
    primary key (user_id, id)
);

create index unembedded_by_age on unembedded (queued_at);

-- Several vectors for a long entry; seq is the users.seq at which they were stored.
drop table vectors;

create table vectors (
    user_id text collate "C" not null,
    id bigint not null,
    part bigint not null,
    model text collate "C" not null,
    seq bigint not null,
    embedding real[] not null,
    primary key (user_id, id, part)
);

create index vectors_by_seq on vectors (user_id, model, seq);

-- What was put into which prompt, and why.
create table injections (
    user_id text collate "C" not null,
    id bigint not null,
    request text collate "C" not null,
    session_id text collate "C" not null,
    query text collate "C" not null,
    kind text collate "C" not null,
    entry_id bigint not null,
    score double precision not null,
    confidence double precision not null,
    injected_at bigint not null,
    primary key (user_id, id)
);

-- There as long as rows from before this migration are not indexed.
create table unindexed (since bigint);
