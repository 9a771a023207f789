-- Added to the three: without the rows of some keys of a handler. Rows without a key stay.
 AND ({key} IN ({keys}) AND e.`handler` <=> {handler}) IS NOT TRUE
