create table orders (
    id          bigint generated always as identity primary key,
    customer    text not null,
    total_cents bigint not null check (total_cents >= 0)
);

create table receipts (
    order_id bigint primary key references orders
);
