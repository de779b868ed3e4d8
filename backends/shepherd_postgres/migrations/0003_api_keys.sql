-- Who may use the API server. Keys belong to whoever runs the machine: no user owns a row here, and a row stays
-- when its key is revoked, so that a database which ever had a key goes on asking for one.

create table api_keys (
    id text collate "C" not null primary key,
    name text collate "C" not null,
    any_user bigint not null,
    namespace text collate "C" not null,
    rate_per_minute bigint not null,
    max_request_bytes bigint not null,
    hash text collate "C" not null,
    created_at bigint not null,
    last_used_at bigint,
    revoked_at bigint
);
