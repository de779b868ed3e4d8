-- What the guard could not vouch for: kept until a second mention or a person confirms it, and never injected.
create table unconfirmed (
    user_id text not null,
    id integer not null,
    kind text not null,
    name text not null,
    content text not null,
    reason text not null,
    detail text not null,
    quote text not null,
    subject text not null,
    stated_at integer not null,
    source text not null,
    session_id text not null,
    message_id text not null,
    created_at integer not null,
    group_name text not null,
    primary key (user_id, id)
) without rowid;
create index unconfirmed_by_name on unconfirmed (user_id, group_name, kind, name);
create index unconfirmed_by_age on unconfirmed (created_at);
