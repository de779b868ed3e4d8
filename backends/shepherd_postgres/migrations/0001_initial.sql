-- Times are UTC microseconds. Every key begins with user_id. Row ids come from users.seq.

create table schema_migrations (
    version bigint primary key,
    name text collate "C" not null,
    applied_at bigint not null
);

-- One row per user: seq is the lock, the order and the version of all that the user owns;
-- epoch rises with every deletion; number is never used again, even after an erase.
create table users (
    number bigint generated always as identity primary key,
    user_id text collate "C" not null unique,
    seq bigint not null,
    epoch bigint not null default 0,
    created_at bigint not null
);

create table sessions (
    user_id text collate "C" not null,
    session_id text collate "C" not null,
    group_name text collate "C" not null default 'main',
    last_document bigint not null default 0,
    wanted_through bigint not null default 0,
    queued_through bigint not null default 0,
    extracted_through bigint not null default 0,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (user_id, session_id)
);

create index sessions_to_catch_up on sessions (user_id, session_id) where wanted_through > queued_through;

create table documents (
    user_id text collate "C" not null,
    id bigint not null,
    group_name text collate "C" not null default 'main',
    session_id text collate "C" not null,
    message_id text collate "C" not null,
    type text collate "C" not null,
    category text collate "C" not null,
    role text collate "C" not null,
    speaker_type text collate "C" not null,
    speaker_name text collate "C" not null,
    text text collate "C" not null,
    extra text collate "C",
    source text collate "C" not null,
    source_file text collate "C" not null default '',
    tool_names text collate "C" not null default '',
    cwd text collate "C" not null default '',
    created_at bigint not null,
    stored_at bigint not null,
    primary key (user_id, id)
);

create unique index documents_by_message on documents (user_id, session_id, message_id);
create index documents_by_time on documents (user_id, created_at);

create table facts (
    user_id text collate "C" not null,
    key text collate "C" not null,
    value text collate "C" not null,
    stated_at bigint not null,
    source text collate "C" not null,
    session_id text collate "C" not null default '',
    message_id text collate "C" not null default '',
    created_at bigint not null,
    updated_at bigint not null,
    use_count bigint not null default 0,
    last_used_at bigint,
    primary key (user_id, key)
);

create table fact_history (
    user_id text collate "C" not null,
    id bigint not null,
    key text collate "C" not null,
    value text collate "C" not null,
    stated_at bigint not null,
    source text collate "C" not null,
    session_id text collate "C" not null default '',
    message_id text collate "C" not null default '',
    primary key (user_id, id)
);

create index fact_history_by_key on fact_history (user_id, key, stated_at);

create table context (
    user_id text collate "C" not null,
    id bigint not null,
    question text collate "C" not null,
    answer text collate "C" not null,
    digest text collate "C" not null,
    stated_at bigint not null,
    source text collate "C" not null,
    session_id text collate "C" not null default '',
    message_id text collate "C" not null default '',
    created_at bigint not null,
    updated_at bigint not null,
    use_count bigint not null default 0,
    last_used_at bigint,
    primary key (user_id, id)
);

create unique index context_by_digest on context (user_id, digest);

-- What was deleted: a statement made before deleted_at does not bring it back.
create table tombstones (
    user_id text collate "C" not null,
    kind text collate "C" not null,
    session_id text collate "C" not null default '',
    key text collate "C" not null,
    deleted_at bigint not null,
    primary key (user_id, kind, session_id, key)
);

create table rejections (
    user_id text collate "C" not null,
    id bigint not null,
    kind text collate "C" not null,
    name text collate "C" not null,
    content text collate "C" not null,
    reason text collate "C" not null,
    detail text collate "C" not null default '',
    stated_at bigint not null,
    source text collate "C" not null,
    session_id text collate "C" not null default '',
    message_id text collate "C" not null default '',
    created_at bigint not null,
    primary key (user_id, id)
);

create table token_usage (
    user_id text collate "C" not null,
    day text collate "C" not null,
    purpose text collate "C" not null,
    calls bigint not null,
    estimated_calls bigint not null,
    prompt_tokens bigint not null,
    completion_tokens bigint not null,
    primary key (user_id, day, purpose)
);

-- Leased work of every kind; the states are in docs/reference/jobs.md.
create table jobs (
    user_id text collate "C" not null,
    id bigint not null,
    kind text collate "C" not null,
    key text collate "C" not null,
    status text collate "C" not null check (status in ('waiting', 'running', 'done', 'failed', 'dropped')),
    turn bigint not null,
    run_at bigint not null default 0,
    watermark_from bigint not null default 0,
    watermark_through bigint not null default 0,
    payload text collate "C" not null default '',
    worker text collate "C" not null default '',
    token text collate "C",
    lease_until bigint,
    claims bigint not null default 0,
    tries_left bigint not null,
    successes_seen bigint,
    last_error text collate "C" not null default '',
    outcome text collate "C" not null default '',
    queued_at bigint not null,
    started_at bigint,
    ended_at bigint,
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
    name text collate "C" primary key,
    state text collate "C" not null check (state in ('ok', 'unavailable', 'paused')),
    reason text collate "C" not null default '',
    changed_at bigint not null,
    successes bigint not null default 0,
    last_success_at bigint
);

create table vectors (
    user_id text collate "C" not null,
    kind text collate "C" not null,
    row_id bigint not null,
    model text collate "C" not null,
    embedding real[] not null,
    primary key (user_id, kind, row_id)
);
