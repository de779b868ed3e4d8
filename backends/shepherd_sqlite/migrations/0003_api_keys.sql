-- Who may use the API server. Keys belong to whoever runs the machine: no user owns a row here, and a row stays
-- when its key is revoked, so that a database which ever had a key goes on asking for one.

create table api_keys (
    id text not null primary key,
    name text not null,
    any_user integer not null,
    namespace text not null,
    rate_per_minute integer not null,
    max_request_bytes integer not null,
    hash text not null,
    created_at integer not null,
    last_used_at integer,
    revoked_at integer
) without rowid;
