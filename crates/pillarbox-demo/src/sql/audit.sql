-- What became of the events of run $1, and of the orders in {leftover} that were pending when it began.
WITH own_orders (order_id) AS (
    SELECT order_id FROM demo_order WHERE run = $1
), own_receipts (order_id, path) AS (
    SELECT order_id, path FROM demo_receipt WHERE run = $1
), own_events (order_id) AS (
    SELECT aggregate_id FROM pillarbox_demo_event WHERE aggregate_id LIKE $1 || '-%'
), missing (order_id) AS (
    SELECT order_id FROM (SELECT order_id FROM own_orders UNION {leftover}) AS scope
    EXCEPT SELECT order_id FROM demo_receipt
), pending (order_id) AS (
    SELECT order_id FROM missing
    INTERSECT SELECT aggregate_id FROM pillarbox_demo_event WHERE status IN (0, 2)
), phantoms (order_id) AS (
    SELECT order_id FROM (SELECT order_id FROM own_events UNION SELECT order_id FROM own_receipts) AS known
    EXCEPT SELECT order_id FROM demo_order
)
SELECT (SELECT count(*) FROM own_events),
       (SELECT count(*) FROM own_receipts),
       (SELECT count(DISTINCT order_id) FROM own_receipts),
       (SELECT count(*) FROM own_receipts WHERE path = 'hot'),
       (SELECT count(*) FROM missing) - (SELECT count(*) FROM pending),
       (SELECT count(*) FROM pending),
       (SELECT count(*) FROM phantoms)
