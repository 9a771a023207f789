SELECT EXISTS (
    SELECT 1 FROM {partition} JOIN {node} USING (node_id)
    WHERE {partition}.partition = 0 AND node_id = ?1
)
