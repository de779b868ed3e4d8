-- A block that was put into a prompt stays with its message: each is kept by the texts that the user has said up to
-- there. The blocks before this were of the last hour's tool loops.

drop table prompt_blocks;

create table prompt_blocks (
    user_id text not null,
    group_name text not null,
    key text not null,
    previous text not null,
    kept text not null,
    told text not null,
    seq integer not null,
    used_at integer not null,
    primary key (user_id, group_name, key)
) without rowid;

create index prompt_blocks_by_use on prompt_blocks (user_id, used_at);
