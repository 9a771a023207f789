create table if not exists orders (
    id          bigint generated always as identity primary key,
    customer    text not null,
    total_cents bigint not null check (total_cents >= 0)
);

create table if not exists receipts (
    event_id text primary key,  -- a second delivery of the same event changes nothing
    order_id bigint not null references orders
);
