-- What recall finds things by. An entry is one fact, context pair or document; its id is that row's id,
-- which comes from users.seq, so that entries newer than a cache are those with greater ids.

alter table facts add column id integer not null default 0;
create index facts_by_id on facts (user_id, id);

alter table documents add column use_count integer not null default 0;
alter table documents add column last_used_at integer;

create table entries (
    user_id text not null,
    id integer not null,
    kind text not null,
    session_id text not null,
    role text not null,
    speaker_name text not null,
    stated_at integer not null,
    length integer not null,
    primary key (user_id, id)
) without rowid;

-- By the user's number, not name: there is one row for each word of each entry.
create table postings (
    user_number integer not null,
    term text not null,
    id integer not null,
    count integer not null,
    primary key (user_number, term, id)
) without rowid;

-- Entries that wait to be embedded, with the text that will be.
create table unembedded (
    user_id text not null,
    id integer not null,
    queued_at integer not null,
    primary key (user_id, id)
) without rowid;

create index unembedded_by_age on unembedded (queued_at);

-- Several vectors for a long entry; seq is the users.seq at which they were stored.
drop table vectors;

create table vectors (
    user_id text not null,
    id integer not null,
    part integer not null,
    model text not null,
    seq integer not null,
    embedding blob not null,
    primary key (user_id, id, part)
);

create index vectors_by_seq on vectors (user_id, model, seq);

-- What was put into which prompt, and why.
create table injections (
    user_id text not null,
    id integer not null,
    request text not null,
    session_id text not null,
    query text not null,
    kind text not null,
    entry_id integer not null,
    score real not null,
    confidence real not null,
    injected_at integer not null,
    primary key (user_id, id)
) without rowid;

-- There as long as rows from before this migration are not indexed.
create table unindexed (since integer);
