-- The blocks of the last prompts: a tool loop gets the same one again, whichever process serves its next round.

create table prompt_blocks (
    user_id text not null,
    key text not null,
    kept text not null,
    created_at bigint not null,
    primary key (user_id, key)
);
