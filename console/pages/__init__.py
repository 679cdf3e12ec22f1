"""Documents: what each page says, as plain values. HTML and JSON are made from the same document."""
