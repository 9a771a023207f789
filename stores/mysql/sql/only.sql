-- Added to the three: rows of one key.
 AND {key} = {wanted_key} AND e.`handler` <=> {handler}
