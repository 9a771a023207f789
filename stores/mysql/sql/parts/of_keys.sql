-- True if a row is of these keys of a handler; NULL if it has no key.
({key} IN ({keys}) AND e.`handler` <=> {handler})
