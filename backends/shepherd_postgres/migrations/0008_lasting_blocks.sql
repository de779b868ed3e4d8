-- A block that was put into a prompt stays with its message: each is kept by the texts that the user has said up to
-- there. The blocks before this were of the last hour's tool loops.

drop table prompt_blocks;

create table prompt_blocks (
    user_id text collate "C" not null,
    group_name text collate "C" not null,
    key text collate "C" not null,
    previous text collate "C" not null,
    kept text collate "C" not null,
    told text collate "C" not null,
    seq bigint not null,
    used_at bigint not null,
    primary key (user_id, group_name, key)
);

create index prompt_blocks_by_use on prompt_blocks (user_id, used_at);
