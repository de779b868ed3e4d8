-- When users were erased: what they said before, and what waits elsewhere to be stored, stays out. Digests only,
-- which say nothing to who does not know the user's name.
create table erasures (
    digest text not null primary key,
    erased_at integer not null
) without rowid;
