-- Times are UTC microseconds. Every key begins with user_id. Row ids come from users.seq.

create table schema_migrations (
    version integer primary key,
    name text not null,
    applied_at integer not null
);

-- One row per user: seq is the lock, the order and the version of all that the user owns;
-- epoch rises with every deletion; number is never used again, even after an erase.
create table users (
    number integer primary key autoincrement,
    user_id text not null unique,
    seq integer not null,
    epoch integer not null default 0,
    created_at integer not null
);

create table sessions (
    user_id text not null,
    session_id text not null,
    group_name text not null default 'main',
    last_document integer not null default 0,
    wanted_through integer not null default 0,
    queued_through integer not null default 0,
    extracted_through integer not null default 0,
    created_at integer not null,
    updated_at integer not null,
    primary key (user_id, session_id)
) without rowid;

create index sessions_to_catch_up on sessions (user_id, session_id) where wanted_through > queued_through;

create table documents (
    user_id text not null,
    id integer not null,
    group_name text not null default 'main',
    session_id text not null,
    message_id text not null,
    type text not null,
    category text not null,
    role text not null,
    speaker_type text not null,
    speaker_name text not null,
    text text not null,
    extra text,
    source text not null,
    source_file text not null default '',
    tool_names text not null default '',
    cwd text not null default '',
    created_at integer not null,
    stored_at integer not null,
    primary key (user_id, id)
);

create unique index documents_by_message on documents (user_id, session_id, message_id);
create index documents_by_time on documents (user_id, created_at);

create table facts (
    user_id text not null,
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
    primary key (user_id, key)
) without rowid;

create table fact_history (
    user_id text not null,
    id integer not null,
    key text not null,
    value text not null,
    stated_at integer not null,
    source text not null,
    session_id text not null default '',
    message_id text not null default '',
    primary key (user_id, id)
) without rowid;

create index fact_history_by_key on fact_history (user_id, key, stated_at);

create table context (
    user_id text not null,
    id integer not null,
    question text not null,
    answer text not null,
    digest text not null,
    stated_at integer not null,
    source text not null,
    session_id text not null default '',
    message_id text not null default '',
    created_at integer not null,
    updated_at integer not null,
    use_count integer not null default 0,
    last_used_at integer,
    primary key (user_id, id)
) without rowid;

create unique index context_by_digest on context (user_id, digest);

-- What was deleted: a statement made before deleted_at does not bring it back.
create table tombstones (
    user_id text not null,
    kind text not null,
    session_id text not null default '',
    key text not null,
    deleted_at integer not null,
    primary key (user_id, kind, session_id, key)
) without rowid;

create table rejections (
    user_id text not null,
    id integer not null,
    kind text not null,
    name text not null,
    content text not null,
    reason text not null,
    detail text not null default '',
    stated_at integer not null,
    source text not null,
    session_id text not null default '',
    message_id text not null default '',
    created_at integer not null,
    primary key (user_id, id)
) without rowid;

create table token_usage (
    user_id text not null,
    day text not null,
    purpose text not null,
    calls integer not null,
    estimated_calls integer not null,
    prompt_tokens integer not null,
    completion_tokens integer not null,
    primary key (user_id, day, purpose)
) without rowid;

-- Leased work of every kind; the states are in docs/reference/jobs.md.
create table jobs (
    user_id text not null,
    id integer not null,
    kind text not null,
    key text not null,
    status text not null check (status in ('waiting', 'running', 'done', 'failed', 'dropped')),
    turn integer not null,
    run_at integer not null default 0,
    watermark_from integer not null default 0,
    watermark_through integer not null default 0,
    payload text not null default '',
    worker text not null default '',
    token text,
    lease_until integer,
    claims integer not null default 0,
    tries_left integer not null,
    successes_seen integer,
    last_error text not null default '',
    outcome text not null default '',
    queued_at integer not null,
    started_at integer,
    ended_at integer,
    primary key (user_id, id)
);

-- At most one item per key that nobody has touched yet: later slices extend it.
create unique index jobs_untouched on jobs (user_id, kind, key) where status = 'waiting' and claims = 0;
create index jobs_to_claim on jobs (kind, turn, queued_at, run_at) where status = 'waiting';
create index jobs_of_user on jobs (user_id, kind, turn) where status = 'waiting';
create index jobs_leased on jobs (lease_until) where status = 'running';
create index jobs_open on jobs (user_id, kind, key, watermark_from) where status in ('waiting', 'running');
create index jobs_ended on jobs (ended_at) where status in ('done', 'dropped');

create table endpoints (
    name text primary key,
    state text not null check (state in ('ok', 'unavailable', 'paused')),
    reason text not null default '',
    changed_at integer not null,
    successes integer not null default 0,
    last_success_at integer
) without rowid;

create table vectors (
    user_id text not null,
    kind text not null,
    row_id integer not null,
    model text not null,
    embedding blob not null,
    primary key (user_id, kind, row_id)
);
