UPDATE {partition} SET `node_id` = {id}, `epoch` = {epoch}
