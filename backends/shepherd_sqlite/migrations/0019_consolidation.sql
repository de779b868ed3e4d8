-- What consolidation knows of a group: `input_watermark` rises with each output that comes, changes or goes, and
-- `success_watermark` is how far the last success had read: while it is behind, the group is dirty.
create table consolidations (
    user_id text not null,
    group_name text not null,
    input_watermark integer not null default 0,
    success_watermark integer not null default 0,
    version integer not null default 0,
    outcome text not null default '',
    model text not null default '',
    dirty_since integer,
    consolidated_at integer,
    primary key (user_id, group_name)
);

create index consolidations_dirty on consolidations (dirty_since) where input_watermark > success_watermark;

-- A piece of a memory file, as of `version`; `ended_version` is the one that replaced it, null while it is the newest.
-- It is withheld, without its words, from when something in one of its sources is forgotten until it is written anew.
-- Its id is also that of the document that recall finds it by.
create table memory_sections (
    user_id text not null,
    group_name text not null,
    id integer not null,
    file text not null,
    heading text not null,
    body text not null,
    project text not null,
    place integer not null,
    written_by text not null check (written_by in ('agent', 'user')),
    state text not null check (state in ('kept', 'withheld')),
    version integer not null,
    ended_version integer,
    updated_at integer not null,
    primary key (user_id, id)
);

create index memory_sections_of_group on memory_sections (user_id, group_name, ended_version, file);

-- The conversations that a section is made of.
create table section_sources (
    user_id text not null,
    group_name text not null,
    section_id integer not null,
    conversation_id integer not null,
    primary key (user_id, section_id, conversation_id)
);

create index section_sources_of_conversation on section_sources (user_id, group_name, conversation_id);

-- Each change of a group's memory files: by consolidation, or by hand.
create table memory_versions (
    user_id text not null,
    group_name text not null,
    version integer not null,
    made_at integer not null,
    written_by text not null check (written_by in ('agent', 'user')),
    note text not null,
    primary key (user_id, group_name, version)
);

-- Where an output stands in the order of the user's writes, and when its texts were dropped because nobody used them.
alter table conversation_outputs add column stored_as integer not null default 0;
alter table conversation_outputs add column pruned_at integer;

-- The notes that there are have never been consolidated.
insert into consolidations (user_id, group_name, input_watermark, dirty_since)
    select user_id, group_name, 1, max(generated_at) from conversation_outputs
    where state = 'kept' and outcome = 'succeeded' and strategy = 'summary' group by user_id, group_name;
