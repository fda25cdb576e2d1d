"""Text for people: numbers and units, tables, escaping, errors. It imports nothing else of attnlab."""
