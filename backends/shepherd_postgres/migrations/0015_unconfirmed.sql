-- What the guard could not vouch for: kept until a second mention or a person confirms it, and never injected.
create table unconfirmed (
    user_id text collate "C" not null,
    id bigint not null,
    kind text collate "C" not null,
    name text collate "C" not null,
    content text collate "C" not null,
    reason text collate "C" not null,
    detail text collate "C" not null,
    quote text collate "C" not null,
    subject text collate "C" not null,
    stated_at bigint not null,
    source text collate "C" not null,
    session_id text collate "C" not null,
    message_id text collate "C" not null,
    created_at bigint not null,
    group_name text collate "C" not null,
    primary key (user_id, id)
);
create index unconfirmed_by_name on unconfirmed (user_id, group_name, kind, name);
create index unconfirmed_by_age on unconfirmed (created_at);
