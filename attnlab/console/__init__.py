"""Text for people: numbers and units, tables, escaping and errors. It imports nothing else of attnlab."""
