-- What a phase made of a conversation. `state` is kept while it may be used; withheld from when something in the
-- conversation is forgotten until it is made anew, without its texts; forgotten where the user deleted the note itself.
-- `note` is the id, in the session, of the document that says the summary. `selected` is what was last consolidated.
create table conversation_outputs (
    user_id text not null,
    group_name text not null,
    conversation_id integer not null,
    strategy text not null,
    session_id text not null,
    source_through integer not null,
    source_updated_at integer not null,
    raw_memory text not null,
    summary text not null,
    slug text not null,
    task_outcome text not null,
    outcome text not null check (outcome in ('succeeded', 'succeeded_no_output')),
    state text not null check (state in ('kept', 'withheld', 'forgotten')),
    note text not null,
    model text not null,
    generated_at integer not null,
    use_count integer not null default 0,
    last_used_at integer,
    selected integer not null default 0,
    selected_source_updated_at integer,
    primary key (user_id, group_name, conversation_id, strategy)
);

create index conversation_outputs_by_session on conversation_outputs (user_id, group_name, session_id);
create index conversation_outputs_by_age on conversation_outputs (user_id, source_updated_at);

-- Conversations of everybody by when they ended: those of a window of time are looked at.
create index conversations_by_end on conversations (last_message_at);

-- Whether a session's memory is used and added to (on), only used (read-only), or neither (off).
alter table sessions add column memory_mode text not null default 'on'
    check (memory_mode in ('on', 'read-only', 'off'));

-- What has failed of a user, by what it is about.
create index jobs_failed_of_user on jobs (user_id, kind, key) where status = 'failed';
