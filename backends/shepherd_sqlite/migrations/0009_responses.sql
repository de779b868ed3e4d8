-- Responses that a later request may go on from by their id alone: the session that they belong to, and how many
-- messages it had by then. block_key is that of the user's last turn, by which blocks are kept.

create table responses (
    user_id text not null,
    response_id text not null,
    session_id text not null,
    messages integer not null,
    block_key text not null default '',
    created_at integer not null,
    primary key (user_id, response_id)
) without rowid;

create index responses_by_session on responses (user_id, session_id);
create index responses_by_time on responses (user_id, created_at);
