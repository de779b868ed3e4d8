-- What the ids are made of that a user's groups are shown (group_ids.py); every row of users has one.
alter table users add column id_secret text not null default '';
update users set id_secret = lower(hex(randomblob(16)));
